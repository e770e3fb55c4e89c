"""Commands of optimist as processes that are watched, stopped by the clock, and packed."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

KEPT = ("*.csv", "*.jsonl", "*.toml", "*.json", "*.txt", "DONE")
ARCHIVE = "found.tar.gz"
PACK_EVERY = 30  # seconds
LOOK_EVERY = 1.0  # seconds between rows of progress.csv
PATIENCE = 60  # seconds for a process to leave; it may have to finish compiling first
STARTS = 3  # of a process that fails
STEP = re.compile(rb'"step": (\d+)')


class Work:
    """One command; it is started again if it fails, and continues where it was. If it fails before its first
    evaluation, it begins again with the `otherwise` options."""

    def __init__(
        self, name: str, words: list[str], folder: Path, otherwise: tuple[str, ...] = (), **environment: str
    ):
        self.name, self.run, self.output = name, folder / name, folder / f"{name}.txt"
        self.otherwise = [*otherwise, "--restart"] if otherwise else []
        self.words = [sys.executable, "-m", "optimist", *words, "--out", str(self.run)]
        self.environment = {**os.environ, **environment}
        self.starts = 0
        self.start()

    def start(self) -> None:
        self.starts += 1
        if self.starts == 2 and not self.evaluated():
            self.words += self.otherwise
        # A shell lets commands with `&` ignore SIGINT, and their children too.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                self.words, stdout=output, stderr=subprocess.STDOUT, env=self.environment
            )

    def runs(self) -> bool:
        if self.process.poll() not in (None, 0) and self.starts < STARTS:
            self.start()
        return self.process.poll() is None

    def ask_to_stop(self) -> None:
        self.starts = STARTS
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)

    def evaluated(self) -> int:
        """The newest step whose episodes are on disk."""
        episodes = self.run / "episodes.csv"
        if not episodes.exists():
            return 0
        return max(
            (int(line.split(",")[0]) for line in episodes.read_text().splitlines()[1:] if "," in line),
            default=0,
        )

    def learned(self) -> int:
        """The newest step in its metrics."""
        metrics = next(self.run.glob("**/metrics.jsonl"), None)
        if metrics is None:
            return 0
        with metrics.open("rb") as file:
            file.seek(max(0, metrics.stat().st_size - 8192))
            steps = STEP.findall(file.read())
        return int(steps[-1]) if steps else 0


def wait(works: list[Work], until: float, folder: Path, enough=lambda: False) -> None:
    """Until all works are done, or `enough()`, or time.monotonic() is `until`. Meanwhile progress.csv gets
    the newest step of each work, and the archive is written anew."""
    archive, looked = folder / ARCHIVE, time.monotonic()
    while any([work.runs() for work in works]) and time.monotonic() < until and not enough():
        time.sleep(0.5)
        now = time.monotonic()
        if now - looked > LOOK_EVERY:
            looked = now
            with (folder / "progress.csv").open("a") as file:
                file.writelines(f"{time.time():.2f},{work.name},{work.learned()}\n" for work in works)
        if not archive.exists() or time.time() - archive.stat().st_mtime > PACK_EVERY:
            pack(folder)


def stop(works: list[Work]) -> None:
    """Ask all works to save and leave. One that does not is killed late: under MPS that can make the other
    processes on the device fail too."""
    end = time.monotonic() + PATIENCE
    for work in works:  # all are asked first, so that they end together
        work.ask_to_stop()
    for work in works:
        try:
            work.process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            work.process.kill()
            work.process.wait()


def pack(folder: Path) -> None:
    """Put the text files of all logs and runs into one archive."""
    part = folder / "found.part"
    with tarfile.open(part, "w:gz") as archive:
        for path in sorted({path for pattern in KEPT for path in folder.rglob(pattern)}):
            if path.name == "metrics.jsonl":
                add_some_rows(archive, path, str(path.relative_to(folder)))
            else:
                archive.add(path, path.relative_to(folder))
    part.replace(folder / ARCHIVE)


def add_some_rows(archive: tarfile.TarFile, path: Path, name: str) -> None:
    """Of the metrics, which would be most of the archive, the first thousand steps and then a tenth."""
    rows = path.read_bytes().splitlines(keepends=True)
    steps = [int(found[1]) if (found := STEP.search(row)) else 0 for row in rows]
    kept = b"".join(row for row, at in zip(rows, steps, strict=True) if at <= 1_000 or at // 250 % 10 == 0)
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime = len(kept), int(path.stat().st_mtime)
    archive.addfile(entry, io.BytesIO(kept))


def describe(log: Path) -> None:
    """Let a process write the card of a dataset beside its folder; nothing waits for it."""
    info = [sys.executable, "-m", "optimist", "data", "info", str(log), "--json"]
    with log.with_suffix(".json").open("wb") as card:
        subprocess.Popen(info, stdout=card, env={**os.environ, "JAX_PLATFORMS": "cpu"})


def share_the_device() -> None:
    """Kernels of several processes run side by side, where MPS is there."""
    if shutil.which("nvidia-cuda-mps-control"):
        subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False)


class Diary:
    """What happened when, on the terminal and in a file."""

    def __init__(self, path: Path):
        self.path, self.began = path, time.monotonic()

    def add(self, words: str) -> None:
        seconds = round(time.monotonic() - self.began, 1)
        print(f"{seconds:7.1f} s: {words}", flush=True)
        with self.path.open("a") as file:
            file.write(json.dumps({"seconds": seconds, "clock": round(time.time(), 1), "what": words}) + "\n")
