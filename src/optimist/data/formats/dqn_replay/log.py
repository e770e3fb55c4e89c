"""A run's dumps in the order in which they happened, and every sign that they are not what they say."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from optimist.data.formats.dqn_replay.layout import (
    COLUMNS,
    FILE,
    FOLDER,
    IGNORED,
    PADDING,
    STACK,
    TYPES,
    Dump,
    Log,
    leading_padding,
)
from optimist.data.formats.dqn_replay.remote import Place, place
from optimist.errors import DataError

MOST_SLOTS = 1 << 24  # what is kept in memory for each slot is small, but not nothing
MOST_PIXELS = 1 << 20
LONGEST_HORIZON = 1000


def read_log(source: str | Path) -> Log:
    """The dumps of a run, from its folder or the `replay_logs` in it; only the smallest files are read."""
    where = _logs_folder(source)
    found = where.sizes()
    stems = {stem for stem, _, _ in TYPES.values()}
    matched = {name: match for name in found if (match := FILE.fullmatch(name))}
    ours = {name: match for name, match in matched.items() if match["stem"] in {*stems, IGNORED}}
    log = Log(where, {name: found[name] for name in ours if ours[name]["stem"] != IGNORED})
    others = sorted(set(found) - set(ours))
    if others:
        log.notes.append(
            f"{len(others)} files that are no part of a log were passed over, such as {others[0]}"
        )
    for suffix in sorted({int(match["suffix"]) for match in ours.values()}):
        absent = [stem for stem in sorted(stems) if f"{stem}_ckpt.{suffix}.gz" not in found]
        if absent:
            log.faults.append(f"{where.address}/{absent[0]}_ckpt.{suffix}.gz is missing; fetch it")
            continue
        try:
            log.dumps.append(_dump(log, suffix))
        except DataError as problem:
            log.faults.append(str(problem))
    _check_agreement(log)
    _put_in_order(log)
    return log


def _logs_folder(source: str | Path) -> Place:
    where = place(source)
    folders = where.folders()
    if FOLDER in folders:
        return where.folder(FOLDER)
    if any(FILE.fullmatch(name) for name in where.sizes()):
        return where
    runs = [name for name in folders if FOLDER in where.folder(name).folders()]
    if runs:
        raise DataError(
            f"{where.address} holds the runs {', '.join(runs)}; name one: {where.address}/{runs[0]}"
        )
    raise DataError(
        f"{where.address} holds no DQN Replay logs (files such as $store$_observation_ckpt.0.gz); "
        f"name a run's folder, or the {FOLDER} in it"
    )


def _dump(log: Log, suffix: int) -> Dump:
    """What a dump says about itself; its window and freshness are settled when all of them are known."""
    add_count = int(log.array("add_count", suffix))
    shapes = {}
    for name in ("observation", *COLUMNS):
        with log.file(name, suffix) as file:
            shapes[name] = file.shape
    capacity, *frame = shapes["observation"]
    for name in COLUMNS:
        if shapes[name] != (capacity,):
            raise log.refusal(name, suffix, f"has {shapes[name][0]} rows, the observations {capacity}")
    if not (PADDING + 2 <= capacity <= MOST_SLOTS and 1 <= frame[0] * frame[1] <= MOST_PIXELS):
        raise log.refusal("observation", suffix, f"has the shape {shapes['observation']}, which no log has")
    if add_count < 0:
        raise log.refusal("add_count", suffix, f"says {add_count}")
    _check_cursor(log, suffix, add_count % capacity, capacity)
    return Dump(suffix, add_count, capacity, (frame[0], frame[1]), window=-1, fresh=add_count % capacity)


def _check_cursor(log: Log, suffix: int, cursor: int, capacity: int) -> None:
    """The entries around the cursor that may not be sampled must be where `add_count` puts it."""
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
        if (dump.capacity, dump.frame) != (first.capacity, first.frame):
            shapes = [(d.capacity, *d.frame) for d in (dump, first)]
            log.faults.append(
                f"{log.name('observation', dump.suffix)} has the shape {shapes[0]}, that of suffix "
                f"{first.suffix} is {shapes[1]}; keep the logs of each run apart"
            )


def _put_in_order(log: Log) -> None:
    """Settle each dump's window; the file names are not trusted, `add_count` is."""
    newest = max(log.dumps, key=lambda dump: dump.suffix, default=None)
    full = [dump for dump in log.dumps if dump.fresh == dump.capacity - 1]
    full = [replace(dump, window=dump.add_count // dump.capacity) for dump in full]
    full.sort(key=lambda dump: (dump.window, dump.suffix))
    _drop_repeated_end(log, full, newest)
    for before, dump in pairwise(full):
        if before.window == dump.window:
            both = f"suffixes {before.suffix} and {dump.suffix} are both of window {dump.window}"
            log.faults.append(f"{log.where.address}: {both} (add_count {dump.add_count}); remove one of them")
        elif before.suffix > dump.suffix:
            log.notes.append(f"suffix {before.suffix} was played before suffix {dump.suffix}, says add_count")
    ordered = list(full)
    for dump in log.dumps:
        if dump.fresh < dump.capacity - 1 and dump is newest:
            ordered.append(replace(dump, window=_final_window(log, dump, full)))
        elif dump.fresh < dump.capacity - 1:
            log.faults.append(
                f"{log.name('add_count', dump.suffix)} says {dump.add_count}: neither a full dump nor the "
                "last one; fetch it again, or remove this suffix"
            )
    windows = [None, *(dump.window + 1 for dump in ordered)]
    log.dumps = [
        replace(dump, joined=dump.window == after) for dump, after in zip(ordered, windows, strict=False)
    ]
    if log.missing:
        log.notes.append(f"windows that were never dumped or not fetched: {in_ranges(log.missing)}")


def in_ranges(numbers: list[int]) -> str:
    """ "3, 5 to 9" for many numbers."""
    borders = [i for i in range(1, len(numbers)) if numbers[i] != numbers[i - 1] + 1]
    parts = [numbers[i:j] for i, j in pairwise([0, *borders, len(numbers)]) if i < j]
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts)


def _drop_repeated_end(log: Log, full: list[Dump], newest: Dump | None) -> None:
    """A run that ended right after a full dump wrote that once more, with the cursor as its count."""
    again = next((d for d in full if newest and d.suffix == newest.suffix), None)
    if again and again.window == 0 and len(full) > 1 and _alike(log, again, full[-1], slice(None)):
        full.remove(again)
        log.notes.append(f"suffix {again.suffix}, written when the run ended, repeats the dump before it")


def _alike(log: Log, one: Dump, other: Dump, slots: slice) -> bool:
    """Whether two dumps hold the same entries in these slots, as far as all but frames tell."""
    try:
        pairs = [(log.array(name, one.suffix), log.array(name, other.suffix)) for name in COLUMNS]
    except DataError as problem:
        log.faults.append(str(problem))
        return False
    return all(left[slots].tobytes() == right[slots].tobytes() for left, right in pairs)


def _final_window(log: Log, dump: Dump, full: list[Dump]) -> int:
    """The last dump does not say its window: it follows the last full one if the rest of it is that one's."""
    if dump.add_count >= dump.capacity:
        return dump.add_count // dump.capacity
    if not full:
        # Window 0 begins with padding; one that begins otherwise comes after windows that were never dumped.
        begins_the_run = dump.suffix == 0 and leading_padding(log, dump) == min(PADDING, dump.fresh)
        return 0 if begins_the_run else max(1, dump.suffix)
    before = full[-1]
    if dump.suffix > before.suffix + 1:
        return before.window + dump.suffix - before.suffix
    if _alike(log, dump, before, slice(dump.fresh, dump.capacity - 1)):
        return before.window + 1
    log.notes.append(f"suffix {dump.suffix} does not go on where suffix {before.suffix} stops")
    return before.window + 2
