"""alarms.json: the seeds of a run that diverged."""

from dataclasses import asdict, dataclass
from pathlib import Path

from optimist.data.disk.files import naming, remove, write_whole
from optimist.data.disk.records import record, sealed, unsealed
from optimist.errors import RunError

NAME = "alarms.json"


@dataclass(frozen=True)
class Alarm:
    """A seed that diverged."""

    step: int  # at which it was noticed
    healthy: int  # step of its last healthy policy
    value: float | None  # the size that 95 of 100 values did not exceed; none if it was not finite
    bound: float  # the largest size of a return-to-go in its log


def write_alarms(run: Path, alarms: dict[int, Alarm]) -> None:
    """Write the alarms of these seeds; without any there is no file."""
    if alarms:
        content = {str(seed): asdict(alarm) for seed, alarm in alarms.items()}
        write_whole(run / NAME, sealed(content).encode())
    else:
        remove(run / NAME)


def read_alarms(run: Path) -> dict[int, Alarm]:
    """The seeds that diverged."""
    file = Path(run) / NAME
    if not file.exists():
        return {}
    try:
        with naming(file):
            content = unsealed(file.read_bytes())
        return {int(seed): record(Alarm, row) for seed, row in content.items()}
    except ValueError as problem:
        raise RunError(
            f"{file} is damaged: restore it from a copy, or remove it and lose its warnings"
        ) from problem
