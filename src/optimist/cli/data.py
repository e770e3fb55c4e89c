"""`optimist data ...`: describe, check, import and export datasets."""

import argparse
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from optimist.cli import hub, index
from optimist.cli.options import Parser, arguments_in, command, demand_dataset_out, group
from optimist.cli.settings import add_settings, given
from optimist.cli.views import VIEWS, add_views, view
from optimist.errors import DataError, UsageError, command_line


def add(commands: Any) -> None:
    actions = group(
        commands,
        "data",
        help="describe, check, import or export a dataset",
        description="Describe and check datasets; import and export the formats of other programs.",
    )
    command(actions, "info", info, _info_options)
    command(actions, "report", report, _report_options)
    command(actions, "verify", verify, _verify_options)
    command(actions, "append", append, _append_options)
    command(actions, "import", import_logs, _import_options)
    command(actions, "export", export_logs, _export_options)
    hub.add_to_data(actions)


def _info_options(parser: Parser, words: list[str]) -> None:
    parser.add_argument("data", metavar="DATA", type=Path, help="a dataset's folder")
    parser.add_argument("--json", action="store_true", help="print all facts as JSON")
    add_views(parser)


def info(options: argparse.Namespace) -> None:
    """Describe a dataset, or a view of it, and warn of what may hinder learning from it."""
    refuse_logs(options.data)
    from optimist.cli.dataset_tables import card_table
    from optimist.data.look import card
    from optimist.data.warnings import warnings
    from optimist.studies.sheet import print_sheet

    dataset = view(options)
    facts, found = card(dataset), warnings(dataset)
    if options.json:
        print(json.dumps({**facts, "warnings": found}, indent=2))
        return
    print_sheet(card_table(facts, str(options.data)))
    for line in found:
        print(f"warning: {line}")


def refuse_logs(path: Path) -> None:
    """Raise DataError for logs of another program, which have to be imported first."""
    from optimist.data import formats

    if name := formats.detected(path):
        line = command_line("data", "import", name, path, "--out", "DATA")
        raise DataError(f"{path} holds {name} logs; import them first: {line}")


def _report_options(parser: Parser, words: list[str]) -> None:
    parser.demand("data", "name a dataset's folder", metavar="DATA", type=Path, help="a dataset's folder")
    parser.demand(
        "--out", "name the page: --out page.html", type=Path, metavar="PAGE", help="the page, an HTML file"
    )
    add_views(parser)


def report(options: argparse.Namespace) -> None:
    """Write one page about a dataset, or a view of it: what to know before training."""
    refuse_logs(options.data)
    if options.out.is_dir():
        raise UsageError(f"{options.out} is a folder: name a file, as in --out {options.out / 'page.html'}")
    from optimist.studies.report.data_report import write_data_report

    parts = {name: getattr(options, name) for name in VIEWS if getattr(options, name) is not None}
    words = [word for name, value in parts.items() for word in (f"--{name}", str(value))]
    part = f" ({' '.join(words)})" if words else ""
    title = f"{options.data.resolve().name}{part}"
    line = command_line("data", "report", options.data, *words, "--out", options.out)
    warned = write_data_report(view(options), options.out, title=title, command=line)
    print(f"wrote {options.out}")
    for each in warned:
        print(f"warning: {each}")


def _verify_options(parser: Parser, words: list[str]) -> None:
    parser.add_argument("data", metavar="PATH", help="a dataset's folder, or logs (also at gs://...)")


def verify(options: argparse.Namespace) -> None:
    """Check every byte of a dataset, or of logs in a known format."""
    from optimist.data import formats

    if name := formats.detected(options.data):
        _verify_logs(formats.find(name), options.data)
        return
    from optimist.data.verify import verify as problems_in

    problems = problems_in(Path(options.data))
    for problem in problems:
        print(problem)
    if problems:
        raise DataError(f"{options.data}: {len(problems)} problems; restore those files from a copy")
    print(f"{options.data}: no damage found")


def _verify_logs(format: Any, path: str) -> None:
    from optimist.cli.dataset_tables import report_table
    from optimist.studies.sheet import print_sheet

    report = format.verify(path)
    if report.rows:
        print_sheet(report_table(report, path))
    for problem in report.problems:
        print(problem)
    if report.problems:
        raise DataError(
            f"{path}: {len(report.problems)} problems; optimist data import reports which of them matter"
        )
    print(f"{path}: no damage found")


def _append_options(parser: Parser, words: list[str]) -> None:
    parser.demand("data", "name a dataset's folder", metavar="MORE", type=Path, help="a dataset's folder")
    parser.demand(
        "--to",
        "name the dataset that grows: --to DATA",
        type=Path,
        metavar="DATA",
        help="the dataset that grows",
    )
    add_views(parser)


def append(options: argparse.Namespace) -> None:
    """Append the steps of a dataset, or a view of it, to another one of the same observations and actions."""
    more = view(options)
    whole = more.save(options.to, append=True)
    print(f"{len(more):,} steps appended; {options.to} has {len(whole):,} steps")


