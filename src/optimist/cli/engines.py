"""The engines of `optimist study run` and their options."""

import argparse
from typing import Any

from optimist.cli import index
from optimist.cli.options import Parser, value_in
from optimist.cli.settings import add_settings, given
from optimist.errors import UsageError

USUAL = "local"


def add_engine(parser: Parser, words: list[str]) -> None:
    """Add --engine and the options of the engine that the words name."""
    chosen, known = value_in(words, "--engine") or USUAL, index.read()["engines"]
    names = ", ".join(known)
    parser.add_argument(
        "--engine", default=USUAL, metavar="name", help=f"{names}; its options are in its help [{USUAL}]"
    )
    group = parser.add_argument_group(f"with --engine {chosen}")
    add_settings(group, index.settings(index.engine(chosen)), "engine")
    for name in known:
        add_settings(parser, index.settings(known[name]), f"engine {name}", hidden=True)


def engine_options(options: argparse.Namespace) -> Any:
    """The engine and its options, or UsageError for an option of another engine."""
    for other in index.read()["engines"]:
        for name in given(options, f"engine {other}"):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is for another engine: add --engine {other}")
    from optimist.studies import engines

    engine = engines.find(options.engine)
    return engine, engine.Options(**given(options, "engine"))
