"""The configuration of a run as text, as a fingerprint, and compared with another."""

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Iterator
from typing import Any

ANY_WAY = ("loggers",)  # settings that are not written into a configuration
IN_MEMORY = "in memory"  # in place of the folder of the data
# No result depends on these: every feed gives the same batches, and dataset.fingerprint identifies the data.
FREE = {"dataset.path", "dataset.following", "start.path"} | {
    f"training.{name}" for name in ("checkpoint_seconds", "feed", "keep_policies", "memory_gib")
}
PART = "dataset.part"  # only the runs of studies say it
MAY_CHANGE = {*FREE, PART, "training.steps"}  # a run may continue with more steps
# Values that give the same results as another: a run that stopped may continue.
SAME = {"training.on_divergence": {"stop": "continue"}}
HASH_LETTERS, HASH_SHOWN = 64, 12
MEANING = {  # of values that are hashes
    "dataset.fingerprint": " (other data, or another part of it)",
    "dataset.recording": " (another log, or it has grown since)",
}


def as_config(record: Any) -> dict[str, Any]:
    """A dataclass as a plain table, without fields that are None, because TOML has no null, and without
    those that say how and not what, because a run may continue with others."""
    table = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    return {name: value for name, value in table.items() if value is not None and name not in ANY_WAY}


def fingerprint(config: dict) -> str:
    """A hash of every value that results depend on; it is the same after config.toml is written and read."""
    bound = _bound(tomllib.loads(toml(config)))
    return hashlib.sha256(json.dumps(bound, sort_keys=True).encode()).hexdigest()


def _bound(table: dict, prefix: str = "") -> dict:
    """The table without settings that may change."""
    bound = {}
    for name, value in table.items():
        place = f"{prefix}{name}"
        if place not in MAY_CHANGE:
            bound[name] = _bound(value, f"{place}.") if isinstance(value, dict) else _usual(place, value)
    return bound


def _usual(place: str, value: Any) -> Any:
    """The value that stands for all that give the same results: 2 and 2.0 are one setting."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return SAME[place].get(value, value) if place in SAME and isinstance(value, str) else value


def changes(before: dict, requested: dict) -> list[str]:
    """The settings in which the configurations of a saved and a requested run differ. More steps are no
    difference, nor are settings that no result depends on: the run continues."""
    return [
        f"{name}: {_shown(old)} saved, {_shown(new)} requested{MEANING.get(name, '')}"
        for name, old, new in differences(before, requested)
        if not (name == "training.steps" and type(old) is type(new) is int and 0 < old < new)
        and not (name == PART and None in (old, new))
        and _usual(name, old) != _usual(name, new)
        and name not in FREE
        and name.partition(".")[0] != "inputs"  # they follow from the data and training.observations
    ]


def _shown(value: Any) -> str:
    shown = value[:HASH_SHOWN] if isinstance(value, str) and len(value) == HASH_LETTERS else value
    return "nothing" if shown is None else repr(shown)


def differences(before: dict, after: dict, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(name, old, new) of every value that differs; names have dots."""
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from differences(old, new, f"{prefix}{name}.")
        elif old != (list(new) if isinstance(new, tuple) else new):
            yield f"{prefix}{name}", old, new


def toml(table: dict, prefix: str = "") -> str:
    """Nested tables of plain values as TOML text (the standard library can only read TOML)."""
    lines = [f"{name} = {_toml_value(value)}" for name, value in table.items() if not isinstance(value, dict)]
    for name, value in table.items():
        if isinstance(value, dict):
            lines += ["", f"[{prefix}{name}]", toml(value, f"{prefix}{name}.").strip("\n")]
    return "\n".join(lines).strip("\n") + "\n"


def _toml_value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml_value, value))}]"
    plain = isinstance(value, (str, bool, int))
    return json.dumps(value, ensure_ascii=False) if plain else repr(float(value))
