"""`optimist evaluate` and `play`: scores and a film of a trained policy."""

import argparse
import logging
from pathlib import Path
from typing import Any

from optimist.cli.options import Parser, command, number, whole_number
from optimist.errors import StorageError

log = logging.getLogger("optimist")


def add(commands: Any) -> None:
    command(commands, "evaluate", evaluate, _evaluate_options)
    command(commands, "play", play, _play_options)


def _evaluate_options(parser: Parser, words: list[str]) -> None:
    parser.add_argument("run_folder", metavar="RUN", type=Path, help="a run's folder")
    add_choice_of_policy(parser)
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
        help="one row per episode [RUN/evaluation.csv; for another policy than the last evaluation-STEP.csv]",
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
    from optimist.cli.tables import evaluation_table
    from optimist.studies.sheet import print_sheet
    from optimist.training.loading import load_run
    from optimist.training.recipes import recipe_for
    from optimist.training.storage.run_folder import write_episodes

    run = load_run(options.run_folder, options.allow, options.step)
    usual = recipe_for(run.learner.spec).training
    episodes = 100 if options.episodes is None else options.episodes
    usual_steps = usual.evaluation_steps if options.episodes is None else None
    steps = usual_steps if options.steps is None else options.steps
    epsilon = usual.epsilon if options.epsilon is None else options.epsilon
    rows = run.evaluate(episodes, epsilon, options.environment, steps)
    print_sheet(evaluation_table(run.step, rows))
    name = "evaluation.csv" if options.step == "last" else f"evaluation-{run.step}.csv"
    out = options.out or options.run_folder / name
    try:
        write_episodes(out, rows)
    except (OSError, StorageError) as problem:
        if options.out:
            raise
        log.warning("the episodes were not saved (%s): name another file with --out CSV", problem)
    else:
        print(f"every episode is in {out}")


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
    from optimist.training.loading import load_run
    from optimist.training.play.video import check_film, write_film

    check_film(options.out)
    run = load_run(options.run_folder, options.allow, options.step)
    pictures = run.pictures(options.seed, options.frames, environment=options.environment)
    write_film(options.out, pictures, options.fps)
    print(f"wrote {options.out}")
