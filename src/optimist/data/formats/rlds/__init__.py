"""RL Unplugged's Atari logs (TFRecords), for reading; built from the schema and untried on originals.

There are three layouts:

- Transitions: `o_t` and `o_tp1` (4 PNG frames each), `a_t`, `r_t`, `d_t`, `episode_id`. They may be shuffled:
  a step is stored with its own successor, and continues the step before only where that one led to it.
- Episodes as published: `observations` (PNG frames), `actions`, `unclipped_rewards`, `discounts`.
- Episodes as TFDS writes them: `steps/observation`, `steps/action`, `steps/reward`, `steps/is_terminal`.

Of the last row of an episode only the observation counts: it is the final one.
"""

import re
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from optimist.data.disk.files import refuse_links
from optimist.data.formats._arrays import GameFacts as ReadOptions
from optimist.data.formats._bytes import pixels
from optimist.data.formats._incoming import BYTES_AT_ONCE, gathered
from optimist.data.formats.rlds.records import Features, examples, is_record_file
from optimist.data.rules.log import Asked, Log, Part
from optimist.errors import DataError, in_one_line, some_of

SHARD = re.compile(r".*(-\d{5}-of-\d{5}|\.tfrecord(s)?(\.gz)?)$")
STACK = 4
UNTRIED = "built from the published schema, and not tried on the original files beyond a public sample"
LAYOUTS = {
    "transitions": ("o_t", "o_tp1", "a_t", "r_t", "d_t"),
    "episodes": ("observations", "actions", "discounts"),
    "TFDS episodes": ("steps/observation", "steps/action", "steps/reward", "steps/is_terminal"),
}


COLUMNS = ("observations", "actions", "rewards", "terminals", "truncations", "next_observations")


def files_of(address: str | Path) -> list[Path]:
    """The record files: one file, or all in a folder."""
    path = Path(address)
    found = [path] if path.is_file() else sorted(path.iterdir()) if path.is_dir() else []
    return [file for file in found if SHARD.match(file.name) and file.is_file()]


def detect(address: str | Path) -> bool:
    return "://" not in str(address) and any(map(is_record_file, files_of(address)[:1]))


def open(address: str | Path, options: ReadOptions) -> Log:
    """The records of one run."""
    records = Records(address)
    stack = 1 if records.layout == "transitions" else STACK
    return Log(
        columns=COLUMNS,
        parts=records.parts,
        asked=Asked(options.environment, options.actions_count, stack=stack),
        notes=[f"{records.layout} of RL Unplugged; this reader was {UNTRIED}"],
        heads=("file", "layout"),
        contents=[(file.name, records.layout) for file in records.files],
    )


