"""The configuration of a run as text, as a fingerprint, and compared with another."""

import dataclasses
import hashlib
import json
import tomllib
from typing import Any

from optimist.networks import widths

ANY_WAY = ("loggers",)  # settings that are not written into a configuration
IN_MEMORY = "in memory"  # in place of the folder of the data
# No result depends on these: every feed gives the same batches, and dataset.fingerprint identifies the data.
FREE = {"dataset.path", "dataset.following", "start.path"} | {
    f"training.{name}" for name in ("checkpoint_seconds", "feed", "keep_policies", "memory_gib")
}
MAY_CHANGE = {*FREE, "training.home", "training.steps"}  # a run may continue with more steps
# Settings that were added later, and their values in runs that do not have them.
LATER = {
    "agent.huber_limit": 1.0,
    "agent.over_quantiles": "sum",
    "agent.late_action": False,
    "agent.layer_norm": False,
    "training.epsilon_start": 1.0,
    "training.mix": 0.0,
    "training.reward_scale": 1.0,
    "training.hold_out": 0.0,
    "training.observations": "none",
    "training.precision": "tf32",
    "training.on_divergence": "continue",
}
# Values that give the same results as another: a run that stopped may continue.
SAME = {"training.on_divergence": {"stop": "continue"}}
# Added later, with no value to compare for older runs; only the runs of studies have a part, and only those
# on a log with masks of allowed actions say so.
UNKNOWN_BEFORE = ("dataset.recording", "dataset.part", "dataset.masks")
HASH_LETTERS, HASH_SHOWN = 64, 12
MEANING = {  # of values that are hashes
    "dataset.fingerprint": " (other data, or another part of it)",
    "dataset.recording": " (another log, or it has grown since)",
}
RENAMED = {"log": "data_per_seed", "home": "feed"}  # settings of the training, since version 0.1.0
HAD_WIDTHS = ("bcq", "cloned_actor", "ddpg", "td3", "td3_rem")  # agents with `hidden` in version 0.1.0


def as_config(record) -> dict:
    """A dataclass as a plain table, without fields that are None, because TOML has no null, and without
    those that say how and not what, because a run may continue with others."""
    table = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    return {name: value for name, value in table.items() if value is not None and name not in ANY_WAY}


def updated(config: dict) -> dict:
    """A configuration of version 0.1.0 with the current names of settings."""
    agent, training = _tables(config)
    for old, new in RENAMED.items():
        if old in training:
            training[new] = training.pop(old)
    if isinstance(agent.get("network"), str):
        agent["network"] = {"torso": agent["network"], "hidden": "auto"}
    if "hidden" in agent and agent.get("name") in HAD_WIDTHS:
        agent["network"] = {"hidden": widths(agent.pop("hidden"))}
    return _with_tables(config, agent=agent, training=training)


def _with_first_names(config: dict) -> dict:
    """A configuration with the names of version 0.1.0 where it had them: fingerprints are made of these."""
    config = updated(config)
    agent, training = _tables(config)
    for old, new in RENAMED.items():
        if new in training:
            training[old] = training.pop(new)
    network = agent.get("network")
    if not isinstance(network, dict):
        pass
    elif network.get("hidden") == "auto" and "torso" in network:
        agent["network"] = network["torso"]
    elif "hidden" in network and "torso" not in network:
        agent["hidden"] = agent.pop("network")["hidden"].replace(",", "-")
    return _with_tables(config, agent=agent, training=training)


def _tables(config: dict) -> list[dict]:
    """The tables of the agent and of the training; empty if a damaged file has something else there."""
    found = [config.get(name) for name in ("agent", "training")]
    return [dict(table) if isinstance(table, dict) else {} for table in found]


def _with_tables(config: dict, **tables: dict) -> dict:
    return {n: tables.get(n, value) if isinstance(value, dict) else value for n, value in config.items()}


def fingerprint(config: dict) -> str:
    """A hash of every value that results depend on; it is the same after config.toml is written and read."""
    bound = _bound(_with_first_names(tomllib.loads(toml(config))))
    return hashlib.sha256(json.dumps(bound, sort_keys=True).encode()).hexdigest()


def _bound(table: dict, prefix: str = "") -> dict:
    """The table without settings that may change, and without later settings that have their old values."""
    found = {}
    for name, value in table.items():
        place = f"{prefix}{name}"
        value = _usual(place, value)
        if place in MAY_CHANGE or place in UNKNOWN_BEFORE or (place in LATER and value == LATER[place]):
            continue
        found[name] = _bound(value, f"{place}.") if isinstance(value, dict) else value
    return found


def changes(before: dict, asked: dict) -> list[str]:
    """The settings in which the configurations of a saved and a requested run differ. More steps are no
    difference, nor are settings that no result depends on: the run continues."""
    before, asked = updated(before), updated(asked)
    return [
        f"{name}: {_shown(old)} saved, {_shown(new)} requested{MEANING.get(name, '')}"
        for name, old, new in differences(
            with_later_settings(before, asked), with_later_settings(asked, before)
        )
        if not (name == "training.steps" and type(old) is type(new) is int and 0 < old < new)
        and _usual(name, old) != _usual(name, new)
        and name not in FREE
        and name.partition(".")[0] != "inputs"  # they follow from the data and training.observations
    ]


def as_saved(asked: dict, before: dict) -> dict:
    """The requested configuration; what equals a saved value is written as it is there, because 2 and 2.0 are
    one setting and have two fingerprints."""
    found = {}
    for name, value in asked.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            found[name] = as_saved(value, old)
        else:
            found[name] = old if name in before and old == value else value
    return found


def _usual(place: str, value: Any) -> Any:
    """The value that stands for all that give the same results."""
    return SAME[place].get(value, value) if place in SAME and isinstance(value, str) else value


def _shown(value: Any) -> str:
    shown = value[:HASH_SHOWN] if isinstance(value, str) and len(value) == HASH_LETTERS else value
    return "nothing" if shown is None else repr(shown)


def with_later_settings(before: dict, after: dict, prefix: str = "") -> dict:
    """An older configuration with the settings of `after` that did not exist in its version."""
    found = dict(before)
    for name, value in after.items():
        place = f"{prefix}{name}"
        if isinstance(value, dict) and isinstance(found.get(name), dict):
            found[name] = with_later_settings(found[name], value, f"{place}.")
        elif name not in found and place in LATER:
            found[name] = LATER[place]
        elif name not in found and place in UNKNOWN_BEFORE:
            found[name] = value
    return found


def toml(table: dict, prefix: str = "") -> str:
    """Nested tables of plain values as TOML text (the standard library can only read TOML)."""
    lines = [f"{name} = {_toml_value(value)}" for name, value in table.items() if not isinstance(value, dict)]
    for name, value in table.items():
        if isinstance(value, dict):
            lines += ["", f"[{prefix}{name}]", toml(value, f"{prefix}{name}.").strip("\n")]
    return "\n".join(lines).strip("\n") + "\n"


def _toml_value(value) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml_value, value))}]"
    plain = isinstance(value, (str, bool, int))
    return json.dumps(value, ensure_ascii=False) if plain else repr(float(value))


def differences(before: dict, after: dict, prefix: str = ""):
    """(name, old, new) of every value that differs; names have dots."""
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from differences(old, new, f"{prefix}{name}.")
        elif old != (list(new) if isinstance(new, tuple) else new):
            yield f"{prefix}{name}", old, new
