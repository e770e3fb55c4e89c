"""From a folder of files to a DQN Replay log: which dumps there are, and their order."""

from dataclasses import replace
from itertools import pairwise
from math import prod
from pathlib import Path

import numpy as np

from optimist.data.formats.dqn_replay.files import Folder
from optimist.data.formats.dqn_replay.log import (
    COLUMNS,
    FILE,
    FOLDER,
    IGNORED,
    LONGEST_HORIZON,
    MOST_PIXELS,
    MOST_SLOTS,
    PADDING,
    STACK,
    TYPES,
    Dump,
    Log,
)
from optimist.errors import DataError


def is_log(address: str | Path) -> bool:
    """Whether a folder looks like a run's logs, complete or not."""
    if "://" not in str(address) and not Path(address).is_dir():
        return False
    folder = Folder(address)
    if FOLDER in folder.entries():
        folder = folder / FOLDER
    return any(FILE.fullmatch(name) for name in folder.entries())


def read_log(address: str | Path) -> Log:
    """The dumps of a run, from its folder or the `replay_logs` in it; reads only the smallest files."""
    folder = _logs_folder(address)
    found = {name: size for name, size in folder.entries().items() if size is not None}
    stems = {stem for stem, _, _ in TYPES.values()}
    matched = {name: match for name in found if (match := FILE.fullmatch(name))}
    ours = {name: match for name, match in matched.items() if match["stem"] in {*stems, IGNORED}}
    log = Log(folder, {name: found[name] for name in ours if ours[name]["stem"] != IGNORED})
    others = sorted(set(found) - set(ours))
    if others:
        log.notes.append(f"ignored {len(others)} files that are not part of a log, such as {others[0]}")
    for suffix in sorted({int(match["suffix"]) for match in ours.values()}):
        absent = [stem for stem in sorted(stems) if f"{stem}_ckpt.{suffix}.gz" not in found]
        if absent:
            log.faults.append(f"{folder.address}/{absent[0]}_ckpt.{suffix}.gz is missing; fetch it")
            continue
        try:
            log.dumps.append(_dump(log, suffix))
        except DataError as problem:
            log.faults.append(str(problem))
    _check_agreement(log)
    _put_in_order(log)
    return log


def _logs_folder(address: str | Path) -> Folder:
    folder = Folder(address)
    inside = folder.entries()
    if FOLDER in inside:
        return folder / FOLDER
    if any(FILE.fullmatch(name) for name in inside):
        return folder
    runs = [name for name, size in inside.items() if size is None and FOLDER in (folder / name).entries()]
    if runs:
        raise DataError(
            f"{folder.address} holds the runs {', '.join(runs)}; name one: {folder.address}/{runs[0]}"
        )
    raise DataError(
        f"{folder.address} holds no DQN Replay logs (files such as $store$_observation_ckpt.0.gz); "
        f"name a run's folder, or the {FOLDER} in it"
    )


def _dump(log: Log, suffix: int) -> Dump:
    """The dump with this suffix, after checks of its shapes and its cursor."""
    add_count = int(log.array("add_count", suffix))
    shapes = {}
    for name in ("observation", *COLUMNS):
        with log.file(name, suffix) as file:
            shapes[name] = file.shape
    capacity, *frame = shapes["observation"]
    for name in COLUMNS:
        if shapes[name] != (capacity,):
            raise log.refusal(name, suffix, f"has {shapes[name][0]} rows, the observations {capacity}")
    if not (PADDING + 2 <= capacity <= MOST_SLOTS and 1 <= prod(frame) <= MOST_PIXELS):
        raise log.refusal("observation", suffix, f"has the shape {shapes['observation']}, which no log has")
    if add_count < 0:
        raise log.refusal("add_count", suffix, f"says {add_count}")
    _check_cursor(log, suffix, add_count % capacity, capacity)
    return Dump(suffix, add_count, capacity, (frame[0], frame[1]), fresh=add_count % capacity)


def _check_cursor(log: Log, suffix: int, cursor: int, capacity: int) -> None:
    """Check that `invalid_range`, the entries that may not be sampled, lies around the cursor."""
    with log.file("invalid_range", suffix) as file:
        (length,) = file.shape
    horizon = length - STACK
    if not 1 <= horizon <= LONGEST_HORIZON:
        raise log.refusal("invalid_range", suffix, f"has {length} numbers, which no log has")
    invalid = log.array("invalid_range", suffix)
    if not np.array_equal(invalid, (cursor - horizon + np.arange(length)) % capacity):
        beside = f"invalid_range_ckpt.{suffix}.gz says {invalid[:5].tolist()}"
        raise log.refusal(
            "add_count", suffix, f"puts the cursor at {cursor}, but {beside}: two dumps are mixed"
        )


