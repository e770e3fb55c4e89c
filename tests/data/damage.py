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


def remove(folder):
    (folder / "frames-000001.arrow").unlink()


def remove_steps(folder):
    (folder / "steps-000002.arrow").unlink()


def shorten(folder):
    os.truncate(folder / "steps-000000.arrow", 100)


def empty(folder):
    os.truncate(folder / "frames-000000.arrow", 0)


def lengthen(folder):
    with open(folder / "frames-000000.arrow", "ab") as stream:
        stream.write(b"x")


def link(folder):
    path = folder / "frames-000000.arrow"
    path.rename(folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")


def drop_a_row(folder):
    rewritten(folder, lambda path: arrow(table(path).slice(0, 39)))


def change_a_type(folder):
    def widened(path):
        batch = table(path)
        columns = [
            c.cast(pa.float64()) if n == "reward" else c
            for n, c in zip(batch.schema.names, batch, strict=True)
        ]
        return arrow(pa.record_batch(columns, names=batch.schema.names))

    rewritten(folder, widened)


def not_arrow(folder):
    rewritten(folder, lambda path: b"hello" * 1000)


def pickled(folder):
    np.save(folder.parent / "x.npy", np.array([{}]), allow_pickle=True)
    rewritten(folder, lambda path: (folder.parent / "x.npy").read_bytes() * 40)


def declares_a_tebibyte(folder):
    def inflated(path):
        sink = pa.BufferOutputStream()
        batch = table(path)
        with pa.ipc.new_file(
            sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
        ) as writer:
            writer.write_batch(batch)
        content = bytearray(sink.getvalue())
        place = content.index(zstandard.FRAME_HEADER) - 8
        content[place : place + 8] = (2**40).to_bytes(8, "little")
        return bytes(content)

    rewritten(folder, inflated)


def swap_steps(folder):
    one, two = folder / "steps-000000.arrow", folder / "steps-000001.arrow"
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(content)


def newer_version(folder):
    rewritten(folder, lambda record: record.update(version=2), "manifest")


def other_format(folder):
    rewritten(folder, lambda record: record.update(format="zip"), "manifest")


def climbing_name(folder):
    rewritten(folder, lambda record: record["shards"][0]["steps"].update(file="../x"), "manifest")


def absolute_name(folder):
    rewritten(folder, lambda record: record["shards"][0]["frames"].update(file="/etc/passwd"), "manifest")


def no_shards_key(folder):
    rewritten(folder, lambda record: record.pop("shards"), "manifest")


def odd_block(folder):
    rewritten(folder, lambda record: record["shards"][0]["blocks"][0].update(steps=-4), "manifest")


def old_totals(folder):
    rewritten(folder, lambda record: record.update(steps=80), "manifest")


def enormous(folder):
    def claim(record):
        record["shards"][0]["blocks"][0].update(steps=2**40, frames=2**40 + 1)
        record.update(steps=2**40 + 80, episodes=9)

    rewritten(folder, claim, "manifest")


def object_spec(folder):
    rewritten(folder, lambda record: record["spec"].update(frame_dtype="object"), "manifest")


def edited(folder):
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"stack": 1', '"stack": 4'))


def nested(folder):
    (folder / "manifest.json").write_text("[" * 100_000)


def cut_manifest(folder):
    os.truncate(folder / "manifest.json", 300)


def empty_manifest(folder):
    os.truncate(folder / "manifest.json", 0)


def nothing_recorded(folder):
    shutil.rmtree(folder)
    Recorder(folder, SPEC, lanes=1)


def no_manifest(folder):
    (folder / "manifest.json").unlink()


def no_folder(folder):
    shutil.rmtree(folder)


def a_file(folder):
    shutil.rmtree(folder)
    folder.write_text("")


REFUSED = [
    (remove, "missing"),
    (remove_steps, "missing"),
    (shorten, "bytes instead of"),
    (empty, "0 bytes instead of"),
    (lengthen, "bytes instead of"),
    (link, "link"),
    (drop_a_row, "39 rows instead of 40"),
    (change_a_type, "reward double"),
    (not_arrow, "Arrow"),
    (pickled, "Arrow"),
    (declares_a_tebibyte, "Arrow"),
    (swap_steps, "hash|contents|bytes"),
    (newer_version, "version 2"),
    (other_format, "optimist-dataset"),
    (climbing_name, "plain file name"),
    (absolute_name, "plain file name"),
    (no_shards_key, "shards"),
    (odd_block, "block"),
    (old_totals, "totals"),
    (enormous, "too small|rows instead of"),
    (object_spec, "object"),
    (edited, "edited"),
    (nested, "damaged"),
    (cut_manifest, "damaged"),
    (empty_manifest, "damaged"),
    (nothing_recorded, "empty"),
    (no_manifest, "is it a dataset"),
    (no_folder, "does not exist"),
    (a_file, "is it a dataset"),
]
