"""What a run was made with: its configuration as text, as a fingerprint and compared with another, and the
versions of the code (versions.json): of packages, of Python, and of the user's own classes."""

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import json
import logging
import platform
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from optimist import envs, plugins
from optimist.data.disk.files import write_whole
from optimist.data.disk.records import json_value

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
VERSIONS = "versions.json"
PACKAGES = ("optimist-rl", "jax", "jaxlib", "numpy", "pyarrow", "zstandard")
THEN = " then "  # between the versions of the user's code by which a run was made
log = logging.getLogger("optimist")


def as_config(record: Any) -> dict[str, Any]:
    """A dataclass as a plain table, without fields that are None, because TOML has no null, and without
    those that say how and not what, because a run may continue with others."""
    table = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    return {name: value for name, value in table.items() if value is not None and name not in ANY_WAY}


def fingerprint(config: dict) -> str:
    """A hash of every value that results depend on; it is the same after config.toml is written and read."""

    def bound(table: dict, prefix: str = "") -> dict:
        """The table without settings that may change."""
        return {
            name: bound(value, f"{prefix}{name}.")
            if isinstance(value, dict)
            else _usual(f"{prefix}{name}", value)
            for name, value in table.items()
            if f"{prefix}{name}" not in MAY_CHANGE
        }

    text = json.dumps(bound(tomllib.loads(toml(config))), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _usual(place: str, value: Any) -> Any:
    """The value that stands for all that give the same results: 2 and 2.0 are one setting."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return SAME[place].get(value, value) if place in SAME and isinstance(value, str) else value


def changes(before: dict, requested: dict) -> list[str]:
    """The settings in which the configurations of a saved and a requested run differ. More steps are no
    difference, nor are settings that no result depends on: the run continues."""

    def shown(value: Any) -> str:
        is_hash = isinstance(value, str) and len(value) == HASH_LETTERS
        return "nothing" if value is None else repr(value[:HASH_SHOWN] if is_hash else value)

    return [
        f"{name}: {shown(old)} saved, {shown(new)} requested{MEANING.get(name, '')}"
        for name, old, new in differences(before, requested)
        if not (name == "training.steps" and type(old) is type(new) is int and 0 < old < new)
        and not (name == PART and None in (old, new))
        and _usual(name, old) != _usual(name, new)
        and name not in FREE
        and name.partition(".")[0] != "inputs"  # they follow from the data and training.observations
    ]


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


def record_versions(folder: Path, config: dict, more: dict) -> None:
    """Write versions.json. A run that goes on after its user's code changed names both versions of it."""
    now, before = own_code(config), read_versions(folder)
    for name in other_code(now, before):
        log.warning("%s: the %s changed since it was last started; --restart begins anew", folder, name)
        before[name] += f"{THEN}{now[name]}"
    now |= {name: before[name] for name in now if name in before}
    write_whole(folder / VERSIONS, json.dumps({**versions(), **now, **more}, indent=2).encode())


def read_versions(folder: Path) -> dict[str, str]:
    """The content of versions.json; empty if it is missing or damaged."""
    try:
        content = json_value((folder / VERSIONS).read_text(encoding="utf-8"))
        return {str(name): str(version) for name, version in content.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def own_code(config: dict) -> dict[str, str]:
    """Hashes of the files of the user's own agent, torso and environment, by "code of module"."""
    agent = config.get("agent", {})
    network = agent.get("network")
    torso = network.get("torso") if isinstance(network, dict) else network
    code: dict[str, str] = {}
    for kind, name in {"agents": agent.get("name"), "torsos": torso}.items():
        code |= plugins.hashes(kind, name) if isinstance(name, str) else {}
    environment = config.get("environment")
    return code | (envs.code(environment) if environment and isinstance(environment, str) else {})


def other_code(now: dict[str, str], before: dict[str, str]) -> list[str]:
    """The names whose code is not what it was when the run was last started."""
    return [name for name in now if name in before and before[name].rpartition(THEN)[2] != now[name]]


def versions() -> dict:
    """The versions of packages and Python, and the device, with which a result is made."""
    installed = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[name.removesuffix("-rl")] = importlib.metadata.version(name)
    device = jax.devices()[0]
    return {
        "python": platform.python_version(),
        **installed,
        "device": device.device_kind,
        "platform": device.platform,
    }
