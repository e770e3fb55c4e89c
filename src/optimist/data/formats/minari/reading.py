"""Import of a Minari dataset: by its id in the local store, or by its folder."""

from collections.abc import Callable
from pathlib import Path

from optimist.data.formats import _incoming
from optimist.data.formats._incoming import Imported, Report
from optimist.data.formats.minari.minari_log import MASK, MinariLog, ReadOptions, folder_of
from optimist.data.rules.log import Asked
from optimist.errors import DataError, in_one_line, some_of

SHOWN = 5  # names in a note


def detect(address: str | Path) -> bool:
    return "://" not in str(address) and folder_of(address) is not None


def read(
    address: str | Path,
    out: str | Path,
    options: ReadOptions = ReadOptions(),  # noqa: B008  (frozen)
    progress: Callable[[int, int], None] | None = None,
) -> Imported:
    """Import every episode of a dataset, by its id in the local store or by its folder."""
    log = MinariLog(address, options)
    provenance = {
        "format": "minari",
        "source": in_one_line(log.metadata.get("dataset_id", Path(address).name)),
        **log.ours.names,
    }
    return _incoming.bring_in(log, out, _asked(log, options), provenance, progress, _notes(log, options))


def verify(address: str | Path) -> Report:
    """Report the first problem that an import would raise; JPEG images are not one."""
    rows: list[tuple[str, ...]] = []
    try:
        log = MinariLog(address, ReadOptions(jpeg=True))
        shown = (
            "dataset_id",
            "total_episodes",
            "total_steps",
            "minari_version",
            "observation_space",
            "action_space",
        )
        rows = [(name, in_one_line(log.metadata.get(name, ""))) for name in shown]
        problems = _incoming.problems(log, _asked(log, ReadOptions(jpeg=True)))
    except DataError as problem:
        problems = [str(problem)]
    return Report(problems, rows, ("metadata", "value"))


def _asked(log: MinariLog, options: ReadOptions) -> Asked:
    environment = options.environment or log.environment
    return Asked(environment=environment, stack=options.stack, channels=options.channels)


def _notes(log: MinariLog, options: ReadOptions) -> list[str]:
    lossy = options.jpeg and any(leaf.may_be_jpeg for leaf in log.observation.leaves())
    lossy &= bool(log.metadata.get("jpeg_encoding", True))
    infos = [name for name in log.infos() if not (name == MASK and log.reads_masks)]
    return [
        *([f"infos of the steps left out: {some_of(infos, SHOWN)}"] if infos else []),
        *(["the images were stored as JPEG: they differ from the recorded ones"] if lossy else []),
        *([f"parts of the observations left out: {','.join(log.dropped)}"] if log.dropped else []),
    ]
