"""The tables and sentences of a study's page, every number in them read off what was found."""

from collections.abc import Callable, Sequence

from optimist.studies.report.formatting import number
from optimist.studies.report.page import Cell, Table
from optimist.studies.results.findings import Finding, Findings
from optimist.studies.results.runs import Evaluated
from optimist.studies.scores import intervals, table_one
from optimist.studies.scores.curves import RECENT
from optimist.studies.scores.statistics import Interval


def headline(findings: Findings) -> str:
    """Who plays best in the end, and how sure that is."""
    finding = findings.found[-1]
    last = [row for row in finding.certainty if row.kind == "last"]
    best = max(last, key=lambda row: row.aggregates["iqm"].estimate)
    games, seeds = len(finding.file.games), best.seeds
    counted = f"{games} game{'s' * (games > 1)}, {seeds} seed{'s' * (seeds > 1)}"
    where = "".join(f" ({word})" for word in _where(finding))
    if len(last) == 1:
        return f"{best.agent} ends at a normalised score of {_iqm(best)}{where}; {counted}."
    other = intervals.baseline([row.agent for row in last])
    against = next((row for row in last if row.agent == other and other != best.agent), None)
    versus = f", {other} has {_iqm(against)}" if against else ""
    return (
        f"At the last evaluation{where} {best.agent} has the highest interquartile mean of {len(last)} "
        f"agents: {_iqm(best)}{versus}; {findings.by.yardstick} is 1 and random play 0; {counted}."
    )


def tables(findings: Findings) -> list[Table]:
    return [_table_one(findings), _aggregates(findings), _per_game(findings)]


def cost(runs: Sequence[Evaluated]) -> Table:
    """What looking at the environment took: nothing of it was trained on, but all of it was played."""
    by_agent: dict[str, list[Evaluated]] = {}
    for run in runs:
        by_agent.setdefault(run.job.label, []).append(run)
    rows = [[Cell(agent), *_spent(mine)] for agent, mine in by_agent.items()]
    heads = ["agent", "finished runs", "evaluations", "episodes", "environment steps"]
    total = [f"{cell.text} {head}" for cell, head in zip(_spent(runs), heads[1:], strict=True)]
    return Table("cost", "What evaluation cost online", heads, rows, [f"together: {', '.join(total)}"])


def unfinished(findings: Findings) -> Table:
    rows = [
        [
            Cell(each.name),
            Cell(each.state),
            Cell(f"{each.step:,}", each.step),
            Cell(f"{each.steps:,}", each.steps),
        ]
        + [Cell(each.complaint)]
        for each in findings.unfinished
    ]
    heads = ["run", "state", "steps done", "of", "why"]
    notes = [f"optimist study status {findings.out} shows how far they are by now"]
    return Table("unfinished", "Runs that are not in these numbers", heads, rows, notes)


def facts(findings: Findings) -> dict[str, str]:
    """What was asked for."""
    jobs = [job for job in findings.record.jobs if job.label]
    by, every = findings.by, len(findings.record.jobs)
    return {
        "environments": ", ".join(dict.fromkeys(job.environment for job in jobs)),
        "agents": ", ".join(findings.agents),
        "learned from": ", ".join(dict.fromkeys(job.part for job in jobs)),
        "seeds": _range([len(job.seeds) for job in jobs]),
        "gradient steps" if findings.offline else "steps played": _range([job.steps() for job in jobs]),
        "evaluations of a seed": _range(
            [len(curve) for run in findings.runs for curve in run.curves.values()]
        ),
        "read at": ", ".join(f"{name}: {step:,}" for name, step in findings.record.read_at.items())
        or "the end",
        "finished runs": f"{every - len(findings.unfinished)} of {every}",
        "0 and 100%": f"random play and {by.yardstick}, the worse and the better: {by.provenance}",
    }


