"""What a study found, written beside its runs: tables as Markdown and CSV, figures as PNG."""

from pathlib import Path

from optimist.data.files import make_folder, write_whole
from optimist.studies import paper_figures, results, table_one
from optimist.studies.figures import save_png
from optimist.studies.job import Job
from optimist.studies.normalisation import (
    Normaliser,
    better_curve,
    median_curve,
    own,
    seed_means,
    seed_medians,
)
from optimist.studies.plan import plain
from optimist.studies.score_files import ScoreFile, complete
from optimist.studies.scores import RECENT


def own_normaliser(jobs: list[Job], out: Path) -> Normaliser:
    """0 is the worse and 1 the better of random play and the player that was logged."""
    return own(
        results.players_scores(jobs, out),
        results.random_scores(jobs, out),
        provenance="the last tenth of the logged online agent's play, and random play, of this study",
    )


def write_findings(jobs: list[Job], out: Path, read_at: dict[str, int]) -> list[Path]:
    """Everything that the finished runs allow; games that some agent has not finished are left out of the
    tables, and named there."""
    by, written = own_normaliser(jobs, out), []
    stops: dict[str, int | None] = {**read_at} or {"all": None}
    for part in results.parts(jobs):
        for label, until in stops.items():
            name = "-".join(plain(word) for word in (part, label) if word != "all") or "all"
            file, gaps = complete(results.score_file(jobs, out, part, until), leave_out=True)
            folder = out / "results" / name
            make_folder(folder)
            write_whole(folder / "scores.csv", results.csv_text(file).encode())
            rows = table_one.table_one(file, by)
            notes = [
                *table_one.notes(rows, by),
                *(f"{game} is left out: {gap}" for game, gap in gaps.items()),
            ]
            games = table_one.per_game(file, by)
            written += table_one.write(folder, rows, games, by, RECENT, notes)
            written += _figures(file, by, folder)
    return written


def _figures(file: ScoreFile, by: Normaliser, folder: Path) -> list[Path]:
    means = {agent: seed_means(by_game) for agent, by_game in file.agents.items()}
    drawn = {
        "medians.png": paper_figures.medians(
            {agent: median_curve(curves, by) for agent, curves in means.items()},
            {agent: seed_medians(by_game, by) for agent, by_game in file.agents.items()},
            {agent: better_curve(curves, by) for agent, curves in means.items()},
            yardstick=by.yardstick,
            games=len(file.games),
            xlabel="gradient updates",
        ),
        "curves.png": paper_figures.curve_grid(
            {game: {agent: by_game[game] for agent, by_game in file.agents.items()} for game in file.games},
            {
                game: {by.yardstick: by.yardstick_scores[game], "random": by.random_scores[game]}
                for game in file.games
            },
            xlabel="gradient updates",
        ),
    }
    for name, figure in drawn.items():
        save_png(figure, folder / name)
    return [folder / name for name in drawn]
