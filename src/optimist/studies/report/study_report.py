"""Writes the page of a study, which needs no network or other file, and its tables and figures."""

from collections.abc import Sequence
from pathlib import Path

from optimist.data.disk.files import make_folder, remove, write_whole
from optimist.errors import command_line
from optimist.studies.report import figures, study_tables
from optimist.studies.report.interactive import chart_data
from optimist.studies.report.page import CHART, Link, csv_link, data_link, inline, page, picture
from optimist.studies.report.study_figures import Drawn, draw, tall_intervals
from optimist.studies.report.study_warnings import warnings
from optimist.studies.results import runs as results
from optimist.studies.results.findings import Finding, StudyResults, find
from optimist.studies.results.logs import remember
from optimist.studies.results.provenance import read_versions
from optimist.studies.scores import intervals, table_one
from optimist.studies.scores.normalisation import Normaliser
from optimist.studies.sheet import Sheet, as_csv, as_markdown, records_csv

MARK = "aggregates.md"  # a table that only the report of a study has
TABLES = (
    *("table.md", "table.csv", "per_game.csv", "scores.csv"),
    *("aggregates.csv", MARK, "pairs.csv"),
)
FILM = Path("results") / "film.gif"  # if the study films an agent


def write_page(out: Path, page: Path, by: Normaliser | None = None) -> list[str]:
    """Write only the page of a study, outside its folder, which may be read-only; return the warnings."""
    study = find(out, by)
    drawn, left_out = draw(study, are_files=False)
    warned = warnings(study)
    options = ["--out", page, *(["--normaliser", by.name] if by else [])]
    make_folder(page.parent)
    write_whole(
        page, study_page(study, drawn, left_out, warned, command_line("study", "report", out, *options))
    )
    return [*warned, *left_out]


def write_findings(out: Path, by: Normaliser | None = None) -> tuple[list[Path], list[str]]:
    """Write the page, and the tables and figures in `results`; return their paths and the warnings."""
    study, folder = find(out, by), out / "results"
    make_folder(folder)
    written = [path for finding in study.findings for path in _write_tables(study, finding)]
    write_whole(folder / "normaliser.csv", _normaliser_csv(study.by).encode())
    remember(study.logs, out)
    remove(folder / "selection.csv")  # of an earlier report
    _remove_earlier(folder, {finding.name for finding in study.findings})
    if study.losses:
        write_whole(folder / "selection.csv", records_csv(study.losses).encode())
    drawn, left_out = draw(study)
    warned = warnings(study)
    options = ["--normaliser", by.name] if by else []
    command = command_line("study", "report", out, *options)
    write_whole(out / "report.html", study_page(study, drawn, left_out, warned, command))
    return [out / "report.html", *written, *(each.path for each in drawn)], [*warned, *left_out]


def study_page(
    study: StudyResults, drawn: Sequence[Drawn], left_out: Sequence[str], warned: Sequence[str], command: str
) -> bytes:
    film = study.out / FILM
    wide = [each for each in drawn if each.name == "intervals"][-1]
    pictures = [(each, picture(each.title, each.caption, each.svg, each.inches)) for each in drawn]
    versions = read_versions(study.done, study.out)
    return page(
        "study.html.j2",
        scripts=CHART,
        title=study.record.title,
        headline=study_tables.headline(study),
        warnings=warned,
        intervals=[inline(wide.svg), inline(tall_intervals(study, study.longest[-1]))],
        intervals_title=wide.title,
        intervals_caption=wide.caption,
        curves=chart_data(study),
        static_curves=[shown for each, shown in pictures if each.name in ("iqm", "curves")],
        figures=[
            shown for each, shown in pictures if each.name not in ("iqm", "curves") and each is not wide
        ],
        left_out=left_out,
        tables={name: sheet for name, sheet in study_tables.tables(study).items() if sheet.rows},
        film=data_link("image/gif", film.read_bytes()) if film.exists() else None,
        facts=study_tables.facts(study),
        versions={version.name: " and ".join(version.runs) for version in versions},
        offline=study.offline,
        selected=bool(study.selections),
        command=study.record.command,
        page_command=command,
        downloads=_downloads(study),
    )


def _downloads(study: StudyResults) -> list[Link]:
    """All scores of the longest readings, which contain the shorter ones, and the tables of every reading."""
    links = []
    for finding in study.findings:
        name = f"-{finding.name}" if finding.name != "all" else ""
        if finding.longest:
            scores = results.csv_text(finding.file)
            links.append(csv_link(f"scores{name}.csv", "every evaluation; optimist scores reads it", scores))
        games, sure = records_csv(finding.game_rows), records_csv(finding.certainty)
        links.append(csv_link(f"per_game{name}.csv", "scores and improvement per game", games))
        links.append(csv_link(f"aggregates{name}.csv", "over games, with intervals", sure))
    return links


def _remove_earlier(results: Path, now: set[str]) -> None:
    """Remove what an earlier report wrote about parts and readings that are no longer the study's, or not
    finished: their numbers are of other settings. Files of the user stay."""
    remove(results / "parts.png")
    for folder in results.iterdir():
        if folder.name not in now and (folder / MARK).exists():
            drawn = [folder / f"{name}.png" for name in figures.available()]
            remove(*(folder / name for name in TABLES), *drawn, *folder.glob("bars-*.png"))
            if not any(folder.iterdir()):
                folder.rmdir()


def _normaliser_csv(by: Normaliser) -> str:
    """The scores for 0 and 100% as CSV that --normaliser reads."""
    games = [game for game in by.yardstick_scores if game in by.random_scores]
    rows = [[game, by.random_scores[game], by.yardstick_scores[game]] for game in games]
    return as_csv(Sheet("", ["game", "random", by.yardstick], rows))


def _write_tables(study: StudyResults, finding: Finding) -> list[Path]:
    folder = study.out / "results" / finding.name
    gaps = [f"{game} is left out: {gap}" for game, gap in finding.left_out.items()]
    written = table_one.write(folder, finding.rows, finding.game_rows, study.by, left_out=gaps)
    texts = {
        "scores.csv": results.csv_text(finding.file),
        "aggregates.csv": records_csv(finding.certainty),
        MARK: as_markdown(intervals.sheet(finding.certainty, finding.evaluations)),
    }
    if study.offline:
        texts["pairs.csv"] = records_csv(intervals.pairs(finding.scores))
    for name, text in texts.items():
        write_whole(folder / name, text.encode())
    return [*written, *(folder / name for name in texts)]
