"""Random play, and slow plain-loop results that `optimist.data` must reproduce."""

from dataclasses import dataclass

import numpy as np

from optimist.data import Recorder, Spec

SPECS = {
    "pixels": Spec((6, 5, 1), "uint8", actions=4, stack=4),
    "planes": Spec((5, 5, 3), "bool", actions=3, stack=2),
    "vectors": Spec((7,), "float32", action_low=(-1.0, -1.0), action_high=(1.0, 1.0)),
}


@dataclass
class Step:
    """One step in plain values."""

    observation: np.ndarray
    action: np.ndarray
    reward: float
    terminal: bool
    truncated: bool
    next_observation: np.ndarray
    time: int


def random_frames(spec: Spec, count: int, random: np.random.Generator) -> np.ndarray:
    if spec.frame_dtype == "float32":
        return random.normal(size=(count, *spec.frame_shape)).astype(np.float32)
    high = 2 if spec.frame_dtype == "bool" else 256
    return random.integers(0, high, (count, *spec.frame_shape)).astype(spec.frame_dtype)


def random_actions(spec: Spec, count: int, random: np.random.Generator) -> np.ndarray:
    if spec.discrete:
        return random.integers(0, spec.actions, count).astype(np.int32)
    return random.uniform(-1, 1, (count, *spec.action_shape)).astype(np.float32)


def record(
    path, spec: Spec, *, lanes=1, rows=100, shard_steps=64, seed=0, ends=0.15, **options
) -> list[list[Step]]:
    """Record random play, and return each lane's steps."""
    random = np.random.default_rng(seed)
    played: list[list[Step]] = [[] for _ in range(lanes)]
    with Recorder(path, spec, lanes=lanes, shard_steps=shard_steps, **options) as recorder:
        first_time = recorder.steps
        observation = random_frames(spec, lanes, random)
        for row in range(rows):
            action = random_actions(spec, lanes, random)
            reward = random.normal(size=lanes).astype(np.float32) * 2
            terminal = random.random(lanes) < ends / 2
            truncated = random.random(lanes) < ends / 2
            following = random_frames(spec, lanes, random)
            recorder.add(observation, action, reward, terminal, truncated, following)
            for lane in range(lanes):
                time = first_time + row * lanes + lane
                given = (observation, action, reward, terminal, truncated, following)
                played[lane].append(Step(*(column[lane].copy() for column in given), time=time))
            restarted = random_frames(spec, lanes, random)
            over = (terminal | truncated).reshape(lanes, *[1] * len(spec.frame_shape))
            observation = np.where(over, restarted, following)
    return played


def episodes_of(lanes: list[list[Step]]) -> list[list[Step]]:
    """The timeline as a list of episodes."""
    episodes: list[list[Step]] = []
    for lane in lanes:
        episodes.append([])
        for step in lane:
            episodes[-1].append(step)
            if step.terminal or step.truncated:
                episodes.append([])
        episodes = [episode for episode in episodes if episode]
    return episodes


def slow_stack(episode: list[Step], index: int, stack: int) -> np.ndarray:
    """The observation before step `index` (or the final one), frame by frame."""
    frames = [step.observation for step in episode] + [episode[-1].next_observation]
    joined = [frames[i] if i >= 0 else np.zeros_like(frames[0]) for i in range(index - stack + 1, index + 1)]
    return np.concatenate(joined, axis=-1)


def slow_transition(episode, index, *, stop, stack, n_step, gamma, clip):
    """(observation, action, reward, discount, next_observation) with a window that ends at `stop`."""
    reward, discount, at = 0.0, 1.0, index
    while at < stop and at < index + n_step:
        step = episode[at]
        gained = float(step.reward) if clip is None else max(-clip, min(clip, float(step.reward)))
        reward += discount * gained
        discount *= 0.0 if step.terminal else gamma
        at += 1
    before, after = slow_stack(episode, index, stack), slow_stack(episode, at, stack)
    return before, episode[index].action, reward, discount, after
