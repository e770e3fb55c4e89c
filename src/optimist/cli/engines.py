"""The engines of `optimist study run`, their options, and the pool that each makes of them."""

import argparse
import re
from pathlib import Path
from typing import Any

from optimist.errors import UsageError, did_you_mean

ADDRESS = "name an address, such as s3://bucket/study"
ENGINES = {  # with their options
    "local": ("workers", "runs_per_gpu"),
    "ray": ("address", "cpus_per_run", "gpus_per_run", "store", "scratch"),
    "slurm": (
        *("cpus_per_run", "gpus_per_run", "partition", "time", "memory_per_run"),
        *("runs_at_once", "sbatch", "detach", "store", "scratch"),
    ),
}


def _minutes(text: str) -> int:
    """ "90" and "1:30" are minutes; days are written as in SLURM, "2-00:00"."""
    days, dash, clock = text.rpartition("-")
    parts = clock.split(":")
    if not re.fullmatch(r"(\d+-)?\d+(:\d\d)?", text) or (dash and len(parts) < 2):
        raise UsageError(f'"{text}" is not a time: write minutes, H:MM or D-HH:MM')
    minutes = int(parts[0]) * (60 if len(parts) == 2 else 1) + (int(parts[1]) if len(parts) == 2 else 0)
    if not (total := minutes + 24 * 60 * int(days or 0)):
        raise UsageError("a time limit of 0 leaves no time to run")
    return total


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name and equals for name, equals, _ in pairs):
        raise UsageError(f'"{text}" is not a list of options: write account=lab,qos=long')
    return tuple((name.lstrip("-"), value) for name, _, value in pairs)


def check_engine(options: argparse.Namespace) -> None:
    """Raise UsageError for an unknown engine, or an option that is another engine's."""
    if options.engine not in ENGINES:
        raise UsageError(f'there is no engine "{options.engine}": {did_you_mean(options.engine, ENGINES)}')
    for engine, names in ENGINES.items():
        used = [name for name in names if getattr(options, name) is not None]
        foreign = [name for name in used if name not in ENGINES[options.engine]]
        if foreign:
            raise UsageError(f"--{foreign[0].replace('_', '-')} is for another engine: add --engine {engine}")
    if options.scratch and not options.store:
        raise UsageError("--scratch is for runs at an address: add --store, or leave out --scratch")
    if options.store and "://" not in options.store:
        raise UsageError(f"--store {options.store} is not an address: {ADDRESS}")


def pool_of(options: argparse.Namespace, out: Path, jobs: int) -> Any:
    """The workers that the options ask for."""
    if options.engine == "local":
        from optimist.studies.engines.local import local_pool

        return local_pool(out, jobs, options.workers, options.runs_per_gpu)
    if options.engine == "slurm":
        from optimist.studies.engines.slurm import SlurmPool

        flags = {"restart": options.restart, "detach": bool(options.detach)}
        return SlurmPool(out, _shares(options), store=_store(options), **flags)
    from optimist.studies.engines.cluster import RayPool

    shares = {"cpus": options.cpus_per_run, "gpus": options.gpus_per_run}
    chosen = {name: share for name, share in shares.items() if share is not None}
    return RayPool(out, options.address or "auto", store=_store(options), **chosen)


def _store(options: argparse.Namespace) -> Any:
    from optimist.studies.engines.places import Address

    return Address(options.store, options.scratch and options.scratch.absolute()) if options.store else None


def _shares(options: argparse.Namespace) -> Any:
    from optimist.studies.engines.slurm import Shares

    for name in ("cpus_per_run", "gpus_per_run"):
        share = getattr(options, name)
        if share is not None and (share != int(share) or share < (name == "cpus_per_run")):
            raise UsageError(f"--{name.replace('_', '-')} {share:g}: SLURM gives whole ones to a run")
    asked = {
        "partition": options.partition,
        "minutes": options.time and _minutes(options.time),
        "memory_gib": options.memory_per_run,
        "cpus": options.cpus_per_run and int(options.cpus_per_run),
        "gpus": options.gpus_per_run and int(options.gpus_per_run),
        "at_once": options.runs_at_once,
        "more": options.sbatch and _pairs(options.sbatch),
    }
    return Shares(**{name: value for name, value in asked.items() if value is not None})