def _import_options(parser: Parser, words: list[str]) -> None:
    named = _add_format(parser, words, "read")
    parser.demand(
        "address",
        "name the logs: a path, or an address such as gs://...",
        metavar="ADDRESS",
        help="the logs: a path, or an address such as gs://...",
    )
    demand_dataset_out(parser)
    parser.add_argument("--restart", action="store_true", help="discard an import that was interrupted")
    if len(named) == 1 and named[0] not in index.read()["formats"]:
        from optimist.data import formats

        named = [formats.detect(named[0])]
    _add_settings(parser, named, "read")


def import_logs(options: argparse.Namespace) -> None:
    """Convert logs of another program into a dataset."""
    from optimist.data import formats

    address, format = options.address, formats.find(options.format)
    asked = format.ReadOptions(**given(options, "setting"))
    if hasattr(asked, "environment") and asked.environment is None:
        asked = dataclasses.replace(asked, environment=game_of(address) or None)
    environment = getattr(asked, "environment", None)
    if environment and getattr(asked, "actions_count", 0) is None:
        asked = dataclasses.replace(asked, actions_count=_actions_of(environment))
    if options.restart:
        from optimist.data.intake import discard_unfinished

        discard_unfinished(options.out)
    summary = _with_bar(lambda show: format.read(address, options.out, asked, show))
    first, *lines = summary.lines()
    print(f"{first}: {options.out}", *lines, sep="\n")
    if hasattr(asked, "environment"):
        named = getattr(summary, "environment", None) or asked.environment
        print(f"environment: {named or 'unknown; --environment names one, such as gym/CartPole-v1'}")


def _with_bar(read: Callable[[Callable[[int, int], None]], Any]) -> Any:
    """The result of `read`, with a progress bar once the length is known."""
    from optimist.training.terminal import Bar

    bars: list[Bar] = []

    def show(done: int, total: int) -> None:
        if not bars:
            bars.append(Bar("import", total, "entry", done).__enter__())
        bars[0].update(done)

    try:
        return read(show)
    finally:
        for bar in bars:
            bar.__exit__()


def _actions_of(environment: str) -> int | None:
    """The number of discrete actions of the game, or None; a log may not contain all of them."""
    from optimist import envs

    return envs.spec_of(environment).actions or None


def game_of(address: str) -> str:
    """atari/Breakout for .../Breakout/1, .../Breakout/1/replay_logs and RL Unplugged's .../Breakout/run_1-...
    or .../Breakout_run_1/..., "" for any other address."""
    path = address.partition("://")[2] if "://" in address else str(Path(address).resolve())
    parts = [part for part in path.split("/") if part and part != "replay_logs"]
    games = index.read()["environments"]["atari"]["games"]
    for place, part in enumerate(parts):
        game, _, run = part.partition("_run_")
        after = parts[place + 1] if place + 1 < len(parts) else ""
        is_run = after.startswith("run_") or (after.isdigit() and place + 2 == len(parts))
        is_run |= not after and any(Path(address).glob("run_*-of-*"))
        if game in games and (run.isdigit() or is_run):
            return f"atari/{game}"
    return ""


def _export_options(parser: Parser, words: list[str]) -> None:
    named = _add_format(parser, words, "write")
    parser.demand("data", "name a dataset's folder", metavar="DATA", type=Path, help="a dataset's folder")
    parser.demand(
        "--out",
        "name a folder for the logs: --out FOLDER",
        type=Path,
        metavar="FOLDER",
        help="the folder for the logs",
    )
    add_views(parser)
    _add_settings(parser, named, "write")


def export_logs(options: argparse.Namespace) -> None:
    """Write a dataset, or a view of it, in a format that other programs read."""
    from optimist.data import formats

    format = formats.find(options.format)
    format.check_can_write()
    asked = format.WriteOptions(**given(options, "setting"))
    first, *lines = format.write(view(options), options.out, asked).lines()
    print(f"{first}: {options.out}", *lines, sep="\n")


def _add_format(parser: Parser, words: list[str], action: str) -> list[str]:
    """Add the argument FORMAT, which is detected from logs that are read; return the given arguments."""
    known = {name: entry for name, entry in index.read()["formats"].items() if entry[action] is not None}
    named, detects = arguments_in(words), action == "read"
    parser.epilog = "formats:\n" + index.lines({name: entry["about"] for name, entry in known.items()})
    if len(named) == 2 and named[0] not in known and Path(named[0]).exists():
        if detects:
            right = command_line("data", "import", named[0], "--out", named[1])
            raise UsageError(f"{named[0]} is no format; the dataset's folder follows --out: {right}")
        if named[1] in known:
            right = command_line("data", "export", named[1], named[0])
            raise UsageError(f"the format comes first, then the dataset: {right}")
    if not detects or len(named) != 1 or named[0] in known:
        left_out = "; detected from the logs if left out" if detects else ""
        names = ", ".join(known)
        parser.demand("format", f"name a format: {names}", metavar="FORMAT", help=f"{names}{left_out}")
    return named


def _add_settings(parser: Parser, named: list[str], action: str) -> None:
    """Add the options of the named format, or of all formats if none is named."""
    entries = [index.format(named[0])] if named else list(index.read()["formats"].values())
    parser.set_defaults(format=named[0] if named else None)
    for entry in entries:
        add_settings(parser, index.settings(entry[action] or {}), "setting", hidden=entry is not entries[0])
