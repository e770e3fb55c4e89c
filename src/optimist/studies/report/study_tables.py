"""The tables and sentences of a study's page, and the warnings above all of its numbers."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from optimist.errors import command_line, some_of
from optimist.studies.job import Job
from optimist.studies.results.findings import Evaluated, StudyResults, random_returns
from optimist.studies.scores import intervals
from optimist.studies.scores.finding import Finding
from optimist.studies.scores.normalisation import MAIN, OWN
from optimist.studies.sheet import Sheet, number
from optimist.training.storage.configuration import read_versions as versions_of_run
from optimist.training.storage.run_folder import Alarm, read_alarms
from optimist.training.storage.selected import NAME as SELECTION

NAMESAKES = "DQN"  # the paper has two offline DQNs; the headline gives the scores of both
BEYOND = 10  # times the difference of player and random play
NAMED = 3  # runs that a line about versions names; the others are counted
NAMED_DIVERGED = 5
OF_ITS_GAME = ("dataset", "rom_md5")  # these differ between games in any study
WARNED_GAMES = 5  # left-out games that a warning names; the notes below the tables name all


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
    undecided = ""
    if study.one_log:
        logs = "one log of each game" if best.games > 1 else "one log"
        undecided = f"from {logs}, and another log may give another order"
    elif seeds == 1:
        undecided = "with one seed each"
    elif any(row.iqm.high >= best.iqm.low for row in last.values() if row is not best):
        undecided = "and their intervals overlap"
    if undecided:
        levels = sorted(row.iqm.estimate for row in last.values())
        return (
            f"No agent is shown to be the best: at the last evaluation{where} the interquartile means of "
            f"{len(last)} agents are {levels[0]:.2f} to {levels[-1]:.2f}, {undecided}; {scale}"
        )
    other = intervals.baseline(list(last))
    rivals = [agent for agent in last if agent == other or agent.startswith(NAMESAKES)]
    others = [f"{agent} has {_iqm(last[agent])}" for agent in rivals if agent != best.agent]
    return (
        f"At the last evaluation{where} {best.agent} has the highest interquartile mean of {len(last)} "
        f"agents: {_iqm(best)}; {'; '.join([*others, scale])}"
    )


def _iqm(row: intervals.Certainty) -> str:
    """'1.12 (0.98 to 1.20)'."""
    sure = row.iqm
    bounds = "" if sure.low is None else f" (95% interval {sure.low:.2f} to {sure.high:.2f})"
    return f"{sure.estimate:.2f}{bounds}"


def tables(study: StudyResults) -> dict[str, Sheet]:
    """The tables of the page by their HTML id."""
    logs = [
        [game, part, log.average.get(part), log.best.get(part), log.player, log.evaluation]
        for game, log in study.logs.items()
        for part in log.average
    ]
    heads = ["game", "data", "average behaviour", "best policy", "player at the end"]
    players = [  # an agent learned from the log of one of them
        [game, seed, log.exploring.get(seed), log.players.get(seed)]
        for game, log in study.logs.items()
        for seed in sorted({*log.exploring, *log.players}, key=int)
    ]
    players_heads = ["game", "player", "at the end, while it explored", "best evaluation"]
    unfinished = [[each.name, each.state, each.step, each.steps, each.complaint] for each in study.unfinished]
    progress = [f"{command_line('study', 'status', study.out)} shows their progress"]
    rule_table = None
    if study.selections:
        from optimist.studies.results import regrets  # it loads the estimators of select

        rule_table = regrets.sheet(regrets.losses(study))
    return {
        "table": _joined(study, lambda each: each.table(MAIN)),
        "aggregates": _joined(study, lambda each: intervals.sheet(each.certainty, each.evaluations)),
        "per-game": _joined(study, lambda each: each.game_table(MAIN)),
        **({"rules": rule_table} if rule_table else {}),
        "logs": Sheet("average returns in the logs", [*heads, "player's best evaluation"], logs),
        "players": Sheet("returns of each player", players_heads, players),
        "unfinished": Sheet(
            "runs that are not in these numbers",
            ["run", "state", "steps done", "of", "why"],
            unfinished,
            progress,
        ),
        "cost": cost(study.runs),
    }


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
    rows.sort(key=lambda row: study.agents.index(row["agent"]))
    notes = dict.fromkeys(note for _, each in reversed(sheets) for note in each.notes)
    return Sheet(sheets[-1][1].title, heads, [[row.get(head) for head in heads] for row in rows], list(notes))


def cost(runs: Sequence[Evaluated]) -> Sheet:
    """The online play of the evaluations; agents did not learn from it."""

    def spent(runs: Sequence[Evaluated]) -> list[int]:
        evaluations = sum(len(curve) for run in runs for curve in run.curves.values())
        return [len(runs), evaluations, sum(run.episodes for run in runs), sum(run.steps for run in runs)]

    agents = dict.fromkeys(run.job.label for run in runs)
    rows = [[agent, *spent([run for run in runs if run.job.label == agent])] for agent in agents]
    heads = ["agent", "finished runs", "evaluations", "episodes", "environment steps"]
    total = [f"{count:,} {head}" for count, head in zip(spent(runs), heads[1:], strict=True)]
    return Sheet("online play of the evaluations", heads, rows, [f"total: {', '.join(total)}"])


def facts(study: StudyResults) -> dict[str, str]:
    """The settings of the study."""
    jobs = [job for job in study.record.jobs if job.label]
    by, every = study.by, len(study.record.jobs)
    seeds: Counter[tuple[str, str, str]] = Counter()  # they may be in one run or in several
    for job in jobs:
        seeds[job.label, job.environment, job.part] += len(job.seeds)
    return {
        "environments": ", ".join(dict.fromkeys(job.environment for job in jobs)),
        "agents": ", ".join(study.agents),
        "learned from": ", ".join(dict.fromkeys(job.part for job in jobs)),
        "seeds": _range(list(seeds.values())),
        "gradient steps" if study.offline else "steps played": _range([job.steps() for job in jobs]),
        "evaluations of a seed": _range([len(curve) for run in study.runs for curve in run.curves.values()]),
        "read at": ", ".join(f"{name}: {step:,}" for name, step in study.record.read_at.items()) or "the end",
        "finished runs": f"{every - len(study.unfinished)} of {every}",
        **chosen_by(study.selections),
        "0 and 100%": f"the worse and the better of random play and {by.yardstick}: {by.provenance}",
    }


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


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


def warnings(study: StudyResults) -> list[str]:
    """Mixed versions, unfinished and diverged runs, unusual scales, games left out."""
    jobs, out, lines = study.record.jobs, study.out, []
    mixed = []
    for name, runs in read_versions(study.done, out).items():
        (usual, most), *others = runs.items()
        rare = [f"{version} in {len(names)} ({some_of(names, NAMED)})" for version, names in others]
        mixed += [f"{name} {', '.join([f'{usual} in {len(most)} runs', *rare])}"] if rare else []
    if mixed:
        lines.append(f"the runs have different versions: {'; '.join(mixed)}")
    if study.unfinished:
        failed = sum(each.state == "failed" for each in study.unfinished)
        some = f", {failed} of them failed" if failed else ""
        lines.append(
            f"{len(study.unfinished)} of {len(jobs)} runs are not finished and not in the numbers{some}"
        )
    alarms = {job.name: read_alarms(job.run_folder(out)) for job in study.done}
    if diverged := [f"{name} ({first_alarm(each)})" for name, each in alarms.items() if each]:
        lines.append(
            f"diverged, with values beyond the returns of their logs: {some_of(diverged, NAMED_DIVERGED)}; "
            "their scores are counted"
        )
    lines += _scales(study)
    if not study.record.selects and any((job.run_folder(out) / SELECTION).exists() for job in jobs):
        lines.append("policies that were chosen by the logs earlier are not shown, because of --no-select")
    if len(ways := rules(study.selections)) > 1:
        lines.append(f"the runs' policies were chosen offline in different ways: {'; '.join(ways)}")
    lines += study.empty_parts
    for finding in (each for each in study.findings if each.left_out):
        named = [f"{game} ({why})" for game, why in finding.left_out.items()]
        lines.append(f"left out of {finding.name}: {some_of(named, WARNED_GAMES)}")
    return lines


Versions = dict[str, dict[str, list[str]]]  # of each package or device its versions, each with its runs


def read_versions(done: Sequence[Job], out: Path) -> Versions:
    """The versions of every finished run, the most common first; "unknown" for runs without versions.json."""
    by_run = {job.name: versions_of_run(job.run_folder(out)) for job in done}
    names = dict.fromkeys(name for versions in by_run.values() for name in versions)
    runs_of: Versions = {name: {} for name in names if name not in OF_ITS_GAME}
    for name, runs in runs_of.items():
        for run, versions in by_run.items():
            if name in versions or not versions:
                runs.setdefault(versions.get(name, "unknown"), []).append(run)
    return {
        name: dict(sorted(runs.items(), key=lambda item: -len(item[1]))) for name, runs in runs_of.items()
    }


def first_alarm(alarms: dict[int, Alarm]) -> str:
    """'2 seeds, the first at step 104,750'."""
    first = min(alarm.step for alarm in alarms.values())
    return f"{len(alarms)} seed{'s' * (len(alarms) > 1)}, the first at step {first:,}"


def _scales(study: StudyResults) -> list[str]:
    """The games in which 0 and 1 are exchanged, or so close that scores there say little: the player gains
    less than episodes of random play differ among themselves, or a score is beyond ten times that."""
    by, lines, close = study.by, [], []
    games = dict.fromkeys(game for finding in study.findings for game in finding.file.games)
    if worse := [game for game in games if by.yardstick_scores[game] < by.random_scores[game]]:
        lines.append(
            f"{study.yardstick} is worse than random play in {some_of(worse, WARNED_GAMES)}: there 1 is "
            "random play, and 0 is the player"
        )
    for game, returns in random_returns(study.done, study.out).items() if by.name == OWN else ():
        if game not in by.yardstick_scores:
            continue
        random, player = by.random_scores[game], by.yardstick_scores[game]
        reached = [
            abs(score - random)
            for finding in study.findings
            for games_of in finding.file.agents.values()
            for curve in games_of.get(game, {}).values()
            for score in curve.values()
        ]
        if 0 < player - random < max(float(returns.std()), max(reached, default=0) / BEYOND):
            close.append(f"{game} ({number(player)} and {number(random)})")
    if close:
        lines.append(
            f"{study.yardstick} is hardly better than random play in {some_of(close, WARNED_GAMES)}: "
            "scores there are divided by this small difference, so they say little"
        )
    return lines
