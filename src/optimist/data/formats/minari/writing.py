"""Export as a Minari dataset without a loss: images stay arrays, and nothing is encoded as JPEG.

The observations of an episode are its frames, one by one; a stack is not written out.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np

from optimist.data.dataset import Dataset
from optimist.data.disk.files import built_beside, make_folder
from optimist.data.formats import _hdf5
from optimist.data.formats._incoming import OURS
from optimist.data.formats._outgoing import Written, frames_of, left_out, signature, truncations, written
from optimist.data.formats.minari.spaces import DATA, MASK, METADATA
from optimist.data.timeline import Masks, Timeline
from optimist.data.transition import Spec
from optimist.errors import DataError, UsageError

VERSION = "0.5.4"  # of Minari; older ones do not know that images may be stored plain
NAME = re.compile(r"(?:[-_\w][-_\w/]*[-_\w]+/)?[-_\w]+(?:-v\d+)?")


@dataclass(frozen=True)
class WriteOptions:
    """How other people will call the dataset."""

    id: Annotated[str | None, "such as shop/clicks-v0; none: the folder's name with -v0"] = None
    author: Annotated[str | None, "who made it"] = None

    def __post_init__(self) -> None:
        if self.id is not None and not NAME.fullmatch(self.id):
            raise UsageError(f'--id "{self.id}": write namespace/name-v0, of letters, digits, - and _')


def write(dataset: Dataset, out: str | Path, options: WriteOptions) -> Written:
    """Write `out/data`; the folder appears when it is complete."""
    folder = Path(out) / "data"
    if folder.exists():
        raise DataError(f"{folder} exists already; export into another folder")
    with built_beside(folder) as partial:
        make_folder(partial)
        _write_episodes(dataset, partial / DATA)
        (partial / METADATA).write_text(json.dumps(_metadata(dataset, Path(out), options)), "utf-8")
    stack = dataset.spec.stack
    open_end = not (dataset.episodes.terminal | dataset.episodes.truncated)[-1]
    return written(
        dataset,
        *left_out(dataset, held=("allowed_actions", "next_allowed_actions")),
        *(["the last episode has no end; it is marked as truncated"] if open_end else []),
        *([f"observations are single frames: Minari does not know stacks of {stack}"] if stack > 1 else []),
    )


def _write_episodes(dataset: Dataset, path: Path) -> None:
    """Write one group for each episode, a bounded number of frames at a time."""
    timeline, spec, truncated = dataset.timeline, dataset.spec, truncations(dataset)
    truncated[-1] |= not timeline.terminal[dataset.stops[-1] - 1]
    with _hdf5.created(path, "minari", track_order=True) as file:
        for episode, (start, stop) in enumerate(zip(dataset.starts, dataset.stops, strict=True)):
            group, steps = file.create_group(f"episode_{episode}"), slice(start, stop)
            group.attrs["id"], group.attrs["total_steps"] = episode, int(stop - start)
            shape = (int(stop - start) + 1, *spec.frame_shape)
            observations = group.create_dataset("observations", shape, spec.frame_dtype)
            for place, frames in frames_of(dataset, int(start), shape[0]):
                observations[place : place + len(frames)] = frames
            actions = timeline.action[steps]
            group.create_dataset("actions", data=actions.astype(np.int64) if spec.discrete else actions)
            group.create_dataset("rewards", data=timeline.reward[steps])
            group.create_dataset("terminations", data=timeline.terminal[steps])
            rows = slice(*dataset.offsets[[episode, episode + 1]])
            group.create_dataset("truncations", data=truncated[rows])
            if timeline.allowed is not None:
                group.create_dataset(f"infos/{MASK}", data=_masks(timeline, steps))


def _masks(timeline: Timeline, steps: slice) -> np.ndarray:
    """The masks of an episode's steps and of its final state, as in Gymnasium; zeros where it is unknown."""
    masks = cast(Masks, timeline.allowed)
    bits = np.concatenate([masks.bits[steps], timeline.allowed_after(np.array([steps.stop - 1]))])
    return Masks(bits, masks.actions)[:].astype(np.int8)


def _metadata(dataset: Dataset, out: Path, options: WriteOptions) -> dict[str, Any]:
    spec, name = dataset.spec, re.sub(r"[^-_\w]", "-", out.resolve().name) or "log"
    metadata: dict[str, Any] = {
        "total_episodes": len(dataset.starts),
        "total_steps": len(dataset),
        "data_format": "hdf5",
        "jpeg_encoding": False,
        "observation_space": json.dumps(_observation_space(spec)),
        "action_space": json.dumps(_action_space(spec)),
        "dataset_id": options.id or (name if re.search(r"-v\d+$", name) else f"{name}-v0"),
        "minari_version": VERSION,
        OURS: signature(dataset),
    }
    env_spec = _env_spec(str(dataset.provenance.get("environment") or ""))
    more = {"author": options.author and [options.author], "env_spec": env_spec}
    return metadata | {name: value for name, value in more.items() if value}


def _observation_space(spec: Spec) -> dict[str, Any]:
    shape, kind = spec.frame_shape, spec.frame_dtype
    low, high = {"float32": (-np.inf, np.inf), "uint8": (0, 255), "bool": (0, 1)}[kind]
    bounds = {"low": np.full(shape, low).tolist(), "high": np.full(shape, high).tolist()}
    return {"type": "Box", "dtype": kind, "shape": list(shape), **bounds}


def _action_space(spec: Spec) -> dict[str, Any]:
    if spec.discrete:
        return {"type": "Discrete", "dtype": "int64", "start": 0, "n": spec.actions}
    size = len(spec.action_low)
    bounds = {"low": list(spec.action_low), "high": list(spec.action_high)}
    return {"type": "Box", "dtype": "float32", "shape": [size], **bounds}


def _env_spec(environment: str) -> str | None:
    """The environment as Gymnasium writes it, if it is one of Gymnasium's and installed."""
    family, _, name = environment.partition("/")
    if family not in ("gym", "mujoco"):
        return None
    try:
        import gymnasium

        return gymnasium.spec(name).to_json()
    except Exception:  # not installed, unknown, or not expressible: the data do not depend on it
        return None
