"""The configuration of a run as text, as a fingerprint, and compared with another."""

import hashlib
import json
import tomllib
from typing import Any

from optimist.networks import widths

# No result depends on these: more steps go on from fewer, and every feed gives the same batches. (Whether the
# data is the same is said by dataset.fingerprint, not by its path.)
MAY_CHANGE = {"dataset.path"} | {
    f"training.{name}" for name in ("steps", "checkpoint_seconds", "home", "memory_gib")
}
# Settings that were added later, and the values of runs that do not name them.
LATER = {
    "agent.over_quantiles": "sum",
    "agent.late_action": False,
}
UNKNOWN_BEFORE = ("dataset.recording",)  # written down since; nothing can be compared with it


RENAMED = {"log": "data_per_seed", "home": "feed"}  # of the training, since version 0.1.0
HAD_WIDTHS = ("bcq", "cloned_actor", "ddpg", "td3", "td3_rem")  # agents that had `hidden` then


def updated(config: dict) -> dict:
    """A configuration of version 0.1.0 in today's words."""
    agent, training = _tables(config)
    for old, new in RENAMED.items():
        if old in training:
            training[new] = training.pop(old)
    if isinstance(agent.get("network"), str):
        agent["network"] = {"torso": agent["network"], "hidden": "auto"}
    if "hidden" in agent and agent.get("name") in HAD_WIDTHS:
        agent["network"] = {"hidden": widths(agent.pop("hidden"))}
    return _with_tables(config, agent=agent, training=training)


def _in_first_words(config: dict) -> dict:
    """In the words of version 0.1.0 as far as it had them: checkpoints keep fingerprints made of these."""
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
    """Those of the agent and of the training; empty where a damaged file has something else."""
    found = [config.get(name) for name in ("agent", "training")]
    return [dict(table) if isinstance(table, dict) else {} for table in found]


def _with_tables(config: dict, **tables: dict) -> dict:
    return {n: tables.get(n, value) if isinstance(value, dict) else value for n, value in config.items()}


def fingerprint(config: dict) -> str:
    """A hash of every value that results depend on, the same before and after a way through config.toml."""
    bound = _bound(_in_first_words(tomllib.loads(toml(config))))
    return hashlib.sha256(json.dumps(bound, sort_keys=True).encode()).hexdigest()


def _bound(table: dict, prefix: str = "") -> dict:
    """Without what may change, and without settings that an older version would not have named."""
    found = {}
    for name, value in table.items():
        place = f"{prefix}{name}"
        if place in MAY_CHANGE or place in UNKNOWN_BEFORE or (place in LATER and value == LATER[place]):
            continue
        found[name] = _bound(value, f"{place}.") if isinstance(value, dict) else value
    return found


def changes(before: dict, asked: dict) -> list[str]:
    """Why a run with the configuration `before` is not the one that is asked for, setting by setting; more
    steps are the same run continued."""
    before, asked = updated(before), updated(asked)
    return [
        f"{name}: {_shown(old)} there, {_shown(new)} asked"
        for name, old, new in differences(with_later_settings(before, asked), asked)
        if not (name == "training.steps" and old and new and new > old)
        and name != "dataset.path"  # its fingerprint says whether it is the same data
    ]


def _shown(value: Any) -> str:
    return "nothing" if value is None else repr(value)


def with_later_settings(before: dict, after: dict, prefix: str = "") -> dict:
    """An older configuration with the settings of `after` that it could not name yet."""
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
    """Nested tables of plain values as TOML text (the standard library only reads it)."""
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
    """(name, old, new) of every value that differs, names dotted."""
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from differences(old, new, f"{prefix}{name}.")
        elif old != (list(new) if isinstance(new, tuple) else new):
            yield f"{prefix}{name}", old, new
