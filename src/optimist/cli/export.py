"""`optimist export`: a policy as a file for other programs."""

import argparse
from pathlib import Path
from typing import Any

from optimist.cli.evaluate import add_choice_of_policy
from optimist.cli.options import Parser, command


def add(commands: Any) -> None:
    command(commands, "export", export, _options)


def _options(parser: Parser, words: list[str]) -> None:
    parser.add_argument("run_folder", metavar="RUN", type=Path, help="a run's folder")
    parser.demand(
        "--to",
        "name the file: --to policy.npz, policy.onnx or policy.stablehlo",
        type=Path,
        metavar="FILE",
        help="policy.npz (needs only NumPy), policy.onnx or policy.stablehlo",
    )
    add_choice_of_policy(parser)
    parser.add_argument("--seed", type=int, metavar="int", help="which seed's policy [the first]")
    parser.add_argument(
        "--data", type=Path, metavar="DATA", help="logged observations for the check [the data of the run]"
    )


def export(options: argparse.Namespace) -> None:
    """Write a trained policy to a file that needs neither Optimist nor JAX, and check its actions."""
    from optimist.training.export import export_policy
    from optimist.training.run import load_run

    run = load_run(options.run_folder, options.allow, options.step)
    print(*export_policy(run, options.to, seed=options.seed, data=options.data).lines(), sep="\n")
