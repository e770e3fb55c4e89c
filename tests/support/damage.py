"""A small intact dataset, and many ways to damage it."""

import json
import os
import shutil

import numpy as np
import pyarrow as pa
import zstandard

from optimist.data import Recorder, Spec
from optimist.data.disk.files import write_whole
from optimist.data.disk.records import sealed

SPEC = Spec((12, 12, 1), "uint8", actions=3)


def recorded(folder, rows=120, shard_steps=40):
    """Smooth frames, so that they are stored compressed."""
    frames = (np.arange(rows + 1) % 7)[:, None, None, None] * np.ones((12, 12, 1), np.uint8)
    frames = frames.astype(np.uint8)
    with Recorder(folder, SPEC, lanes=1, shard_steps=shard_steps) as recorder:
        for row in range(rows):
            frame, following = frames[row : row + 1], frames[row + 1 : row + 2]
            recorder.add(frame, [row % 3], [1.0], [row % 10 == 9], [False], following)
    return folder


def rewritten(folder, change, name="steps", number=0):
    """Change a shard file or the manifest and correct all hashes, as a careful forger would."""
    record = json.loads((folder / "manifest.json").read_text())
    record.pop("sha256")
    if name == "manifest":
        change(record)
    else:
        path = folder / record["shards"][number][name]["file"]
        file = write_whole(path, change(path))
        record["shards"][number][name] = vars(file)
    (folder / "manifest.json").write_text(sealed(record))


def arrow(batch):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def table(path):
    return pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)


def link(folder):
    path = folder / "frames-000000.arrow"
    path.rename(folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")


def swap_steps(folder):
    one, two = folder / "steps-000000.arrow", folder / "steps-000001.arrow"
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(content)


def widened(path):
    batch = table(path)
    names = batch.schema.names
    columns = [c.cast(pa.float64()) if n == "reward" else c for n, c in zip(names, batch, strict=True)]
    return arrow(pa.record_batch(columns, names=names))


def pickled(folder):
    np.save(folder.parent / "x.npy", np.array([{}]), allow_pickle=True)
    rewritten(folder, lambda path: (folder.parent / "x.npy").read_bytes() * 40)


def inflated(path):
    """A column that declares a tebibyte."""
    sink, batch = pa.BufferOutputStream(), table(path)
    packed = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, batch.schema, options=packed) as writer:
        writer.write_batch(batch)
    content = bytearray(sink.getvalue())
    place = content.index(zstandard.FRAME_HEADER) - 8
    content[place : place + 8] = (2**40).to_bytes(8, "little")
    return bytes(content)


def enormous(record):
    record["shards"][0]["blocks"][0].update(steps=2**40, frames=2**40 + 1)
    record.update(steps=2**40 + 80, episodes=9)


def edited(folder):
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"stack": 1', '"stack": 4'))


def nothing_recorded(folder):
    shutil.rmtree(folder)
    Recorder(folder, SPEC, lanes=1)


def a_file(folder):
    shutil.rmtree(folder)
    folder.write_text("")


def gone(name):
    return lambda folder: (folder / name).unlink()


def resized(name, size):
    return lambda folder: os.truncate(folder / name, size)


def steps(change):
    """The first file of steps is another one, and the manifest agrees."""
    return lambda folder: rewritten(folder, change)


def manifest(change):
    """The manifest says something else, under a right hash."""
    return lambda folder: rewritten(folder, change, "manifest")


def renamed(name):
    return manifest(lambda record: record["shards"][0]["steps"].update(file=name))


REFUSED = {
    "missing frames": (gone("frames-000001.arrow"), "missing"),
    "missing steps": (gone("steps-000002.arrow"), "missing"),
    "a short file": (resized("steps-000000.arrow", 100), "bytes instead of"),
    "an empty file": (resized("frames-000000.arrow", 0), "0 bytes instead of"),
    "a long file": (resized("frames-000000.arrow", 10**6), "bytes instead of"),
    "a link": (link, "link"),
    "a row less": (steps(lambda path: arrow(table(path).slice(0, 39))), "39 rows instead of 40"),
    "another type": (steps(widened), "reward double"),
    "not arrow": (steps(lambda path: b"hello" * 1000), "Arrow"),
    "pickled": (pickled, "Arrow"),
    "declares a tebibyte": (steps(inflated), "Arrow"),
    "swapped": (swap_steps, "hash|contents|bytes"),
    "newer": (manifest(lambda record: record.update(version=2)), "version 2"),
    "another format": (manifest(lambda record: record.update(format="zip")), "optimist-dataset"),
    "climbing name": (renamed("../x"), "plain file name"),
    "absolute name": (renamed("/etc/passwd"), "plain file name"),
    "no shards": (manifest(lambda record: record.pop("shards")), "shards"),
    "odd block": (manifest(lambda record: record["shards"][0]["blocks"][0].update(steps=-4)), "block"),
    "old totals": (manifest(lambda record: record.update(steps=80)), "totals"),
    "enormous": (manifest(enormous), "too small|rows instead of"),
    "objects": (manifest(lambda record: record["spec"].update(frame_dtype="object")), "object"),
    "edited": (edited, "edited"),
    "nested": (lambda folder: (folder / "manifest.json").write_text("[" * 100_000), "damaged"),
    "cut manifest": (resized("manifest.json", 300), "damaged"),
    "empty manifest": (resized("manifest.json", 0), "damaged"),
    "nothing recorded": (nothing_recorded, "empty"),
    "no manifest": (gone("manifest.json"), "is it a dataset"),
    "no folder": (shutil.rmtree, "does not exist"),
    "a file": (a_file, "is it a dataset"),
}
