"""Writes the page of a study, which needs no network or other file, and its tables and figures."""

from collections.abc import Sequence
from pathlib import Path

from optimist.data.disk.files import make_folder, remove, write_whole
from optimist.errors import command_line, some_of
from optimist.studies.report import interval_figures, study_tables
from optimist.studies.report.chart import chart_data
from optimist.studies.report.figures import laid_out, svg
from optimist.studies.report.page import CHART, Link, csv_link, data_link, inline, page, picture
from optimist.studies.report.study_figures import Drawn, draw
from optimist.studies.results import regrets
from optimist.studies.results import runs as results
from optimist.studies.results.findings import OWN, Finding, StudyResults, find
from optimist.studies.results.logs import remember
from optimist.studies.results.provenance import Version, diverged, read_versions
from optimist.studies.scores import intervals, table_one
from optimist.studies.scores.normalisation import Normaliser
from optimist.studies.sheet import Sheet, as_csv, as_markdown, number
from optimist.studies.study_file import FIGURES
from optimist.training.storage.selected import NAME as SELECTION

MARK = "aggregates.md"  # a table that only the report of a study has
TABLES = (
    *("table.md", "table.csv", "per_game.csv", "scores.csv"),
    *("aggregates.csv", MARK, "pairs.csv"),
)
FILM = Path("results") / "film.gif"  # if the study films an agent
BEYOND = 10  # times the difference of player and random play
WARNED_GAMES = 5  # left-out games that a warning names; the notes below the tables name all


def write_page(out: Path, page: Path, by: Normaliser | None = None) -> list[str]:
    """Write the page of a study alone, outside its folder, which may be read-only; return the warnings."""
    findings = find(out, by)
    drawn, left_out = draw(findings, are_files=False)
    versions = read_versions(findings.record.jobs, out)
    warned = warnings(findings, versions)
    command = page_command(out, page=page, by=by)
    make_folder(page.parent)
    write_whole(page, study_page(findings, drawn, left_out, versions, warned, command))
    return [*warned, *left_out]


def write_findings(out: Path, by: Normaliser | None = None) -> tuple[list[Path], list[str]]:
    """Write the page, and the tables and figures in `results`; return their paths and the warnings."""
    findings = find(out, by)
    make_folder(out / "results")
    written = [path for finding in findings.found for path in _write_tables(findings, finding)]
    write_whole(out / "results" / "normaliser.csv", _normaliser_csv(findings).encode())
    remember(findings.logs, out)
    remove(out / "results" / "selection.csv")  # of an earlier report
    _remove_earlier(out / "results", {finding.name for finding in findings.found})
    if findings.losses:
        write_whole(out / "results" / "selection.csv", regrets.csv_text(findings.losses).encode())
    drawn, left_out = draw(findings)
    versions = read_versions(findings.record.jobs, out)
    warned = warnings(findings, versions)
    command = page_command(out, by=by)
    write_whole(out / "report.html", study_page(findings, drawn, left_out, versions, warned, command))
    return [out / "report.html", *written, *(figure.path for figure in drawn)], [*warned, *left_out]


def page_command(*folders: Path, page: Path | None = None, by: Normaliser | None = None) -> str:
    """The command that writes a page again, with the normaliser that was asked for."""
    words = [*(["--out", page] if page else []), *(["--normaliser", by.name] if by else [])]
    return command_line("study", "report", *folders, *words)


def study_page(
    findings: StudyResults,
    drawn: Sequence[Drawn],
    left_out: Sequence[str],
    versions: Sequence[Version],
    warned: Sequence[str],
    command: str,
) -> bytes:
    verdict, film = findings.longest[-1], findings.out / FILM
    wide = [each for each in drawn if each.name == "intervals"][-1]
    tall = interval_figures.interval_plot(
        verdict.certainty, verdict.evaluations, findings.ends(verdict.file.games)[1], tall=True
    )
    pictures = [(each, picture(each.title, each.caption, each.svg, each.inches)) for each in drawn]
    return page(
        "study.html.j2",
        scripts=CHART,
        title=findings.record.title,
        headline=study_tables.headline(findings),
        warnings=warned,
        intervals=[inline(wide.svg), inline(svg(laid_out(tall)))],
        intervals_title=wide.title,
        intervals_caption=wide.caption,
        curves=chart_data(findings),
        static_curves=[shown for each, shown in pictures if each.name in ("iqm", "curves")],
        figures=[
            shown for each, shown in pictures if each.name not in ("iqm", "curves") and each is not wide
        ],
        left_out=left_out,
        tables={name: sheet for name, sheet in study_tables.tables(findings).items() if sheet.rows},
        film=data_link("image/gif", film.read_bytes()) if film.exists() else None,
        facts=study_tables.facts(findings),
        versions={version.name: " and ".join(version.runs) for version in versions},
        offline=findings.offline,
        selected=bool(findings.selections),
        command=findings.record.command,
        page_command=command,
        downloads=_downloads(findings),
    )


