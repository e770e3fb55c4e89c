"""`optimist data push|pull` and `optimist run push|pull`: datasets and runs on the Hugging Face Hub."""

import argparse
from pathlib import Path
from typing import Any

from optimist.cli.options import Parser, command, demand_dataset_out, group
from optimist.errors import command_line

NAME = "its name on the Hub, user/name"


def add(commands: Any) -> None:
    actions = group(
        commands,
        "run",
        help="send a run to the Hugging Face Hub, or bring one from there",
        description="Send a run to the Hugging Face Hub, or bring one from there.",
    )
    command(actions, "push", push_run, _push_run_options)
    command(actions, "pull", pull_run, _pull_run_options)


def add_to_data(actions: Any) -> None:
    command(actions, "push", push_data, _push_data_options)
    command(actions, "pull", pull_data, _pull_data_options)


def _push_data_options(parser: Parser, words: list[str]) -> None:
    parser.demand("data", "name a dataset's folder", metavar="DATA", type=Path, help="a dataset's folder")
    parser.demand("repository", f"name {NAME}", metavar="USER/NAME", help=NAME)
    parser.add_argument("--private", action="store_true", help="only you may see it")
    parser.add_argument("--license", default="", metavar="name", help="on its card, such as cc-by-4.0 [none]")


def push_data(options: argparse.Namespace) -> None:
    """Send a dataset to the Hugging Face Hub, with a card made from its facts."""
    from optimist.data import hub

    address = hub.push_data(
        options.data, options.repository, private=options.private, license=options.license
    )
    print(f"sent {options.data} to {address}")


def _pull_data_options(parser: Parser, words: list[str]) -> None:
    parser.demand("repository", f"name {NAME}", metavar="USER/NAME", help=NAME)
    demand_dataset_out(parser)


def pull_data(options: argparse.Namespace) -> None:
    """Bring a dataset from the Hugging Face Hub and check every byte of it."""
    from optimist.data import hub

    dataset = hub.pull_data(options.repository, options.out)
    print(f"{len(dataset):,} steps in {options.out}; see {command_line('data', 'info', options.out)}")


def _push_run_options(parser: Parser, words: list[str]) -> None:
    parser.demand("run_folder", "name a run's folder", metavar="RUN", type=Path, help="a run's folder")
    parser.demand("repository", f"name {NAME}", metavar="USER/NAME", help=NAME)
    parser.add_argument("--private", action="store_true", help="only you may see it")
    parser.add_argument(
        "--checkpoints", action="store_true", help="send those too: others can then continue it"
    )


def push_run(options: argparse.Namespace) -> None:
    """Send a run to the Hugging Face Hub: its settings, results and policies, with a card."""
    from optimist.data import hub
    from optimist.errors import RunError
    from optimist.training.storage.policies import kept_steps
    from optimist.training.storage.run_folder import read_config

    if not (options.run_folder / "config.toml").exists():
        raise RunError(f"{options.run_folder} is not a run: it has no config.toml; name the --out of a run")
    if not options.checkpoints and not kept_steps(options.run_folder):
        raise RunError(f"{options.run_folder} keeps no policies, so nobody could use it: add --checkpoints")
    config = read_config(options.run_folder)
    facts = {
        "agent": config.get("agent", {}).get("name"),
        "environment": config.get("environment"),
        "seeds": ", ".join(map(str, config.get("seeds", []))),
        "steps": config.get("training", {}).get("steps"),
        "dataset": config.get("dataset", {}).get("fingerprint"),
    }
    if config.get("dataset", {}).get("masks"):
        facts["allowed actions"] = "each call of its policies takes a mask of them"
    shared = {"private": options.private, "checkpoints": options.checkpoints}
    address = hub.push_run(options.run_folder, options.repository, facts, **shared)
    print(f"sent {options.run_folder} to {address}")


def _pull_run_options(parser: Parser, words: list[str]) -> None:
    parser.demand("repository", f"name {NAME}", metavar="USER/NAME", help=NAME)
    parser.demand(
        "--out", "name the run's folder: --out RUN", type=Path, metavar="RUN", help="the run's folder"
    )


def pull_run(options: argparse.Namespace) -> None:
    """Bring a run from the Hugging Face Hub."""
    from optimist.data import hub
    from optimist.training.storage.run_folder import read_config

    hub.pull_run(options.repository, options.out)
    use = hub.use_of_run(options.out, read_config(options.out).get("environment"))
    print(f"{options.repository} is in {options.out}; see {use}")
