"""The candidates: every kept policy of every seed of the given runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from optimist.agents import short_name
from optimist.errors import RunError, UsageError
from optimist.training.run import Run, load_run
from optimist.training.storage.configuration import fingerprint
from optimist.training.storage.policies import kept_steps, load_policy
from optimist.training.storage.run_folder import read_config, refuse_unless_run


class Candidate(NamedTuple):
    """One policy: one seed of a run at a step whose parameters were kept."""

    source: int  # the number of its run
    step: int
    seed: int


@dataclass(frozen=True)
class Source:
    """A run whose kept policies are candidates."""

    run: Run  # at one of its kept steps
    config: dict[str, Any]

    @property
    def path(self) -> Path:
        return self.run.path

    @property
    def agent(self) -> str:
        return short_name(self.run.learner.agent)

    @property
    def training(self) -> dict[str, Any]:
        settings: dict[str, Any] = self.config["training"]
        return settings

    @property
    def recording(self) -> str:
        """The fingerprint of the whole dataset, of which the run may have learned a part."""
        data = self.config["dataset"]
        return str(data.get("recording", data["fingerprint"]))

    @property
    def own_logs(self) -> bool:
        """Did each seed learn from the log of its own player?"""
        return self.training.get("data_per_seed") == "own"

    def params(self, step: int) -> dict:
        """The parameters of every seed at a kept step."""
        shapes = self.run.learner.shapes(self.run.seeds).params
        found: dict = load_policy(self.path, step, shapes, fingerprint(self.config))
        return found


def read_sources(paths: Iterable[str | Path], allow: Iterable[str] = ()) -> list[Source]:
    """The runs in these folders; they must have learned from the same data and keep policies."""
    folders = [Path(path) for path in paths]
    if not folders:
        raise UsageError("name at least one run: optimist select RUN [RUN ...]")
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise UsageError("a run is named twice: name each run once")
    sources = [_source(folder, tuple(allow)) for folder in folders]
    first = sources[0]
    for other in sources[1:]:
        if other.recording != first.recording:
            raise RunError(
                f"{other.path} learned from {other.run.data}, {first.path} from {first.run.data}: "
                "their values cannot be compared; select among runs of one dataset"
            )
    return sources


def _source(folder: Path, allow: tuple[str, ...]) -> Source:
    refuse_unless_run(folder)
    config = read_config(folder)
    if "fingerprint" not in config.get("dataset", {}) or "training" not in config:
        raise RunError(f"{folder} learned from its own play, not from a dataset: select among offline runs")
    steps = kept_steps(folder)
    if not steps:
        raise RunError(
            f"{folder} keeps no policies: train again with --keep-policies above 0, into another folder"
        )
    return Source(load_run(folder, allow, steps[0]), config)


def candidates_of(sources: Sequence[Source]) -> list[Candidate]:
    return [
        Candidate(number, step, seed)
        for number, source in enumerate(sources)
        for step in source.run.kept
        for seed in source.run.seeds
    ]
