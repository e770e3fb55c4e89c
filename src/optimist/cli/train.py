"""`optimist train`: learns from logged play.

Slow imports are inside the functions, so that help and errors appear at once.
"""

import argparse
from pathlib import Path
from typing import Any

from optimist.cli import index
from optimist.cli.data import refuse_logs
from optimist.cli.experiment import (
    add_choices,
    add_environments,
    add_former_names,
    add_training_settings,
    asked,
    with_options,
)
from optimist.cli.options import Parser, arguments_in, command, seeds, value_in
from optimist.cli.views import add_views, part_of
from optimist.errors import DataError, UsageError, command_line


def add(commands: Any) -> None:
    command(commands, "train", train, _train_options)


def _train_options(parser: Parser, words: list[str]) -> None:
    name = next(iter(arguments_in(words)), None)
    _refuse_exchanged(arguments_in(words))
    parser.epilog = index.preset_line(name) if name else index.agent_lines()
    known = ", ".join(index.read()["agents"])
    parser.demand("agent", f"name an agent: {known}", metavar="AGENT", help="see optimist agents")
    parser.demand(
        "data",
        "name a dataset's folder, such as one made by optimist collect",
        metavar="DATA",
        type=Path,
        help="a dataset's folder",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="RUN",
        help="the run's folder [runs/AGENT-DATA, and letters for a part of the data]",
    )
    parser.add_argument("--seeds", type=seeds, default=(0,), metavar="0,1,2", help="trained together [0]")
    parser.add_argument(
        "--environment", metavar="ENV", help="where to evaluate, or none [the data's environment]"
    )
    add_choices(parser)
    add_views(parser)
    add_training_settings(parser, "training", name, value_in(words, "--preset"), value_in(words, "--recipe"))
    add_environments(parser, index.read()["environments"])
    add_former_names(parser)


def _refuse_exchanged(words: list[str]) -> None:
    """Raise UsageError if the dataset comes first, and then an agent."""
    if len(words) == 2 and Path(words[0]).is_dir() and not Path(words[1]).exists():
        known = index.read()["agents"]
        first, second = (word.replace("-", "_").lower() for word in words)
        if first not in known and second in known:
            right = command_line("train", words[1], words[0])
            raise UsageError(f"the agent comes first, then the dataset: {right}")


def train(options: argparse.Namespace) -> None:
    """Learn from logged data alone. The same command again continues an unfinished run."""
    from optimist.data.dataset import Dataset

    try:
        dataset = Dataset.open(options.data)
    except DataError:
        refuse_logs(options.data)  # a better message, if it is a log of another program
        raise
    from optimist import agents
    from optimist.training.offline import OfflineTraining, usual_environment, usual_folder
    from optimist.training.resolve import resolve_training
    from optimist.training.storage.alarms import read_alarms
    from optimist.training.storage.policies import kept_steps

    agent, settings = resolve_training(dataset.spec, options.agent, **asked(options))
    environment = usual_environment(dataset, options.environment)
    out = options.out or usual_folder(agent, part_of(dataset, options))
    OfflineTraining(
        agent,
        dataset,
        settings,
        out=out,
        seeds=options.seeds,
        environment=with_options(environment, options),
        restart=options.restart,
        part=lambda part: part_of(part, options),
    ).run()
    if not environment:
        _print_estimators(out)
        print(f"trained in {out}; its curves as a page: {command_line('report', out)}")
        if kept_steps(out):
            print(f"to choose a policy by the log: {command_line('select', out)}")
        healthy = ["--step", "healthy"] if read_alarms(out) else []
        line = command_line("export", out, *healthy, "--to", "policy.onnx")
        print(f"to use it elsewhere: {line}")
        return
    _print_scores(agents.short_name(agent), out, part_of(dataset, options))
    print(f"trained in {out}; to watch it: {command_line('play', out, '--out', 'video.gif')}")


def _print_estimators(run: Path) -> None:
    from optimist.studies.scores.curves import estimator_sheet
    from optimist.studies.sheet import print_sheet
    from optimist.training.storage.metrics import read_metrics

    found = estimator_sheet(read_metrics(run))
    if found.rows:
        print_sheet(found)


def _print_scores(name: str, run: Path, dataset: Any) -> None:
    from optimist.data.look import card
    from optimist.studies.scores.curves import curves, sheet
    from optimist.studies.sheet import print_sheet

    facts = card(dataset)
    names = {
        "best_policy_return": "best policy in the data",
        "return_best_tenth": "best tenth of the episodes",
    }
    best = "best_policy_return" if facts["best_policy_return"] is not None else "return_best_tenth"
    levels = {names[best]: facts[best], "average behaviour": facts["return_mean"]}
    print_sheet(sheet({name: curves(run)}, levels))
