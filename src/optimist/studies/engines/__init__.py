"""Engines run the jobs of a study. The folder is the registry: each file in it is an engine.

An engine is a module with the members of `Engine`; modules whose name begins with an underscore are not
engines. An engine of another package is such a module, or a class with these functions as static methods:
`optimist.plugins` finds it by an entry point of `optimist.engines` or as `module:Name`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from optimist import plugins

if TYPE_CHECKING:
    from optimist.studies.job import Job


class Engine(Protocol):
    """One engine. Its options are a frozen dataclass whose fields are `Annotated` with their help. It may
    also have a function `bring` with the arguments of `run`, which is called before a study is checked and
    brings what was begun elsewhere."""

    Options: Any

    @staticmethod
    def run(jobs: "list[Job]", out: Path, options: Any) -> None:
        """Run these jobs. Each comes after those in the list that it needs; others that it needs are done.

        `optimist study work` with the folder `out` and the name of a job runs it, continues it and notes its
        error. The folder records what is done, so a stopped study can continue with another engine."""
        ...


def available() -> list[str]:
    """The names of the engines in this folder."""
    return plugins.own("engines")


def find(name: str) -> Engine:
    """The engine with this name, from this folder or another package."""
    return cast(Engine, plugins.find("engines", name))
