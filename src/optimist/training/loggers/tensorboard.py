"""Live curves: TensorBoard events, one sub-folder per seed."""

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.summary import scalar

from optimist.data.disk.files import make_folder
from optimist.errors import StorageError

FLUSH_SECONDS = 10.0


class Tensorboard:
    """Writes in the calling thread: tensorboardX's own thread ends if the disk is full, and closing hangs."""

    def __init__(self, folder: Path, seeds: tuple[int, ...], step: int):
        self._folder, self._flushed = folder / "tensorboard", time.monotonic()
        self._writers = {seed: self._writer(seed, step) for seed in seeds}

    def _writer(self, seed: int, step: int) -> EventsWriter:
        folder = self._folder / f"seed-{seed}"
        make_folder(folder)
        writer = EventsWriter(str(folder / "events"), f".{step}")
        # TensorBoard ignores the events of earlier files from here on: they will be written again.
        writer.write_event(Event(step=step + 1, session_log=SessionLog(status=SessionLog.START)))
        return writer

    def add(self, step: int, values: Mapping[str, float], seed: int) -> None:
        try:
            for name, value in values.items():
                event = Event(step=step, wall_time=time.time(), summary=scalar(name, value))
                self._writers[seed].write_event(event)
            if time.monotonic() - self._flushed > FLUSH_SECONDS:
                self._flush()
        except OSError as problem:
            raise StorageError(f"cannot write in {self._folder}: {problem.strerror}; make room") from problem

    def _flush(self) -> None:
        self._flushed = time.monotonic()
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        for writer in self._writers.values():
            with contextlib.suppress(OSError):  # the same figures are in metrics.jsonl
                writer.close()