def warnings(findings: StudyResults, versions: Sequence[Version]) -> list[str]:
    """Warnings above all numbers: mixed versions, unfinished and diverged runs, games left out."""
    mixed = "; ".join(each.in_words() for each in versions if each.mixed)
    lines = [f"the runs have different versions: {mixed}"] if mixed else []
    if findings.unfinished:
        count, every = len(findings.unfinished), len(findings.record.jobs)
        failed = sum(each.state == "failed" for each in findings.unfinished)
        some = f", {failed} of them failed" if failed else ""
        lines.append(f"{count} of {every} runs are not finished and not in the numbers{some}")
    if runs := diverged(findings.record.jobs, findings.out):
        lines.append(
            f"diverged, with values beyond the returns of their logs: {runs}; their scores are counted"
        )
    if worse := _worse_than_random(findings):
        lines.append(
            f"{findings.yardstick} is worse than random play in {some_of(worse, WARNED_GAMES)}: there 1 is "
            "random play, and 0 is the player"
        )
    if close := _close_to_random(findings):
        lines.append(
            f"{findings.yardstick} is hardly better than random play in {some_of(close, WARNED_GAMES)}: "
            "scores there are divided by this small difference, so they say little"
        )
    if not findings.record.selects and any(
        (job.run_folder(findings.out) / SELECTION).exists() for job in findings.record.jobs
    ):
        lines.append("policies that were chosen by the logs earlier are not shown, because of --no-select")
    if len(rules := study_tables.rules(findings.selections)) > 1:
        lines.append(f"the runs' policies were chosen offline in different ways: {'; '.join(rules)}")
    lines += findings.empty_parts
    for finding in findings.found:
        if finding.left_out:
            named = [f"{game} ({why})" for game, why in finding.left_out.items()]
            lines.append(f"left out of {finding.name}: {some_of(named, WARNED_GAMES)}")
    return lines


def _worse_than_random(findings: StudyResults) -> list[str]:
    """The games in which 0 and 1 are exchanged."""
    games = dict.fromkeys(game for finding in findings.found for game in finding.file.games)
    by = findings.by
    return [game for game in games if by.yardstick_scores[game] < by.random_scores[game]]


def _close_to_random(findings: StudyResults) -> list[str]:
    """The games in which the player gains less than episodes of random play differ among themselves, or so
    little that an agent's score is beyond ten times 0 to 1."""
    by, found = findings.by, []
    spreads = results.random_spreads(findings.record.jobs, findings.out) if by.name == OWN else {}
    for game, spread in spreads.items():
        if game not in by.yardstick_scores:
            continue
        random, player = by.random_scores[game], by.yardstick_scores[game]
        reached = [
            abs(score - random)
            for finding in findings.found
            for games in finding.file.agents.values()
            for curve in games.get(game, {}).values()
            for score in curve.values()
        ]
        if 0 < player - random < max(spread, max(reached, default=0) / BEYOND):
            found.append(f"{game} ({number(player)} and {number(random)})")
    return found


def _downloads(findings: StudyResults) -> list[Link]:
    """All scores of the longest readings, which contain the shorter ones, and the tables of every reading."""
    links = []
    for finding in findings.found:
        name = f"-{finding.name}" if finding.name != "all" else ""
        if finding.longest:
            scores = results.csv_text(finding.file)
            links.append(csv_link(f"scores{name}.csv", "every evaluation; optimist scores reads it", scores))
        games, sure = table_one.per_game_csv(finding.games), intervals.csv_text(finding.certainty)
        links.append(csv_link(f"per_game{name}.csv", "scores and improvement per game", games))
        links.append(csv_link(f"aggregates{name}.csv", "over games, with intervals", sure))
    return links


def _remove_earlier(results: Path, now: set[str]) -> None:
    """Remove what an earlier report wrote about parts and readings that are no longer the study's, or not
    finished: their numbers are of other settings. Files of the user stay."""
    remove(results / "parts.png")
    for folder in results.iterdir():
        if folder.name not in now and (folder / MARK).exists():
            drawn = [folder / f"{name}.png" for name in FIGURES]
            remove(*(folder / name for name in TABLES), *drawn, *folder.glob("bars-*.png"))
            if not any(folder.iterdir()):
                folder.rmdir()


def _normaliser_csv(findings: StudyResults) -> str:
    """The scores for 0 and 100% as CSV that --normaliser reads."""
    by = findings.by
    games = [game for game in by.yardstick_scores if game in by.random_scores]
    rows = [[game, by.random_scores[game], by.yardstick_scores[game]] for game in games]
    return as_csv(Sheet("", ["game", "random", by.yardstick], rows))


def _write_tables(findings: StudyResults, finding: Finding) -> list[Path]:
    folder = findings.out / "results" / finding.name
    gaps = [f"{game} is left out: {gap}" for game, gap in finding.left_out.items()]
    written = table_one.write(folder, finding.rows, finding.games, findings.by, left_out=gaps)
    texts = {
        "scores.csv": results.csv_text(finding.file),
        "aggregates.csv": intervals.csv_text(finding.certainty),
        MARK: as_markdown(intervals.sheet(finding.certainty, finding.evaluations)),
    }
    if findings.offline:
        texts["pairs.csv"] = intervals.pairs_csv(finding.scores)
    for name, text in texts.items():
        write_whole(folder / name, text.encode())
    return [*written, *(folder / name for name in texts)]
