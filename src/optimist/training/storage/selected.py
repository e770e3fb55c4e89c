"""selection.json: which policy of a run was chosen, and why. `optimist select` writes it."""

import json
import os
import zlib
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

from optimist.data.disk.files import naming, write_whole
from optimist.data.disk.records import json_value
from optimist.errors import RunError, StorageError, UndecidedError, command_line, in_one_line
from optimist.training.storage.policies import kept_steps
from optimist.training.values import fits

NAME = "selection.json"
VERSION = 1
CHECK = "crc"
KINDS = {"rule": str, "updates": int, "notes": list[str], "answer": str, "fingerprint": str | None}


def refuse_read_only(runs: Iterable[str | Path]) -> None:
    """Raise StorageError for a folder that cannot hold the choice, before hours are spent on it."""
    for run in runs:
        if os.path.isdir(run) and not os.access(run, os.W_OK):
            raise StorageError(
                f"{run} is read-only, and select writes its choice into it: select in a copy of it"
            )


def write_selection(folder: Path, record: dict[str, Any]) -> None:
    """Write the record whole or not at all, with its version and a checksum."""
    write_whole(folder / NAME, _text({"version": VERSION, **record}).encode())


def read_selection(folder: Path) -> dict[str, Any] | None:
    """The record in this folder, after a check of every byte; None if there is none."""
    file = Path(folder) / NAME
    if not file.exists():
        return None
    try:
        with naming(file):
            text = file.read_text(encoding="utf-8")
        content = json_value(text)
        found = {name: value for name, value in content.items() if name != CHECK}
        version = found.get("version")
        valid = text == _text(found) and (version != VERSION or _is_whole(found))
    except (ValueError, TypeError, KeyError, AttributeError):
        valid = False
    if not valid:
        raise RunError(f"{file} is damaged: run optimist select again, or remove it")
    if version != VERSION:
        raise RunError(f"{file} has version {in_one_line(version)}, not {VERSION}: run optimist select again")
    return found


def _is_whole(record: dict[str, Any]) -> bool:
    """Does the record have what its readers need? A right checksum does not say so."""
    chosen = record["chosen"]
    policies = [*([] if chosen is None else [chosen]), *record["candidates"]]
    return (
        all(fits(record.get(name), kind) for name, kind in KINDS.items())
        and all(fits(each[name], int) for each in policies for name in ("step", "seed"))
        and all(fits(each["scores"], dict[str, float | None]) for each in record["candidates"])
    )


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
        raise RunError(f"the policy that was chosen is of {in_one_line(chosen.get('run'))}: name that run")
    return int(chosen["step"]), int(chosen["seed"])


def is_of_all(record: dict[str, Any], kept: Iterable[int]) -> bool:
    """Were the policies of all these steps candidates? A run that was continued since keeps later ones."""
    return set(kept) <= {each["step"] for each in record["candidates"]}


def chosen_steps(record: dict[str, Any], among: Mapping[int, Container[int]]) -> dict[int, int]:
    """The chosen step of each seed of a run, among these steps of the seed."""
    chosen: dict[int, int] = {}
    for each in record["candidates"]:  # the best first
        if each["step"] in among.get(each["seed"], ()):
            chosen.setdefault(each["seed"], each["step"])
    return chosen


def _text(record: dict[str, Any]) -> str:
    plain = json.dumps(record, indent=1)
    return json.dumps({**record, CHECK: f"{zlib.crc32(plain.encode()):08x}"}, indent=1)
