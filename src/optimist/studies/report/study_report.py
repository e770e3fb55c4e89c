"""Writes the page of a study, which needs no network or other file, and its tables and figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from optimist import plugins
from optimist.data.disk.files import make_folder, remove, write_whole
from optimist.errors import command_line
from optimist.studies.job import Standing
from optimist.studies.report import study_tables
from optimist.studies.report.figures import intervals as intervals_figure
from optimist.studies.report.page import CHART, csv_link, data_link, picture, write_html
from optimist.studies.report.study_figures import Drawn, chart_data, draw
from optimist.studies.results.findings import StudyResults, csv_text, find
from optimist.studies.results.logs import remember
from optimist.studies.scores import intervals
from optimist.studies.scores.normalisation import Normaliser
from optimist.studies.sheet import Sheet, as_csv, as_markdown, records_csv

MARK = "aggregates.md"  # a table that only the report of a study has
TABLES = ("table.md", "table.csv", "per_game.csv", "scores.csv", "aggregates.csv", MARK, "pairs.csv")
FILM = Path("results") / "film.gif"  # if the study films an agent


def write_page(out: Path, page: Path, by: Normaliser | None = None) -> list[str]:
    """Write only the page of a study, outside its folder, which may be read-only; return the warnings."""
    study = find(out, by)
    drawn, left_out = draw(study, are_files=False)
    return _write_html(study, page, drawn, left_out, ["--out", page, *_options(by)])


def write_findings(
    out: Path, by: Normaliser | None = None, now: Mapping[str, Standing] | None = None
) -> tuple[list[Path], list[str]]:
    """Write the page, and the tables and figures in `results`; return their paths and the warnings. `now` is
    what the folders of the jobs hold, if the caller has looked already."""
    study, folder, page = find(out, by, now), out / "results", out / "report.html"
    make_folder(folder)
    written = []
    for finding in study.findings:
        written += finding.write(folder / finding.name)
        texts = {
            "scores.csv": csv_text(finding.file),
            MARK: as_markdown(intervals.sheet(finding.certainty, finding.evaluations)),
        }
        if study.offline:
            texts["pairs.csv"] = records_csv(intervals.pairs(finding.scores))
        for name, text in texts.items():
            write_whole(folder / finding.name / name, text.encode())
            written.append(folder / finding.name / name)
    # The scores for 0 and 100%, as --normaliser reads them.
    games = [game for game in study.by.yardstick_scores if game in study.by.random_scores]
    scores = [[game, study.by.random_scores[game], study.by.yardstick_scores[game]] for game in games]
    normaliser = as_csv(Sheet("", ["game", "random", study.by.yardstick], scores))
    write_whole(folder / "normaliser.csv", normaliser.encode())
    remember(study.logs, out)
    remove(folder / "selection.csv")  # of an earlier report
    _remove_earlier(folder, {finding.name for finding in study.findings})
    if study.selections:
        from optimist.studies.results.regrets import losses  # it loads the estimators of select

        if rows := losses(study):
            write_whole(folder / "selection.csv", records_csv(rows).encode())
    drawn, left_out = draw(study)
    warned = _write_html(study, page, drawn, left_out, _options(by))
    return [page, *written, *(each.path for each in drawn)], warned


def _options(by: Normaliser | None) -> list[str]:
    return ["--normaliser", by.name] if by else []


def _write_html(
    study: StudyResults, path: Path, drawn: Sequence[Drawn], left_out: list[str], options: Sequence
) -> list[str]:
    """Write the page and return its warnings; `options` are those of its command."""
    film, finding = study.out / FILM, study.longest[-1]
    (*_, wide) = [each.picture for each in drawn if each.name == "intervals"]
    tall = picture(wide.title, wide.caption, intervals_figure.draw(study, finding, tall=True))
    pictures = [each for each in drawn if each.picture is not wide]
    versions, warned = study_tables.read_versions(study.done, study.out), study_tables.warnings(study)
    downloads = []  # all scores of the longest readings, which contain the shorter ones, and every table
    for each in study.findings:
        name = f"-{each.name}" if each.name != "all" else ""
        if each.longest:
            scores = csv_text(each.file)
            downloads.append(
                csv_link(f"scores{name}.csv", "every evaluation; optimist scores reads it", scores)
            )
        games, sure = records_csv(each.game_rows), records_csv(each.certainty)
        downloads.append(csv_link(f"per_game{name}.csv", "scores and improvement per game", games))
        downloads.append(csv_link(f"aggregates{name}.csv", "over games, with intervals", sure))
    write_html(
        path,
        "study.html.j2",
        scripts=CHART,
        title=study.record.title,
        headline=study_tables.headline(study),
        warnings=warned,
        intervals=[wide, tall],
        curves=chart_data(study),
        static_curves=[each.picture for each in pictures if each.name in ("iqm", "curves")],
        figures=[each.picture for each in pictures if each.name not in ("iqm", "curves")],
        left_out=left_out,
        tables={name: sheet for name, sheet in study_tables.tables(study).items() if sheet.rows},
        film=data_link("image/gif", film.read_bytes()) if film.exists() else None,
        facts=study_tables.facts(study),
        versions={name: " and ".join(runs) for name, runs in versions.items()},
        offline=study.offline,
        selected=bool(study.selections),
        command=study.record.command,
        page_command=command_line("study", "report", study.out, *options),
        downloads=downloads,
    )
    return [*warned, *left_out]


def _remove_earlier(results: Path, now: set[str]) -> None:
    """Remove what an earlier report wrote about parts and readings that are no longer the study's, or not
    finished: their numbers are of other settings. Files of the user stay."""
    remove(results / "parts.png")
    for folder in results.iterdir():
        if folder.name not in now and (folder / MARK).exists():
            drawn = [folder / f"{name}.png" for name in plugins.own("figures")]
            remove(*(folder / name for name in TABLES), *drawn, *folder.glob("bars-*.png"))
            if not any(folder.iterdir()):
                folder.rmdir()
