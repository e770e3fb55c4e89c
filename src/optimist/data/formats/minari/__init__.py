"""Minari datasets: an id in the local store, or a folder. They are read and written without a loss."""

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from optimist.data.disk.files import refuse_links
from optimist.data.disk.records import json_value, record
from optimist.data.formats import _hdf5
from optimist.data.formats._bytes import readable
from optimist.data.formats._incoming import BYTES_AT_ONCE, OURS, Report, checked, gathered, signed
from optimist.data.formats.minari.spaces import (
    DATA,
    MASK,
    METADATA,
    Space,
    actions_of,
    observations_of,
    parsed,
)
from optimist.data.formats.minari.writing import WriteOptions, write
from optimist.data.rules.checks import checked_rows
from optimist.data.rules.log import Asked, Log, Part
from optimist.errors import DataError, did_you_mean, in_one_line, some_of

__all__ = ["ReadOptions", "WriteOptions", "detect", "open", "verify", "write"]
STORE = "MINARI_DATASETS_PATH"  # the variable that Minari itself obeys
SHOWN = (
    *("dataset_id", "total_episodes", "total_steps", "minari_version"),
    *("observation_space", "action_space"),
)
FEW = 5  # names in a note


@dataclass(frozen=True)
class ReadOptions:
    """What is taken from the dataset."""

    environment: Annotated[str | None, "the environment; none: the dataset's own, if it names one"] = None
    jpeg: Annotated[bool, "accept images that were stored as JPEG, with a loss"] = False
    drop: Annotated[str, "parts of a Dict observation, or action_mask, to leave out: achieved_goal,goal"] = ""
    channels: Annotated[str | None, "first or last: the axis of an image that counts its channels"] = None
    stack: Annotated[int, "frames in an observation"] = 1


def folder_of(address: str | Path) -> Path | None:
    """The folder with the data: of a path, or of an id in Minari's local store."""
    path = Path(address)
    if path.name == DATA:
        path = path.parent
    store = Path(os.environ.get(STORE) or Path.home() / ".minari" / "datasets")
    for folder in (path / "data", path, store / str(address) / "data"):
        if (folder / METADATA).is_file():
            return folder
    return None


def detect(address: str | Path) -> bool:
    return "://" not in str(address) and folder_of(address) is not None


def open(address: str | Path, options: ReadOptions) -> Log:
    """Every episode of a dataset."""
    episodes = Episodes(address, options)
    steps, ours = episodes.metadata.get("total_steps", 0), episodes.ours
    masks = ("allowed_actions", "next_allowed_actions") if episodes.reads_masks else ()
    return Log(
        columns=("observations", "actions", "rewards", "terminals", "truncations", "frames", *masks),
        parts=lambda names: gathered(episodes.parts(names)),
        rows=steps if isinstance(steps, int) else 0,
        asked=Asked(
            options.environment or episodes.environment, stack=options.stack, channels=options.channels
        ),
        spec=ours.spec,
        actions=actions_of(episodes.action, episodes.folder / METADATA),
        provenance={
            "source": in_one_line(episodes.metadata.get("dataset_id", Path(address).name)),
            **ours.names,
        },
        notes=_notes(episodes, options),
        heads=("metadata", "value"),
        contents=[(name, in_one_line(episodes.metadata.get(name, ""))) for name in SHOWN],
    )


def verify(address: str | Path) -> Report:
    """Report the first problem that an import would raise; JPEG images are not one."""
    return checked(lambda: open(address, ReadOptions(jpeg=True)))


