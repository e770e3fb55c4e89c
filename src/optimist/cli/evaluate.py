"""`optimist evaluate` and `play`: scores and a film of a trained policy."""

import argparse
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optimist.cli.options import Parser, command, number, whole_number
from optimist.errors import RunError, StorageError, UsageError

if TYPE_CHECKING:
    from optimist.training.run import Run

BETWEEN_LOOKS = 1.0  # seconds
log = logging.getLogger("optimist")


def add(commands: Any) -> None:
    command(commands, "evaluate", evaluate, _evaluate_options)
    command(commands, "play", play, _play_options)


def _evaluate_options(parser: Parser, words: list[str]) -> None:
    parser.add_argument("run_folder", metavar="RUN", type=Path, help="a run's folder")
    add_choice_of_policy(parser)
    parser.add_argument(
        "--follow",
        action="store_true",
        help="score every kept policy, also of a run that still trains, until it is done",
    )
    parser.add_argument("--episodes", type=whole_number, metavar="int", help="episodes per seed [100]")
    parser.add_argument(
        "--steps",
        type=whole_number,
        metavar="int",
        help="instead of --episodes: full episodes until this many steps [125_000 for Atari]",
    )
    parser.add_argument(
        "--epsilon",
        type=number,
        metavar="number",
        help="share of random actions [0.001; 0 for action vectors]",
    )
    parser.add_argument(
        "--environment", metavar="ENV", default="", help="where to play [the data's environment]"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="CSV",
        help="one row per episode [RUN/evaluation.csv; for another policy than the last evaluation-STEP.csv; "
        "with --follow evaluation-kept.csv]",
    )


def add_choice_of_policy(parser: Parser) -> None:
    parser.add_argument(
        "--step",
        default="last",
        metavar="STEP",
        help="a step whose policy was kept, chosen, best, healthy or last [last]",
    )
    parser.add_argument(
        "--allow", action="append", default=[], metavar="module", help="a module that the run may import"
    )


def evaluate(options: argparse.Namespace) -> None:
    """Score every seed of a run in full episodes."""
    from optimist.cli.tables import evaluation_line, evaluation_table
    from optimist.studies.sheet import print_sheet
    from optimist.training.run import load_run

    if options.follow:
        rows, name = list[Any](), "evaluation-kept.csv"
        for step in _kept_steps(options):
            found = _scores(load_run(options.run_folder, options.allow, step), options)
            rows += found
            out = _written(rows, options, name)
            print(evaluation_line(step, found) + f", in {out}" * bool(out), flush=True)
        return
    run = load_run(options.run_folder, options.allow, options.step)
    rows = _scores(run, options)
    print_sheet(evaluation_table(run.step, rows))
    name = "evaluation.csv" if options.step == "last" else f"evaluation-{run.step}.csv"
    if out := _written(rows, options, name):
        print(f"every episode is in {out}")


def _kept_steps(options: argparse.Namespace) -> Iterator[int]:
    """The steps of the policies that the run keeps, as it keeps them, until it is done."""
    from optimist.training.storage.policies import kept_steps
    from optimist.training.storage.run_folder import is_done, refuse_unless_run

    if options.step != "last":
        raise UsageError("--follow scores every kept policy: leave out --step")
    refuse_unless_run(options.run_folder)
    seen, done = set[int](), False
    while not done:
        done = is_done(options.run_folder)  # asked first: the last policy is kept before the run is done
        new = sorted(set(kept_steps(options.run_folder)) - seen)
        yield from new
        seen.update(new)
        time.sleep(0 if done or new else BETWEEN_LOOKS)
    if not seen:
        raise RunError(f"{options.run_folder} kept no policy: train with --keep-policies above 0")


def _scores(run: "Run", options: argparse.Namespace) -> list:
    """One row for each episode; what is not said is as in the recipe of this kind of environment."""
    from optimist.training.recipes import recipe_for

    usual = recipe_for(run.learner.spec).training
    episodes = 100 if options.episodes is None else options.episodes
    usual_steps = usual.evaluation_steps if options.episodes is None else None
    steps = usual_steps if options.steps is None else options.steps
    epsilon = usual.evaluation_epsilon if options.epsilon is None else options.epsilon
    return run.evaluate(episodes, epsilon, options.environment, steps)


def _written(rows: list, options: argparse.Namespace, name: str) -> Path | None:
    """The file of the episodes; None if it was not asked for and cannot be written."""
    from optimist.training.storage.run_folder import write_episodes

    out = options.out or options.run_folder / name
    try:
        write_episodes(out, rows)
    except (OSError, StorageError) as problem:
        if options.out:
            raise
        log.warning("the episodes were not saved (%s): name another file with --out CSV", problem)
        return None
    return out


def _play_options(parser: Parser, words: list[str]) -> None:
    parser.add_argument("run_folder", metavar="RUN", type=Path, help="a run's folder")
    add_choice_of_policy(parser)
    parser.add_argument(
        "--environment", metavar="ENV", default="", help="where to play [the data's environment]"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("video.gif"), metavar="FILM", help="a .gif or .mp4 file [video.gif]"
    )
    parser.add_argument("--seed", type=int, metavar="int", help="which seed's policy [the first]")
    parser.add_argument(
        "--frames", type=whole_number, default=400, metavar="int", help="frames in the film [400]"
    )
    parser.add_argument("--fps", type=int, default=15, metavar="int", help="frames per second [15]")


def play(options: argparse.Namespace) -> None:
    """Film a trained policy as an animated GIF or an MP4."""
    from optimist.training.play.video import check_film, write_film
    from optimist.training.run import load_run

    check_film(options.out)
    run = load_run(options.run_folder, options.allow, options.step)
    pictures = run.pictures(options.seed, options.frames, environment=options.environment)
    write_film(options.out, pictures, options.fps)
    print(f"wrote {options.out}")
