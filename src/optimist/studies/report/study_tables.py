"""The tables and sentences of a study's page."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from optimist.errors import command_line
from optimist.studies.job import Job
from optimist.studies.results import regrets
from optimist.studies.results.findings import StudyResults
from optimist.studies.results.runs import Evaluated
from optimist.studies.scores import intervals, table_one
from optimist.studies.scores.finding import Finding
from optimist.studies.scores.normalisation import MAIN
from optimist.studies.sheet import Sheet

NAMESAKES = "DQN"  # the paper has two offline DQNs; the headline gives the scores of both


def headline(study: StudyResults) -> str:
    """The agent with the best last evaluation, its interval, and the scores of the offline DQNs; or why no
    agent is shown to be the best."""
    finding = study.longest[-1]
    last = {row.agent: row for row in finding.certainty if row.score == "last"}
    best = max(last.values(), key=lambda row: row.iqm.estimate)
    games, seeds = len(finding.file.games), best.seeds
    counted = f"{games} game{'s' * (games > 1)}, {seeds} seed{'s' * (seeds > 1)}"
    where = "".join(f" ({word})" for word in (finding.part, finding.reading) if word != "all")
    zero, one = study.ends(finding.file.games)
    scale = f"1 is {one} and 0 {zero}; {counted}."
    if len(last) == 1:
        return f"{best.agent} ends at a normalised score of {_iqm(best)}{where}; {scale}"
    if why := _undecided(best, last.values(), study.one_log):
        levels = sorted(row.iqm.estimate for row in last.values())
        return (
            f"No agent is shown to be the best: at the last evaluation{where} the interquartile means of "
            f"{len(last)} agents are {levels[0]:.2f} to {levels[-1]:.2f}, {why}; {scale}"
        )
    other = intervals.baseline(list(last))
    rivals = [agent for agent in last if agent == other or agent.startswith(NAMESAKES)]
    others = [f"{agent} has {_iqm(last[agent])}" for agent in rivals if agent != best.agent]
    return (
        f"At the last evaluation{where} {best.agent} has the highest interquartile mean of {len(last)} "
        f"agents: {_iqm(best)}; {'; '.join([*others, scale])}"
    )


def _undecided(best: intervals.Certainty, every: Iterable[intervals.Certainty], one_log: bool) -> str:
    """Why the best agent may not be the best; "" if nothing speaks against it."""
    if one_log:
        one = "one log of each game" if best.games > 1 else "one log"
        return f"from {one}, and another log may give another order"
    if best.seeds == 1:
        return "with one seed each"
    low = best.iqm.low
    overlap = any(row.iqm.high >= low for row in every if row is not best)
    return "and their intervals overlap" if overlap else ""


def tables(study: StudyResults) -> dict[str, Sheet]:
    """The tables of the page by their HTML id."""
    by = study.by
    return {
        "table": _joined(study, lambda each: table_one.sheet(each.rows, by, kinds=MAIN)),
        "aggregates": _joined(study, lambda each: intervals.sheet(each.certainty, each.evaluations)),
        "per-game": _joined(study, lambda each: table_one.per_game_sheet(each.game_rows, by, MAIN)),
        **({"rules": regrets.sheet(study.losses)} if study.losses else {}),
        "logs": logs(study),
        "players": players(study),
        "unfinished": unfinished(study),
        "cost": cost(study.runs),
    }


def logs(study: StudyResults) -> Sheet:
    """Average returns in the logs."""
    rows = [
        [game, part, log.average.get(part), log.best.get(part), log.player, log.evaluation]
        for game, log in study.logs.items()
        for part in log.average
    ]
    heads = [
        "game",
        "data",
        "average behaviour",
        "best policy",
        "player at the end",
        "player's best evaluation",
    ]
    return Sheet("average returns in the logs", heads, rows)


def players(study: StudyResults) -> Sheet:
    """How far the players of a game differ: an agent learned from the log of one of them."""
    rows = [
        [game, seed, log.exploring.get(seed), log.players.get(seed)]
        for game, log in study.logs.items()
        for seed in sorted({*log.exploring, *log.players}, key=int)
    ]
    heads = ["game", "player", "at the end, while it explored", "best evaluation"]
    return Sheet("returns of each player", heads, rows)


def cost(runs: Sequence[Evaluated]) -> Sheet:
    """The online play of the evaluations; agents did not learn from it."""
    by_agent: dict[str, list[Evaluated]] = {}
    for run in runs:
        by_agent.setdefault(run.job.label, []).append(run)
    rows = [[agent, *_spent(mine)] for agent, mine in by_agent.items()]
    heads = ["agent", "finished runs", "evaluations", "episodes", "environment steps"]
    total = [f"{count:,} {head}" for count, head in zip(_spent(runs), heads[1:], strict=True)]
    return Sheet("online play of the evaluations", heads, rows, [f"total: {', '.join(total)}"])


def unfinished(study: StudyResults) -> Sheet:
    rows = [[each.name, each.state, each.step, each.steps, each.complaint] for each in study.unfinished]
    heads = ["run", "state", "steps done", "of", "why"]
    notes = [f"{command_line('study', 'status', study.out)} shows their progress"]
    return Sheet("runs that are not in these numbers", heads, rows, notes)


def facts(study: StudyResults) -> dict[str, str]:
    """The settings of the study."""
    jobs = [job for job in study.record.jobs if job.label]
    by, every = study.by, len(study.record.jobs)
    return {
        "environments": ", ".join(dict.fromkeys(job.environment for job in jobs)),
        "agents": ", ".join(study.agents),
        "learned from": ", ".join(dict.fromkeys(job.part for job in jobs)),
        "seeds": _range(list(_seeds(jobs).values())),
        "gradient steps" if study.offline else "steps played": _range([job.steps() for job in jobs]),
        "evaluations of a seed": _range([len(curve) for run in study.runs for curve in run.curves.values()]),
        "read at": ", ".join(f"{name}: {step:,}" for name, step in study.record.read_at.items()) or "the end",
        "finished runs": f"{every - len(study.unfinished)} of {every}",
        **chosen_by(study.selections),
        "0 and 100%": f"the worse and the better of random play and {by.yardstick}: {by.provenance}",
    }


def _seeds(jobs: Sequence[Job]) -> Counter[tuple[str, str, str]]:
    """The number of seeds of each agent in each game and part, which may be in one run or in several."""
    found: Counter[tuple[str, str, str]] = Counter()
    for job in jobs:
        found[job.label, job.environment, job.part] += len(job.seeds)
    return found


def chosen_by(selections: Sequence[dict]) -> dict[str, str]:
    """The rules that chose policies by the log alone, and what was noted in all games; empty without any."""
    if not selections:
        return {}
    first, *others = ([*each["notes"]] for each in selections)
    shared = [note for note in first if all(note in notes for notes in others)]
    return {"chosen offline by": "; ".join([*rules(selections), *shared])}


def rules(selections: Sequence[dict]) -> list[str]:
    """The rules by which policies were chosen, each with its length."""
    return list(dict.fromkeys(f"{each['rule']}, {each['updates']:,} updates" for each in selections))


def _joined(study: StudyResults, sheet: Callable[[Finding], Sheet]) -> Sheet:
    """One sheet of all findings, sorted by agent; part and reading are columns if there are several."""
    sheets = [(finding, sheet(finding)) for finding in study.findings]
    places = {
        "data": [finding.part for finding in study.findings],
        "read at": [finding.reading for finding in study.findings],
    }
    several = [head for head, values in places.items() if len(set(values)) > 1]
    columns = list(dict.fromkeys(head for _, each in sheets for head in each.heads))
    rows = []
    for index, (_, each) in enumerate(sheets):
        where = {head: places[head][index] for head in several}
        rows += [{**dict(zip(each.heads, row, strict=True)), **where} for row in each.rows]
    heads = [columns[0], *several, *columns[1:]]
    rows.sort(key=lambda row: study.agents.index(row["agent"]))  # a stable sort
    last = sheets[-1][1]
    notes = dict.fromkeys(note for _, each in reversed(sheets) for note in each.notes)
    return Sheet(last.title, heads, [[row.get(head) for head in heads] for row in rows], list(notes))


def _iqm(row: intervals.Certainty) -> str:
    """'1.12 (0.98 to 1.20)'."""
    sure = row.iqm
    bounds = "" if sure.low is None else f" (95% interval {sure.low:.2f} to {sure.high:.2f})"
    return f"{sure.estimate:.2f}{bounds}"


def _spent(runs: Sequence[Evaluated]) -> list[int]:
    evaluations = sum(len(curve) for run in runs for curve in run.curves.values())
    return [len(runs), evaluations, sum(run.episodes for run in runs), sum(run.steps for run in runs)]


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