class Records:
    """The records of all files, one file after the other."""

    def __init__(self, address: str | Path):
        self.files = files_of(address)
        refuse_links(path for path in self.files if path != Path(address))  # the user may name a link
        if not self.files:
            raise DataError(
                f"{address} holds no TFRecord files, such as run_1-00000-of-00100; check its spelling"
            )
        self._shape: tuple[int, ...] | None = None  # of all images: that of the first one
        self.layout = _layout(next(examples(self.files[0]), {}), self.files[0])

    def parts(self, names: Collection[str]) -> Iterator[Part]:
        wants_frames = "observations" in names
        if self.layout == "transitions":
            return _linked(gathered(self._transitions(wants_frames)))
        return gathered(self._episodes(wants_frames))

    def _records(self) -> Iterator[tuple[str, Features]]:
        for file in self.files:
            for number, features in enumerate(examples(file)):
                yield f"{file} record {number}", features

    def _transitions(self, wants_frames: bool) -> Iterator[Part]:
        for place, features in self._records():
            terminal = _floats(features, "d_t", place)[:1] == 0
            part = {
                "actions": _whole(features, "a_t", place)[:1],
                "rewards": _floats(features, "r_t", place)[:1],
                "terminals": terminal,
            }
            if wants_frames:
                for name, key in (("observations", "o_t"), ("next_observations", "o_tp1")):
                    frames = [self._decoded(png, place) for png in _bytes(features, key, place)]
                    part[name] = np.concatenate(frames, axis=-1)[None]
            yield part

    def _episodes(self, wants_frames: bool) -> Iterator[Part]:
        """An episode of n observations has n - 1 steps; a long one is given in several parts."""
        for place, features in self._records():
            pngs, columns = self._episode(features, place)
            steps = len(pngs) - 1
            at_once = max(1, BYTES_AT_ONCE // self._decoded(pngs[0], place).size)
            for start in range(0, steps, at_once):
                stop = min(start + at_once, steps)
                part = {name: column[start:stop] for name, column in columns.items()}
                if wants_frames:
                    frames = np.stack([self._decoded(png, place) for png in pngs[start : stop + 1]])
                    part |= {"observations": frames[:-1], "next_observations": frames[1:]}
                yield part

    def _decoded(self, png: Any, place: str) -> np.ndarray:
        """One grey image, (height, width, 1)."""
        image = pixels(png, place, like=self._shape)
        if image.dtype != np.uint8 or image.ndim not in (2, 3) or image.shape[2:] not in ((), (1,)):
            raise DataError(
                f"{place} holds an image of {image.shape} {image.dtype}; these logs have grey frames"
            )
        self._shape = image.shape[:2]
        return image.reshape(*image.shape[:2], 1)

    def _episode(self, features: Features, place: str) -> tuple[list, Part]:
        if self.layout == "TFDS episodes":
            names = ("steps/observation", "steps/action", "steps/reward")
            ended = _whole(features, "steps/is_terminal", place) != 0
        else:
            clipped = "clipped" if "unclipped_rewards" not in features else "unclipped"
            names = ("observations", "actions", f"{clipped}_rewards")
            ended = _floats(features, "discounts", place) == 0
        pngs, actions = _bytes(features, names[0], place), _whole(features, names[1], place)
        rewards, terminal = _floats(features, names[2], place), bool(ended[-1])
        if not len(pngs) == len(actions) == len(rewards) == len(ended):
            raise DataError(f"{place} has columns of different lengths; fetch it again")
        last = np.arange(len(pngs) - 1) == len(pngs) - 2
        return pngs, {
            "actions": actions[:-1],
            "rewards": rewards[:-1],
            "terminals": last & terminal,
            "truncations": last & (not terminal),
        }


def _linked(parts: Iterator[Part]) -> Iterator[Part]:
    """Mark every step as truncated that does not lead to the observation of the next step."""
    held: Part | None = None
    for part in parts:
        if "observations" not in part:
            yield part
            continue
        whole = part if held is None else {name: np.concatenate([held[name], part[name]]) for name in part}
        follows = (whole["next_observations"][:-1] == whole["observations"][1:]).all(axis=(1, 2, 3))
        whole["truncations"] = np.append(~follows, True) & ~whole["terminals"]
        held = {name: column[-1:] for name, column in whole.items() if name != "truncations"}
        yield {name: column[:-1] for name, column in whole.items()}
    if held is not None:
        yield {**held, "truncations": ~held["terminals"]}


def _layout(features: Features, file: Path) -> str:
    found = [name for name, keys in LAYOUTS.items() if set(keys) <= set(features)]
    if not found:
        held = some_of([in_one_line(name, 40) for name in sorted(features)], 12) or "nothing"
        raise DataError(f"{file} is not one of RL Unplugged's Atari logs: its records hold {held}")
    return found[0]


def _held(kind: str, features: Features, name: str, place: str) -> Any:
    """The images of this name in a record, or the numbers."""
    values: Any = features.get(name)
    found = "b" if isinstance(values, list) else values.dtype.kind if values is not None else ""
    if found != kind or not len(values):
        what = "images" if kind == "b" else "numbers"
        raise DataError(f'{place} lacks the {what} "{name}"; fetch it again')
    return values


_bytes, _floats, _whole = (partial(_held, kind) for kind in "bfi")
