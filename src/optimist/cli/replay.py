"""`optimist data import`, `export`, and `verify` for logs in the formats of other programs."""

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from optimist.cli.options import Parser, whole_number
from optimist.errors import DataError, UsageError


def import_logs(words: list[str]) -> None:
    from optimist.data import formats

    parser = Parser(
        "optimist data import",
        description="Turn logs of another program into a dataset. The same command goes on after a stop.",
        epilog=_listing(),
    )
    parser.add_argument(
        "logs", metavar="[FORMAT] ADDRESS", nargs="+", help="a path, or gs://... and the like"
    )
    parser.add_argument("--out", type=Path, metavar="DATA", help="the dataset's folder")
    format = _format(words, parser.prog, formats.detect)
    add_options(parser, format.ReadOptions)
    options = parser.options(words)
    address = _address(options.logs, "ADDRESS")
    if options.out is None:
        raise UsageError("say where to keep the data: --out DATA")
    from optimist.training.progress import Bar

    given = chosen(format.ReadOptions, options)
    if hasattr(given, "environment") and given.environment is None:
        given = dataclasses.replace(given, environment=game_of(address))
    environment = getattr(given, "environment", None)
    if environment and getattr(given, "actions", 0) is None:
        given = dataclasses.replace(given, actions=_actions_of(environment))
    bar: Bar | None = None

    def show(done: int, total: int) -> None:
        nonlocal bar
        bar = bar or Bar("import", total, "entry", done).__enter__()
        bar.update(done)

    try:
        first, *lines = format.read(address, options.out, given, show).lines()
    finally:
        if bar:
            bar.__exit__()
    print(f"{first}: {options.out}", *lines, sep="\n")
    if hasattr(given, "environment"):
        unknown = "not known; import again elsewhere with --environment atari/<Game> to name it"
        print(f"environment: {given.environment or unknown}")


def _actions_of(environment: str) -> int:
    """What the game takes: a log need not hold every action, and one that the game lacks is an error."""
    from optimist import envs

    return envs.make(environment).spec.actions


def game_of(address: str) -> str:
    """atari/Breakout for .../Breakout/1 or .../Breakout/1/replay_logs, and nothing where that is a guess."""
    from optimist.envs.atari import games

    path = address.partition("://")[2] if "://" in address else str(Path(address).resolve())
    parts = [part for part in path.split("/") if part and part != "replay_logs"]
    if len(parts) > 1 and parts[-1].isdigit() and parts[-2] in games():
        return f"atari/{parts[-2]}"
    return ""


def export_logs(words: list[str]) -> None:
    from optimist.cli.data import add_views, view

    parser = Parser(
        "optimist data export",
        description="Write a dataset, or a view of it, in a format that other programs read.",
        epilog=_listing(),
    )
    parser.add_argument("logs", metavar="FORMAT DATA", nargs="+", help="a format, and a dataset's folder")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where the logs are written")
    add_views(parser)
    format = _format(words, parser.prog)
    add_options(parser, format.WriteOptions)
    options = parser.options(words)
    options.data = Path(_address(options.logs, "DATA"))
    if options.out is None:
        raise UsageError("say where to write the logs: --out FOLDER")
    first, *lines = format.write(view(options), options.out, chosen(format.WriteOptions, options)).lines()
    print(f"{first}: {options.out}", *lines, sep="\n")


def verify_logs(format: str, path: str) -> None:
    from optimist.cli.tables import print_table, report_table
    from optimist.data import formats

    report = formats.find(format).verify(path)
    if report.rows:
        print_table(report_table(report, path))
    for problem in report.problems:
        print(problem)
    if report.problems:
        raise DataError(f"{path}: {len(report.problems)} problems; an import tells which of them matter")
    print(f"{path}: every file is whole, and in order")


def add_options(parser: argparse.ArgumentParser, kind: Any) -> None:
    """An option for each field of a format's options; its help is in the field's metadata."""
    for field in dataclasses.fields(kind):
        shown = "" if field.default is None else f" [{field.default}]"
        reader, name = (str, "name") if "str" in str(field.type) else (whole_number, "int")
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=reader,
            metavar=name,
            default=field.default,
            help=field.metadata["help"] + shown,
        )


def chosen(kind: Any, options: argparse.Namespace) -> Any:
    return kind(**{field.name: getattr(options, field.name) for field in dataclasses.fields(kind)})


def _listing() -> str:
    from optimist.data import formats

    return "formats:\n" + "\n".join(f"  {name}: {formats.about(name)}" for name in formats.available())


def _format(words: list[str], prog: str, detect=None) -> Any:
    """The format that the first word names, or that the logs have where only they are named."""
    from optimist.data import formats

    named = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if not word.startswith("-") and not (before.startswith("--") and "=" not in before)
    ]
    known = formats.available()
    if {"-h", "--help"} & set(words):
        return formats.find(named[0] if named and named[0] in known else known[0])
    if not named:
        raise UsageError(f"name a format: {', '.join(known)}; see {prog} --help")
    if len(named) == 1 and named[0] not in known and detect:
        return formats.find(detect(named[0]))
    return formats.find(named[0])


def _address(words: list[str], what: str) -> str:
    """The last of the words, of which the first may be a format's name."""
    from optimist.data import formats

    if len(words) > 2:
        raise UsageError(f'"{words[2]}" is one word too many: give FORMAT {what}')
    if len(words) == 1 and words[0] in formats.available():
        raise UsageError(f"the following arguments are required: {what}")
    return words[-1]
