"""`optimist collect`: an agent plays, learns and is recorded.

Slow imports are inside the functions, so that help and errors appear at once.
"""

import argparse
from typing import Any

from optimist.cli import index
from optimist.cli.experiment import (
    add_choices,
    add_environments,
    add_former_names,
    add_training_settings,
    asked,
    with_options,
)
from optimist.cli.options import Parser, arguments_in, command, demand_dataset_out, seeds, value_in
from optimist.cli.settings import settings_of
from optimist.errors import command_line

ENVIRONMENTS = (
    "atari/<Game> as in atari/Breakout, minatar/<game> as in minatar/breakout, "
    "mujoco/<Task> as in mujoco/Hopper, or gym/<id>"
)


def add(commands: Any) -> None:
    command(commands, "collect", collect, _collect_options)


def _collect_options(parser: Parser, words: list[str]) -> None:
    environment = "".join(arguments_in(words)[:1])
    parser.demand("environment", f"name an environment: {ENVIRONMENTS}", metavar="ENV", help=ENVIRONMENTS)
    demand_dataset_out(parser, more="; the agent's run is in its subfolder agent")
    parser.add_argument("--agent", metavar="name", help="see optimist agents [dqn, or the preset's agent]")
    parser.add_argument(
        "--seeds",
        "--seed",
        type=seeds,
        metavar="0,1,2",
        help="random seeds; several agents play at once, each in its own lanes [0, or those of --from]",
    )
    parser.add_argument(
        "--from",
        dest="start_from",
        metavar="RUN[:step]",
        help="go on from a run: its agent, parameters and log; step: a number, last, best or chosen [last]",
    )
    add_choices(parser)
    name, preset = index.player(value_in(words, "--agent"), value_in(words, "--preset"))
    add_training_settings(parser, "collection", name, preset, value_in(words, "--recipe"))
    families, family = index.read()["environments"], environment.partition("/")[0]
    if environment and family not in families:  # of another package, or a mistake
        from optimist import envs

        options = envs.options_of(environment)
        families = {family: {"settings": settings_of(options) if options else {}}}
    add_environments(parser, {family: families[family]} if environment else families)
    add_former_names(parser)


def collect(options: argparse.Namespace) -> None:
    """Let an online agent play and record everything. The same command again continues."""
    from optimist import envs

    environment, start = with_options(options.environment, options), None
    spec = envs.spec_of(environment)
    from optimist.training.beginning import beginning, split
    from optimist.training.online import OnlineTraining
    from optimist.training.resolve import resolve_collection

    if options.start_from:
        path, step = split(options.start_from)
        start = beginning(path, step=step, seeds=options.seeds)
    found = resolve_collection(spec, options.agent, start=start, **asked(options))
    OnlineTraining(
        found.agent,
        environment,
        found.settings,
        out=options.out,
        seeds=start.seeds if start else options.seeds or (0,),
        restart=options.restart,
        start=start,
    ).run()
    print(f"recorded in {options.out}; see: {command_line('data', 'info', options.out)}")