def _check_agreement(log: Log) -> None:
    for dump in log.dumps[1:]:
        first = log.dumps[0]
        shape, expected = ((each.capacity, *each.frame) for each in (dump, first))
        if shape != expected:
            log.faults.append(
                f"{log.name('observation', dump.suffix)} has the shape {shape}, that of suffix "
                f"{first.suffix} is {expected}; keep the logs of each run apart"
            )


def _put_in_order(log: Log) -> None:
    """Sort the dumps and set their windows by `add_count`; file names are not reliable."""
    newest = max(log.dumps, key=lambda dump: dump.suffix, default=None)
    ordered = [replace(dump, window=dump.add_count // dump.capacity) for dump in log.dumps if dump.full]
    ordered.sort(key=lambda dump: (dump.window, dump.suffix))
    _drop_repeated_end(log, ordered, newest)
    for before, dump in pairwise(ordered):
        if before.window == dump.window:
            both = f"suffixes {before.suffix} and {dump.suffix} are both of window {dump.window}"
            log.faults.append(
                f"{log.folder.address}: {both} (add_count {dump.add_count}); remove one of them"
            )
        elif before.suffix > dump.suffix:
            log.notes.append(f"suffix {before.suffix} is earlier than suffix {dump.suffix} by its add_count")
    for dump in log.dumps:
        if not dump.full and dump is not newest:
            log.faults.append(
                f"{log.name('add_count', dump.suffix)} says {dump.add_count}: neither a full dump nor the "
                "last one; fetch it again, or remove this suffix"
            )
    if newest and not newest.full:
        ordered.append(replace(newest, window=_final_window(log, newest, ordered)))
    before_each = [None, *(dump.window for dump in ordered)]
    log.dumps = [
        replace(dump, joined=before is not None and dump.window == before + 1)
        for dump, before in zip(ordered, before_each, strict=False)
    ]
    if log.missing:
        numbers = f"number{'s' * (len(log.missing) > 1)} {in_ranges(log.missing)}"
        log.notes.append(f"{len(log.missing)} missing, never dumped or not fetched: window {numbers}")


def in_ranges(numbers: list[int]) -> str:
    """Numbers as text with ranges: "3, 5 to 9"."""
    borders = [i for i in range(1, len(numbers)) if numbers[i] != numbers[i - 1] + 1]
    parts = [numbers[i:j] for i, j in pairwise([0, *borders, len(numbers)]) if i < j]
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts)


def _drop_repeated_end(log: Log, full: list[Dump], newest: Dump | None) -> None:
    """Drop a last dump that repeats a full one: a run that ended right after a full dump wrote it twice."""
    again = next((dump for dump in full if newest and dump.suffix == newest.suffix), None)
    if again and again.window == 0 and len(full) > 1 and _alike(log, again, full[-1], slice(None)):
        full.remove(again)
        log.notes.append(f"suffix {again.suffix}, written when the run ended, repeats the dump before it")


def _alike(log: Log, one: Dump, other: Dump, slots: slice) -> bool:
    """Whether two dumps hold the same entries in these slots; frames are not compared."""
    try:
        pairs = [(log.array(name, one.suffix), log.array(name, other.suffix)) for name in COLUMNS]
    except DataError as problem:
        log.faults.append(str(problem))
        return False
    return all(left[slots].tobytes() == right[slots].tobytes() for left, right in pairs)


def _final_window(log: Log, dump: Dump, full: list[Dump]) -> int:
    """The window of the last dump, which is not in its file: that after the last full dump if its old slots
    are the same as there."""
    if dump.add_count >= dump.capacity:
        return dump.add_count // dump.capacity
    if not full:
        # Window 0 begins with padding; otherwise there were earlier windows, which were never dumped.
        begins_the_run = dump.suffix == 0 and log.leading_padding(dump) == min(PADDING, dump.fresh)
        return 0 if begins_the_run else max(1, dump.suffix)
    before = full[-1]
    if dump.suffix > before.suffix + 1:
        return before.window + dump.suffix - before.suffix
    if _alike(log, dump, before, slice(dump.fresh, dump.capacity - 1)):
        return before.window + 1
    log.notes.append(f"suffix {dump.suffix} does not continue suffix {before.suffix}")
    return before.window + 2