def _table_one(findings: Findings) -> Table:
    rows = [
        [*_place(findings, finding), *_medians(row)] for finding in findings.found for row in finding.rows
    ]
    paper = any(row.paper for finding in findings.found for row in finding.rows)
    heads = list(table_one.headings(RECENT, table_one.MAIN))
    told = list(dict.fromkeys(f"{finding.reading}: {finding.evaluations}" for finding in findings.found))
    notes = [
        *table_one.notes(findings.found[-1].rows, findings.by),
        *([f"evaluations at {', at '.join(told)}"] if len(told) > 1 else []),
    ]
    title = table_one.title(findings.found[-1].rows, findings.by)
    kept = len(heads) if paper else len(heads) - len(table_one.PAPER)
    columns = len(_place_heads(findings)) + kept
    return Table(
        "table",
        f"{title[0].upper()}{title[1:]}",
        [*_place_heads(findings), *heads[:kept]],
        [row[:columns] for row in rows],
        notes,
    )


def _medians(row: table_one.Row) -> list[Cell]:
    cells = [getattr(row, kind) for kind in table_one.MAIN] + [row.paper.get(key) for key in table_one.PAPER]
    return [
        Cell(row.agent),
        *(Cell(table_one.cell_text(each), each.median if each else None) for each in cells),
    ]


def _aggregates(findings: Findings) -> Table:
    paired = intervals.are_paired(findings.found[-1].certainty)
    rows = [
        [
            *_place(findings, finding),
            Cell(row.agent),
            Cell(table_one.kind_title(row.kind, finding.evaluations)),
            *(_interval(row.aggregates[name], row.seeds) for name in intervals.TITLES),
            _interval(row.better, row.seeds),
            *([_interval(row.ahead, row.seeds)] if paired else []),
        ]
        for finding in findings.found
        for row in finding.certainty
    ]
    heads = [*_place_heads(findings), *intervals.headings(findings.found[-1].certainty)]
    notes = intervals.notes(findings.found[-1].certainty)
    return Table("aggregates", "Over all games and runs, with intervals", heads, rows, notes)


def _per_game(findings: Findings) -> Table:
    kinds = {kind: table_one.kind_title(kind, findings.found[-1].evaluations) for kind in table_one.MAIN}
    if len({finding.evaluations for finding in findings.found}) > 1:
        kinds["best"] = "best"
    heads = ["game", "agent", *(head for title in kinds.values() for head in (title, f"{title}, gain"))]
    rows = []
    for finding in findings.found:
        for row in (row for game in finding.games.values() for row in game):
            numbers = []
            for kind in kinds:
                score, percent = getattr(row.score, kind), getattr(row.improvement, kind)
                numbers += [_number(score, number), _number(percent, "{:+,.1f}%".format)]
            rows.append([*_place(findings, finding), Cell(row.game), Cell(row.agent), *numbers])
    notes = [
        "average returns, mean over seeds; gain: the improvement of the normalised score over "
        f"{findings.by.yardstick}, as in Figure 4"
    ]
    return Table("per-game", "Game by game", [*_place_heads(findings), *heads], rows, notes)


def _number(value: float | None, shown: Callable[[float], str]) -> Cell:
    return Cell("") if value is None else Cell(shown(value), value)


def _interval(interval: Interval | None, seeds: int) -> Cell:
    return Cell(intervals.interval_text(interval, seeds), interval.estimate) if interval else Cell("")


def _iqm(row: intervals.Row) -> str:
    """'1.12 (0.98 to 1.20)'."""
    found = row.aggregates["iqm"]
    bounds = f" (95% interval {found.low:.2f} to {found.high:.2f})" if row.seeds > 1 else ""
    return f"{found.estimate:.2f}{bounds}"


def _where(finding: Finding) -> list[str]:
    return [word for word in (finding.part, finding.reading) if word != "all"]


def _place_heads(findings: Findings) -> list[str]:
    """Columns that only a study with several parts or readings needs."""
    parts = len({finding.part for finding in findings.found}) > 1
    readings = len({finding.reading for finding in findings.found}) > 1
    return ["data"] * parts + ["read at"] * readings


def _place(findings: Findings, finding: Finding) -> list[Cell]:
    values = {"data": finding.part, "read at": finding.reading}
    return [Cell(values[head]) for head in _place_heads(findings)]


def _spent(runs: Sequence[Evaluated]) -> list[Cell]:
    looks = sum(len(curve) for run in runs for curve in run.curves.values())
    counts = (len(runs), looks, sum(run.episodes for run in runs), sum(run.steps for run in runs))
    return [Cell(f"{count:,}", count) for count in counts]


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
