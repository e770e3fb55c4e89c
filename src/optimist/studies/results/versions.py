"""With what the runs of a study were made, read from their folders; a mixture is named."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from optimist.errors import some_of
from optimist.studies.job import Job

OF_ITS_GAME = ("dataset", "rom_md5")  # differ from game to game, as they should
NAMED = 3  # runs that a warning names; the others it counts


@dataclass(frozen=True)
class Version:
    """One thing's versions, each with the names of the runs that had it, the commonest first."""

    name: str
    runs: dict[str, list[str]]

    @property
    def mixed(self) -> bool:
        return len(self.runs) > 1

    def told(self) -> str:
        """'jax 0.10.2 in 298 runs, 0.11.0 in 2 (runs/a, runs/b)'."""
        first, *others = self.runs.items()
        counts = [f"{first[0]} in {len(first[1])} runs"]
        counts += [f"{version} in {len(names)} ({some_of(names, NAMED)})" for version, names in others]
        return f"{self.name} {', '.join(counts)}"


def read_versions(jobs: Sequence[Job], out: Path) -> list[Version]:
    """Of every finished run; runs that do not say count as "unknown"."""
    found: dict[str, dict[str, list[str]]] = {}
    said = {job.name: _said(job.run_folder(out)) for job in jobs if job.done(out)}
    for name in dict.fromkeys(name for versions in said.values() for name in versions):
        if name not in OF_ITS_GAME:
            for run, versions in said.items():
                if name in versions or not versions:
                    found.setdefault(name, {}).setdefault(versions.get(name, "unknown"), []).append(run)
    return [
        Version(name, dict(sorted(runs.items(), key=lambda item: -len(item[1]))))
        for name, runs in found.items()
    ]


def _said(run: Path) -> dict[str, str]:
    try:
        record = json.loads((run / "versions.json").read_text(encoding="utf-8"))
        return {str(name): str(version) for name, version in record.items()}
    except (OSError, ValueError, AttributeError):
        return {}
