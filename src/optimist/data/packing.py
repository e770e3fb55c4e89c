"""A lossless code for frames that a device decodes while it gathers them.

Consecutive frames of a game differ in a few places. A group of them has one background, the median of some of
its frames. A frame is a mask with one bit for each word of four bytes, set where the frame differs from the
background, and those words. Every frame has such a code; one that differs everywhere takes its own bytes and
those of its mask.
"""

from typing import Any, NamedTuple

import numpy as np

GROUP = 256  # frames with the same background; five games take the same bytes with 1,024
SAMPLED = 9  # frames whose median is the background; an odd number, so that the median is a value of one
LINE = 16  # words; those of a frame begin a new line, so that 32 bits can number the lines of 128 GiB


class Packed(NamedTuple):
    """Packed frames, of one group or of many."""

    backgrounds: Any  # (groups, words)
    masks: Any  # (frames, words / 32); the lowest bit is the first word's
    begins: Any  # (frames,): the line at which the words of a frame begin
    changed: Any  # (lines, LINE)


def packed(frames: np.ndarray) -> Packed:
    """One group of frames, (n, *frame_shape), in the code."""
    words = as_words(frames)
    some = words[:: -(-len(words) // SAMPLED)].view(np.uint8)
    background = np.sort(some, axis=0)[len(some) // 2].view("<u4")
    differs = words != background
    counts = differs.sum(axis=1)
    lines = -(-counts // LINE)
    begins = np.cumsum(lines) - lines
    changed = np.zeros(lines.sum() * LINE, np.uint32)
    moved = begins * LINE - (np.cumsum(counts) - counts)  # by the unused ends of earlier lines
    changed[np.arange(counts.sum()) + np.repeat(moved, counts)] = words[differs]
    masks = as_words(np.packbits(differs, axis=1, bitorder="little"))
    return Packed(background[None], masks, begins.astype(np.int32), changed.reshape(-1, LINE))


def as_words(frames: np.ndarray) -> np.ndarray:
    """The bytes of each row as words, (n, words); the last word is filled up with zeros."""
    flat = np.ascontiguousarray(frames).reshape(len(frames), -1).view(np.uint8)
    missing = -flat.shape[1] % 4
    return (np.pad(flat, ((0, 0), (0, missing))) if missing else flat).view("<u4")


def joined(groups: list[Packed]) -> Packed:
    """All groups in one; the list is emptied, and each group is freed when it is copied, so that the memory
    never has all of them twice."""
    lines = np.cumsum([0, *(len(group.changed) for group in groups)])
    numbered = [group.begins + line for group, line in zip(groups, lines.tolist(), strict=False)]
    backgrounds = np.concatenate([group.backgrounds for group in groups])
    begins = np.concatenate(numbered).astype(np.int32)
    masks = np.empty((len(begins), groups[0].masks.shape[1]), np.uint32)
    changed = np.empty((max(1, lines[-1]), LINE), np.uint32)  # a gather needs one, even if nothing changed
    frame, line = len(masks), lines[-1]
    while groups:
        group = groups.pop()
        frame, line = frame - len(group.masks), line - len(group.changed)
        masks[frame : frame + len(group.masks)] = group.masks
        changed[line : line + len(group.changed)] = group.changed
    return Packed(backgrounds, masks, begins, changed)


def nbytes(frames: Packed) -> int:
    return sum(array.nbytes for array in frames)
