"""The versions of the code behind a run: of packages, of Python, and of the user's own classes."""

import contextlib
import importlib.metadata
import json
import logging
import platform
from pathlib import Path

import jax

from optimist import envs, plugins
from optimist.data.disk.files import write_whole
from optimist.data.disk.records import json_value

NAME = "versions.json"
PACKAGES = ("optimist-rl", "jax", "jaxlib", "numpy", "pyarrow", "zstandard")
THEN = " then "  # between the versions of the user's code by which a run was made
log = logging.getLogger("optimist")


def record(folder: Path, config: dict, more: dict) -> None:
    """Write versions.json. A run that goes on after its user's code changed names both versions of it."""
    now, before = own_code(config), read_versions(folder)
    for name in other_code(now, before):
        log.warning("%s: the %s changed since it was last started; --restart begins anew", folder, name)
        before[name] += f"{THEN}{now[name]}"
    now |= {name: before[name] for name in now if name in before}
    write_whole(folder / NAME, json.dumps({**versions(), **now, **more}, indent=2).encode())


def read_versions(folder: Path) -> dict[str, str]:
    """The content of versions.json; empty if it is missing or damaged."""
    try:
        content = json_value((folder / NAME).read_text(encoding="utf-8"))
        return {str(name): str(version) for name, version in content.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def own_code(config: dict) -> dict[str, str]:
    """Hashes of the files of the user's own agent, torso and environment, by "code of module"."""
    agent = config.get("agent", {})
    network = agent.get("network")
    torso = network.get("torso") if isinstance(network, dict) else network
    found: dict[str, str] = {}
    for kind, name in {"agents": agent.get("name"), "torsos": torso}.items():
        found |= plugins.code(kind, name) if isinstance(name, str) else {}
    environment = config.get("environment")
    return found | (envs.code(environment) if isinstance(environment, str) else {})


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
