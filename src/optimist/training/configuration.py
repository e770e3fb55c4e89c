"""The configuration of a run as text, as a fingerprint, and compared with another."""

import hashlib
import json
import tomllib

# No result depends on these: more steps go on from fewer, and every home gives the same batches. (Whether the
# data is the same is said by dataset.fingerprint, not by its path.)
MAY_CHANGE = {"dataset.path"} | {
    f"training.{name}" for name in ("steps", "checkpoint_seconds", "home", "memory_gib")
}


def fingerprint(config: dict) -> str:
    """A hash of every value that results depend on, the same before and after a way through config.toml."""
    read_back = tomllib.loads(toml(config))
    bound = {
        name: {key: value for key, value in table.items() if f"{name}.{key}" not in MAY_CHANGE}
        if isinstance(table, dict)
        else table
        for name, table in read_back.items()
    }
    return hashlib.sha256(json.dumps(bound, sort_keys=True).encode()).hexdigest()


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
