"""The tables and sentences of a study's page."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from optimist.errors import command_line
from optimist.studies.job import Job
from optimist.studies.results import regrets
from optimist.studies.results.findings import Finding, StudyResults
from optimist.studies.results.runs import Evaluated
from optimist.studies.scores import intervals, table_one
from optimist.studies.sheet import Sheet

NAMESAKES = "DQN"  # the paper has two offline DQNs; the headline gives the scores of both


def headline(findings: StudyResults) -> str:
    """The agent with the best last evaluation, its interval, and the scores of the offline DQNs; or why no
    agent is shown to be the best."""
    finding = findings.longest[-1]
    last = {row.agent: row for row in finding.certainty if row.kind == "last"}
    best = max(last.values(), key=lambda row: row.aggregates["iqm"].estimate)
    games, seeds = len(finding.file.games), best.seeds
    counted = f"{games} game{'s' * (games > 1)}, {seeds} seed{'s' * (seeds > 1)}"
    where = "".join(f" ({word})" for word in (finding.part, finding.reading) if word != "all")
    zero, one = findings.ends(finding.file.games)
    scale = f"1 is {one} and 0 {zero}; {counted}."
    if len(last) == 1:
        return f"{best.agent} ends at a normalised score of {_iqm(best)}{where}; {scale}"
    if why := _undecided(best, last.values(), findings.one_log):
        levels = sorted(row.aggregates["iqm"].estimate for row in last.values())
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
    low = best.aggregates["iqm"].low
    overlap = any(row.aggregates["iqm"].high >= low for row in every if row is not best)
    return "and their intervals overlap" if overlap else ""


def tables(findings: StudyResults) -> dict[str, Sheet]:
    """The tables of the page by their HTML id."""
    by = findings.by
    return {
        "table": _joined(findings, lambda each: table_one.sheet(each.rows, by, kinds=table_one.MAIN)),
        "aggregates": _joined(findings, lambda each: intervals.sheet(each.certainty, each.evaluations)),
        "per-game": _joined(findings, lambda each: table_one.per_game_sheet(each.games, by)),
        **(regrets.sheets(findings.losses) if findings.losses else {}),
        "logs": logs(findings),
        "players": players(findings),
        "unfinished": unfinished(findings),
        "cost": cost(findings.runs),
    }


def logs(findings: StudyResults) -> Sheet:
    """Average returns in the logs."""
    rows = [
        [game, part, log.average.get(part), log.best.get(part), log.player, log.evaluation]
        for game, log in findings.logs.items()
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


def players(findings: StudyResults) -> Sheet:
    """How far the players of a game differ: an agent learned from the log of one of them."""
    rows = [
        [game, seed, log.exploring.get(seed), log.players.get(seed)]
        for game, log in findings.logs.items()
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


def unfinished(findings: StudyResults) -> Sheet:
    rows = [[each.name, each.state, each.step, each.steps, each.complaint] for each in findings.unfinished]
    heads = ["run", "state", "steps done", "of", "why"]
    notes = [f"{command_line('study', 'status', findings.out)} shows their progress"]
    return Sheet("runs that are not in these numbers", heads, rows, notes)


def facts(findings: StudyResults) -> dict[str, str]:
    """The settings of the study."""
    jobs = [job for job in findings.record.jobs if job.label]
    by, every = findings.by, len(findings.record.jobs)
    return {
        "environments": ", ".join(dict.fromkeys(job.environment for job in jobs)),
        "agents": ", ".join(findings.agents),
        "learned from": ", ".join(dict.fromkeys(job.part for job in jobs)),
        "seeds": _range(list(_seeds(jobs).values())),
        "gradient steps" if findings.offline else "steps played": _range([job.steps() for job in jobs]),
        "evaluations of a seed": _range(
            [len(curve) for run in findings.runs for curve in run.curves.values()]
        ),
        "read at": ", ".join(f"{name}: {step:,}" for name, step in findings.record.read_at.items())
        or "the end",
        "finished runs": f"{every - len(findings.unfinished)} of {every}",
        **chosen_by(findings.selections),
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


def _joined(findings: StudyResults, sheet: Callable[[Finding], Sheet]) -> Sheet:
    """One sheet of all findings, sorted by agent; part and reading are columns if there are several."""
    sheets = [(finding, sheet(finding)) for finding in findings.found]
    places = {
        "data": [finding.part for finding in findings.found],
        "read at": [finding.reading for finding in findings.found],
    }
    several = [head for head, values in places.items() if len(set(values)) > 1]
    columns = list(dict.fromkeys(head for _, each in sheets for head in each.heads))
    rows = []
    for index, (_, each) in enumerate(sheets):
        where = {head: places[head][index] for head in several}
        rows += [{**dict(zip(each.heads, row, strict=True)), **where} for row in each.rows]
    heads = [columns[0], *several, *columns[1:]]
    rows.sort(key=lambda row: findings.agents.index(row["agent"]))  # a stable sort
    last = sheets[-1][1]
    notes = dict.fromkeys(note for _, each in reversed(sheets) for note in each.notes)
    return Sheet(last.title, heads, [[row.get(head) for head in heads] for row in rows], list(notes))


def _iqm(row: intervals.Certainty) -> str:
    """'1.12 (0.98 to 1.20)'."""
    found = row.aggregates["iqm"]
    bounds = f" (95% interval {found.low:.2f} to {found.high:.2f})" if row.seeds > 1 else ""
    return f"{found.estimate:.2f}{bounds}"


def _spent(runs: Sequence[Evaluated]) -> list[int]:
    evaluations = sum(len(curve) for run in runs for curve in run.curves.values())
    return [len(runs), evaluations, sum(run.episodes for run in runs), sum(run.steps for run in runs)]


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
