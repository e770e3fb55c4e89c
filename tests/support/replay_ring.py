"""A reference of the DQN Replay logger, entry by entry, and the transitions that its logs contain."""

import gzip
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optimist.data import formats

REPLAY = formats.find("dqn-replay")

PADDING = 3


def import_dqn_replay(address, out, progress=None, **options):
    return REPLAY.read(address, out, REPLAY.ReadOptions(**options), progress)


def export_dqn_replay(dataset, out, **options):
    return REPLAY.write(dataset, out, REPLAY.WriteOptions(**options))


@dataclass
class Entry:
    """The contents of one slot."""

    frame: np.ndarray
    action: int
    reward: float
    terminal: int
    padding: bool
    episode: int


class Ring:
    """A ring of `capacity` entries that is dumped like that of the released logger."""

    def __init__(self, folder: Path, capacity: int, frame=(6, 5), *, every_add: bool = False):
        self.folder, self.capacity, self.every_add = folder / "replay_logs", capacity, every_add
        self.folder.mkdir(parents=True)
        self.entries: list[Entry] = []
        self.fresh: dict[int, int] = {}  # of each window that was dumped
        self.suffix_of: dict[int, int] = {}
        self.next_suffix = self.episode = 0
        # Stands for the random contents of np.empty.
        self.observation = np.full((capacity, *frame), 77, np.uint8)
        self.action = np.full(capacity, -9, np.int32)
        self.reward = np.full(capacity, np.nan, np.float32)
        self.terminal = np.full(capacity, 5, np.uint8)

    def add(self, frame, action: int, reward: float, terminal: int) -> None:
        if not self.entries or self.entries[-1].terminal:
            self.episode += 1
            for _ in range(PADDING):
                self._put(Entry(np.zeros_like(frame), 0, 0.0, 0, True, self.episode))
                if self.every_add:
                    self._dump_if_due()
        self._put(Entry(frame, action, reward, terminal, False, self.episode))
        self._dump_if_due()

    def _put(self, entry: Entry) -> None:
        slot = len(self.entries) % self.capacity
        self.observation[slot], self.action[slot] = entry.frame, entry.action
        self.reward[slot], self.terminal[slot] = entry.reward, entry.terminal
        self.entries.append(entry)

    def _dump_if_due(self) -> None:
        if len(self.entries) % self.capacity == self.capacity - 1:
            self._dump(len(self.entries), self.capacity - 1)

    def finish(self) -> None:
        cursor = len(self.entries) % self.capacity
        self._dump(cursor, cursor)

    def _dump(self, add_count: int, fresh: int) -> None:
        window = len(self.entries) // self.capacity
        self.fresh[window], self.suffix_of[window] = fresh, self.next_suffix
        cursor = len(self.entries) % self.capacity
        arrays = {
            "$store$_observation": self.observation,
            "$store$_action": self.action,
            "$store$_reward": self.reward,
            "$store$_terminal": self.terminal,
            "add_count": np.array(add_count, np.int64),
            "invalid_range": np.array([(cursor - 1 + i) % self.capacity for i in range(5)], np.int64),
        }
        for name, array in arrays.items():
            put(self.folder / f"{name}_ckpt.{self.next_suffix}.gz", array)
        self.next_suffix += 1

    def lose(self, window: int) -> None:
        """Remove a window's files, as if they had not been fetched."""
        for path in self.folder.glob(f"*_ckpt.{self.suffix_of.pop(window)}.gz"):
            path.unlink()
        del self.fresh[window]


def put(path: Path, array: np.ndarray, level: int = 1) -> None:
    buffer = io.BytesIO()
    np.save(buffer, array)
    path.write_bytes(gzip.compress(buffer.getvalue(), level))


def play(ring: Ring, lengths: list[int], *, unfinished: int = 0, seed: int = 0) -> Ring:
    """Random episodes of these lengths, and an unfinished one."""
    random = np.random.default_rng(seed)
    for number, length in enumerate([*lengths, unfinished]):
        for step in range(length):
            frame = random.integers(1, 256, ring.observation.shape[1:]).astype(np.uint8)
            ends = step == length - 1 and number < len(lengths)
            ring.add(frame, int(random.integers(4)), float(random.integers(-1, 2)), int(ends))
    return ring


def stretches(ring: Ring) -> list[list[int]]:
    """The entries in the dumps, in stretches without a gap."""
    runs: list[list[int]] = []
    for window in sorted(ring.fresh):
        begin = window * ring.capacity
        if window - 1 in ring.fresh:
            runs[-1].append(begin - 1)
        else:
            runs.append([])
        runs[-1] += range(begin, begin + ring.fresh[window])
    return runs


def expected(ring: Ring) -> list[tuple]:
    """Every transition with a known successor: (state, action, reward, terminal, next state, stretch)."""
    found = []
    for number, run in enumerate(stretches(ring)):
        known = set(run)
        for place in run:
            entry = ring.entries[place]
            if entry.padding or not (entry.terminal or place + 1 in known):
                continue
            after = None if entry.terminal else place + 1
            states = [slow_stack(ring, known, at, entry.episode) for at in (place, after)]
            found.append((states[0], entry.action, entry.reward, entry.terminal, states[1], number))
    return found


def slow_stack(ring: Ring, known: set[int], at: int | None, episode: int) -> np.ndarray | None:
    if at is None:
        return None
    frames = []
    for place in range(at - 3, at + 1):
        usable = place in known and ring.entries[place].episode == episode
        frames.append(ring.entries[place].frame if usable else np.zeros_like(ring.entries[at].frame))
    return np.stack(frames, axis=-1)


def imported(dataset) -> list[tuple]:
    """The transitions of a dataset, in the same form."""
    timeline, found = dataset.timeline, []
    frames = timeline.decoded()
    for step in range(len(timeline)):
        episode = int(timeline.episode_of(np.array([step]))[0])
        begin = int(timeline.episode_starts[episode])
        stacks = []
        for last in (step, step + 1):
            shown = [
                frames[i + episode] if i >= begin else np.zeros_like(frames[0])
                for i in range(last - 3, last + 1)
            ]
            stacks.append(np.concatenate(shown, axis=-1))
        if timeline.terminal[step]:
            assert not frames[step + 1 + episode].any(), "the frame after an end is black"
        after = None if timeline.terminal[step] else stacks[1]
        columns = (timeline.action[step], timeline.reward[step], timeline.terminal[step])
        found.append((stacks[0], *columns, after, timeline.lane[step]))
    return found


def assert_same(found: list[tuple], wanted: list[tuple]) -> None:
    assert len(found) == len(wanted)
    for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
        for left, right in zip(one, other, strict=True):
            np.testing.assert_array_equal(left, right, err_msg=f"step {number}")
