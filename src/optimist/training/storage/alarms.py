"""alarms.json: the seeds of a run that diverged."""

import json
import zlib
from pathlib import Path
from typing import NamedTuple

from optimist.data.disk.files import naming, remove, write_whole
from optimist.data.disk.records import json_value
from optimist.errors import RunError
from optimist.training.values import fits

NAME = "alarms.json"
CHECK = "crc"  # the key of the checksum


class Alarm(NamedTuple):
    """A seed that diverged. Runs of version 0.1.0 have only the step."""

    step: int  # at which it was noticed
    healthy: int | None = None  # step of its last healthy policy
    value: float | None = None  # the size that 95 of 100 values did not exceed; none if it was not finite
    bound: float | None = None  # the largest size of a return-to-go in its log


def write_alarms(run: Path, alarms: dict[int, Alarm]) -> None:
    """Write the alarms of these seeds; without any there is no file."""
    if alarms:
        write_whole(
            run / NAME, _text({str(seed): alarm._asdict() for seed, alarm in alarms.items()}).encode()
        )
    else:
        remove(run / NAME)


def read_alarms(run: Path) -> dict[int, Alarm]:
    """The seeds that diverged."""
    file = Path(run) / NAME
    if not file.exists():
        return {}
    try:
        with naming(file):
            text = file.read_text(encoding="utf-8")
        content = json_value(text)
        rows = {seed: row for seed, row in content.items() if seed != CHECK}
        if CHECK in content and text != _text(rows):
            raise ValueError("its checksum does not match")
        return {int(seed): _alarm(row) for seed, row in rows.items()}
    except (ValueError, TypeError, AttributeError) as problem:
        raise RunError(
            f"{file} is damaged: restore it from a copy, or remove it and lose its warnings"
        ) from problem


def _alarm(row: int | dict) -> Alarm:
    """An alarm of today, or the step alone as version 0.1.0 wrote it."""
    alarm = Alarm(**row) if isinstance(row, dict) else Alarm(row)
    if not all(fits(value, Alarm.__annotations__[name]) for name, value in alarm._asdict().items()):
        raise ValueError("a value of a wrong kind")
    return alarm


def _text(rows: dict) -> str:
    check = zlib.crc32(json.dumps(rows).encode())
    return json.dumps({**rows, CHECK: f"{check:08x}"})