class Episodes:
    """The episodes of a Minari dataset."""

    def __init__(self, address: str | Path, options: ReadOptions):
        folder = folder_of(address)
        if folder is None:
            raise DataError(
                f"{address} is neither a folder with data/{METADATA} nor an id in Minari's local store; "
                f"fetch it first with Minari's own program (pip install minari): minari download {address}"
            )
        self.file, self.folder, self.options = folder / DATA, folder, options
        files = (folder, folder / METADATA, self.file)
        refuse_links(path for path in files if path != Path(address))  # the user may name a link
        with readable(folder / METADATA, "table of facts", "fetch the dataset again"):
            self.metadata = record(dict, json_value((folder / METADATA).read_text("utf-8")))
        if self.metadata.get("data_format", "hdf5") != "hdf5":
            kind = in_one_line(self.metadata["data_format"])
            raise DataError(
                f"{folder} is stored as {kind}; only Minari's hdf5 storage is read: make it with that"
            )
        self.ours = signed(self.metadata.get(OURS), folder / METADATA)
        self.action = self._space("action_space")
        drop = options.drop.split(",") if options.drop else []
        seen, chosen = self._space("observation_space"), self.action.kind == "Discrete"
        inside = chosen and len(seen.parts) > 1 and MASK in dict(seen.parts)
        told = chosen and not inside and MASK in self.infos()
        self.mask_place = f"observations/{MASK}" if inside else f"infos/{MASK}"
        self.reads_masks = (inside or told) and MASK not in drop
        self.dropped = [word for word in drop if not (told and word == MASK)]
        self.observation = _without(seen, [*self.dropped, MASK] if inside else self.dropped)
        self.place = "observations"  # of the frames
        if inside and len(self.observation.parts) == 1:  # a frame, and no part of one
            ((name, self.observation),) = self.observation.parts
            self.place += f"/{name}"
        if not self._frame_bytes:
            raise DataError(
                f"the observations in {self.file} have no numbers: there is nothing to learn from"
            )

    def _space(self, name: str) -> Space:
        if name not in self.metadata:
            raise DataError(
                f"{self.folder / METADATA} lacks its {name}; make the dataset with Minari 0.5 or newer"
            )
        return parsed(self.metadata[name], name, self.folder / METADATA)

    @property
    def environment(self) -> str | None:
        """That in which the data were recorded, if they say so: of Gymnasium's, gym/<id>."""
        if self.ours.environment:
            return self.ours.environment
        try:
            name = json_value(self.metadata["env_spec"])["id"]
        except (KeyError, ValueError, TypeError):
            return None
        return f"gym/{name}" if isinstance(name, str) else None

    def infos(self) -> list[str]:
        """The names of what the environment said of each step."""
        with _hdf5.opened(self.file, "minari") as file:
            group = file.get("episode_0/infos")
            return [in_one_line(name) for name in group] if isinstance(group, _hdf5.Group) else []

    def parts(self, names: Collection[str]) -> Iterator[Part]:
        """These columns of every episode; a long one in several parts."""
        with _hdf5.opened(self.file, "minari") as file:
            count = self.metadata.get("total_episodes", len(file))
            if type(count) is not int or count > len(file):
                facts = f"{self.folder / METADATA} counts {in_one_line(count)} episodes"
                raise DataError(f"{facts}, and {DATA} holds {len(file):,}; fetch the dataset again")
            for number in range(count):
                yield from self._episode(file.group(f"episode_{number}"), names)

    def _episode(self, group: _hdf5.Group, names: Collection[str]) -> Iterator[Part]:
        rewards = group.array("rewards")
        steps = len(rewards)
        columns = {name: group.array(name) for name in ("actions", "terminations", "truncations")}
        if {*map(len, columns.values())} != {steps}:
            raise DataError(f"{group.place} has columns of different lengths; fetch the dataset again")
        masks = self._masks(group, steps) if "allowed_actions" in names else None
        row_bytes = self._frame_bytes + (0 if masks is None else masks.shape[1])
        at_once = max(1, BYTES_AT_ONCE // row_bytes)
        wants_frames = {"observations", "frames"} & set(names)
        reader = self._observations(group) if wants_frames else None
        for start in range(0, steps, at_once):
            stop = min(start + at_once, steps)
            part: Part = {}
            if reader:
                frames = reader(start, stop + 1)
                if len(frames) != stop - start + 1:
                    raise DataError(
                        f"{group.place} has {len(frames) + start} observations for {steps} steps: "
                        "there must be one more; fetch the dataset again"
                    )
                part["frames" if "frames" in names else "observations"] = frames
            if "actions" in names:
                part["actions"] = self._actions(columns["actions"][start:stop], group.place)
            if masks is not None:
                part |= _allowed(masks[start : stop + 1], part["actions"], group.place, start)
            if "rewards" in names:
                part["rewards"] = rewards[start:stop]
                for name, column in (("terminals", "terminations"), ("truncations", "truncations")):
                    found = f"the {column} in {group.place}"
                    part[name] = checked_rows(found, columns[column][start:stop], (), "bool", start)
                if stop == steps:
                    part["truncations"][-1] |= not part["terminals"][-1]
                if "frames" in part:
                    part["frames"] = _with_finals(part["frames"], part["terminals"] | part["truncations"])
            yield part

    def _masks(self, group: _hdf5.Group, steps: int) -> Any:
        found = group.array(self.mask_place)
        if found.ndim != 2 or len(found) != steps + 1:
            raise DataError(
                f"{group.place} has masks of shape {found.shape} for {steps} steps: there must be "
                f"one more, the final state's; leave them out with --drop {MASK}"
            )
        return found

    @property
    def _frame_bytes(self) -> int:
        return 4 * sum(int(np.prod(leaf.shape)) + sum(leaf.counts) for leaf in self.observation.leaves())

    def _observations(self, group: _hdf5.Group) -> Callable[[int, int], np.ndarray]:
        if self.ours.spec is not None:  # `write` keeps frames as they are; the space tells less of them
            frames = group.array("observations")
            return lambda start, stop: frames[start:stop]
        return observations_of(self.observation, group, self.place, self.options.jpeg)

    def _actions(self, values: np.ndarray, place: str) -> np.ndarray:
        width = 1 if self.action.kind == "Discrete" else prod(self.action.shape)
        if prod(values.shape[1:]) != width or (self.action.kind == "Discrete" and values.dtype.kind == "f"):
            shown = f"rows of shape {values.shape[1:]} {values.dtype}"
            raise DataError(f"the actions in {place} have {shown}, which their space excludes; correct it")
        if self.action.kind == "Discrete":
            return values.reshape(-1) - self.action.starts[0]
        return values.reshape(len(values), -1)


def _allowed(masks: np.ndarray, actions: np.ndarray, place: str, first: int) -> Part:
    """The masks of steps and of the states after them; DataError if one forbids the action that was taken."""
    column = np.clip(actions, 0, masks.shape[1] - 1)  # numbers of actions are checked with those of all logs
    forbidden = masks[np.arange(len(actions)), column] == 0
    if forbidden.any():
        step = int(forbidden.argmax())
        raise DataError(
            f"{place}, step {step + first}: its {MASK} forbids the action that was taken; "
            f"if it did not bind, leave it out with --drop {MASK}"
        )
    return {"allowed_actions": masks[:-1], "next_allowed_actions": masks[1:]}


def _with_finals(frames: np.ndarray, ended: np.ndarray) -> np.ndarray:
    """The frames of consecutive steps and the one after them, with the final one after every step that ends
    an episode. That is the last step alone, unless a task went on after a terminal state."""
    if not ended[-1]:
        frames = frames[:-1]
    ended = np.flatnonzero(ended[:-1])
    return np.insert(frames, ended + 1, frames[ended + 1], axis=0) if len(ended) else frames


def _notes(episodes: Episodes, options: ReadOptions) -> list[str]:
    lossy = options.jpeg and any(leaf.may_be_jpeg for leaf in episodes.observation.leaves())
    lossy &= bool(episodes.metadata.get("jpeg_encoding", True))
    infos = [name for name in episodes.infos() if not (name == MASK and episodes.reads_masks)]
    return [
        *([f"infos of the steps left out: {some_of(infos, FEW)}"] if infos else []),
        *(["the images were stored as JPEG: they differ from the recorded ones"] if lossy else []),
        *([f"parts of the observations left out: {','.join(episodes.dropped)}"] if episodes.dropped else []),
    ]


def _without(space: Space, drop: Collection[str]) -> Space:
    """The Dict space without these parts."""
    if not drop:
        return space
    names = [name for name, _ in space.parts] if space.kind == "Dict" else []
    if not names:
        raise DataError("--drop leaves out parts of Dict observations; this dataset has none")
    for word in drop:
        if word not in names:
            raise DataError(f'--drop: the observations have no part "{word}": {did_you_mean(word, names)}')
    kept = tuple((name, part) for name, part in space.parts if name not in drop)
    if not kept:
        raise DataError("--drop leaves out every part of the observations; keep one")
    return replace(space, parts=kept)
