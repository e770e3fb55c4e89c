"""selection.json: which policy of a run was chosen, and why. `optimist select` writes it."""

import logging
import os
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optimist.data.disk.files import naming, write_whole
from optimist.data.disk.records import record, sealed, unsealed
from optimist.errors import RunError, StorageError, UndecidedError, command_line, in_one_line
from optimist.training.storage.checkpoint import kept_steps

NAME = "selection.json"
VERSION = 1
SHIP = "ship"  # how the answer begins if the log shows that the policy is better than today's
log = logging.getLogger("optimist")


@dataclass(frozen=True)
class Candidate:
    """A kept policy that was judged."""

    step: int
    seed: int
    scores: dict[str, float | None]


@dataclass(frozen=True)
class Chosen:
    """The policy to ship, and whose it is."""

    step: int
    seed: int
    run: str = ""


@dataclass(frozen=True)
class Choice:
    """What readers of the file need; it has more."""

    rule: str
    updates: int
    notes: list[str]
    answer: str
    chosen: Chosen | None
    candidates: list[Candidate]  # the best first
    fingerprint: str | None = None  # of the run in whose folder the file is


def refuse_read_only(runs: Iterable[str | Path]) -> None:
    """Raise StorageError for a folder that cannot hold the choice, before hours are spent on it."""
    for run in runs:
        if os.path.isdir(run) and not os.access(run, os.W_OK):
            raise StorageError(
                f"{run} is read-only, and select writes its choice into it: select in a copy of it"
            )


def write_selection(folder: Path, content: dict[str, Any]) -> None:
    """Write the content whole or not at all, with its version and its hash."""
    write_whole(folder / NAME, sealed({"version": VERSION, **content}, indent=1).encode())


def read_selection(folder: Path) -> dict[str, Any] | None:
    """The content of the file in this folder, after a check of every byte; None if there is none."""
    file = Path(folder) / NAME
    if not file.exists():
        return None
    try:
        with naming(file):
            content = unsealed(file.read_bytes())
        version = content.get("version")
        if version == VERSION:
            record(Choice, content)
    except ValueError as problem:
        raise RunError(f"{file} is damaged: run optimist select again, or remove it") from problem
    if version != VERSION:
        raise RunError(f"{file} has version {in_one_line(version)}, not {VERSION}: run optimist select again")
    return content


def chosen_policy(folder: Path, fingerprint: str) -> tuple[int, int]:
    """The step and the seed that were chosen among the policies of the run in this folder."""
    found, select = read_selection(folder), command_line("select", folder)
    if found is None:
        raise RunError(f'{folder} has no "chosen" step yet: run {select}')
    if found.get("fingerprint") != fingerprint:
        raise RunError(f"{folder / NAME} is about another run: run {select} again")
    if not is_of_all(found, kept_steps(folder)):
        raise RunError(f"{folder} has kept policies since one was chosen: run {select} again")
    chosen = found["chosen"]
    if chosen is None:
        raise UndecidedError(
            f"{folder}: {found['answer']}. To choose the first policy all the same: {select} --anyway"
        )
    if not found.get("here", True):
        other = in_one_line(chosen.get("run"))
        raise RunError(f"the policy that was chosen is of {other}: name that run, with --step chosen")
    if not str(found["answer"]).startswith(SHIP):
        said = in_one_line(found["answer"])
        log.warning("%s: chosen with --anyway; select said: %s", folder, said)
    return int(chosen["step"]), int(chosen["seed"])


def is_of_all(content: dict[str, Any], kept: Iterable[int]) -> bool:
    """Were the policies of all these steps candidates? A run that was continued since keeps later ones."""
    return set(kept) <= {each["step"] for each in content["candidates"]}


def chosen_steps(content: dict[str, Any], among: Mapping[int, Container[int]]) -> dict[int, int]:
    """The chosen step of each seed of a run, among these steps of the seed."""
    chosen: dict[int, int] = {}
    for each in content["candidates"]:  # the best first
        if each["step"] in among.get(each["seed"], ()):
            chosen.setdefault(each["seed"], each["step"])
    return chosen
