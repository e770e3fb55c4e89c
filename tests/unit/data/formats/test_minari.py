"""Minari datasets that the package minari made are read as it reads them, and it reads those made here."""

import gymnasium
import h5py
import minari
import numpy as np
import pytest
from gymnasium import spaces

from format_logs import SPECS, recorded
from optimist.cli.main import main
from optimist.data import formats, open_dataset
from optimist.data.timeline import Masks
from optimist.errors import DataError, UsageError

FORMAT = formats.find("minari")
WHO = {"algorithm_name": "random", "author": "us", "author_email": "us@here", "code_permalink": "none"}
DESCRIPTION = {"description": "noise", **WHO}
pytestmark = pytest.mark.filterwarnings("ignore")  # minari's own, about its metadata


class Noise(gymnasium.Env):
    """Random observations of any space; episodes of five steps that end in turn in both ways."""

    def __init__(self, observations: spaces.Space, actions: spaces.Space):
        self.observation_space, self.action_space = observations, actions
        self.episode = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.step_number, self.episode = 0, self.episode + 1
        return self.observation_space.sample(), {}

    def step(self, action):
        self.step_number += 1
        over, terminal = self.step_number == 5, self.episode % 2 == 0
        return self.observation_space.sample(), 0.5, over and terminal, over and not terminal, {}


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "store"))
    return tmp_path / "store"


def made(env, name: str, **options):
    """A dataset in the local store, recorded by minari's own collector."""
    collector = minari.DataCollector(env, **options)
    for episode in range(3):
        collector.reset(seed=episode)
        over = False
        while not over:
            _, _, terminal, truncated, _ = collector.step(env.action_space.sample())
            over = terminal or truncated
    return collector.create_dataset(dataset_id=name, **DESCRIPTION)


def flat(space: spaces.Space, values, steps: int) -> np.ndarray:
    """The observations of an episode, flattened one by one by gymnasium."""

    def at(values, step):
        if isinstance(values, dict):
            return {name: at(part, step) for name, part in values.items()}
        return tuple(at(part, step) for part in values) if isinstance(values, tuple) else values[step]

    return np.stack([spaces.flatten(space, at(values, step)) for step in range(steps)])


IMAGE = spaces.Box(0, 255, (36, 40, 3), np.uint8)
MIXED = spaces.Dict(
    z=spaces.Box(-1, 1, (2,), np.float64),
    a=spaces.Discrete(3, start=2),
    m=spaces.Tuple((spaces.MultiBinary(2), spaces.MultiDiscrete([2, 3]))),
)
BOX = spaces.Box(-2, 2, (2,), np.float32)
DATASETS = {
    "cart/pole-v0": lambda: gymnasium.make("CartPole-v1"),
    "pendulum-v0": lambda: gymnasium.make("Pendulum-v1"),
    "images-v0": lambda: Noise(IMAGE, spaces.Discrete(3)),
    "grey-v0": lambda: Noise(spaces.Box(0, 255, (36, 40), np.uint8), spaces.Discrete(3)),
    "numbers-v0": lambda: Noise(spaces.Discrete(4), spaces.Discrete(2)),
    "mixed-v0": lambda: Noise(MIXED, BOX),
    "unbounded-v0": lambda: Noise(spaces.Box(0, 9, (2,), np.int32), spaces.Box(-np.inf, np.inf, (2,))),
}


@pytest.mark.parametrize("name", DATASETS)
def test_a_dataset_of_the_package_comes_in_and_goes_out(store, tmp_path, name):
    env = DATASETS[name]()
    theirs = made(env, name, jpeg_encoding=False)
    assert formats.detect(name) == "minari"
    assert FORMAT.verify(name).problems == []
    FORMAT.read(name, tmp_path / "data")
    data = open_dataset(tmp_path / "data")
    start = 0
    for number, episode in enumerate(theirs.iterate_episodes()):
        steps = len(episode.rewards)
        frames = data.timeline.frames(np.arange(start + number, start + number + steps + 1))
        observations = episode.observations
        if isinstance(env.observation_space, (spaces.Dict, spaces.Discrete)):
            observations = flat(env.observation_space, observations, steps + 1)
        np.testing.assert_array_equal(frames.reshape(observations.shape), observations.astype(frames.dtype))
        part, columns = slice(start, start + steps), data.timeline
        np.testing.assert_array_equal(columns.action[part], episode.actions.astype(data.spec.action_dtype))
        np.testing.assert_array_equal(columns.reward[part], episode.rewards.astype(np.float32))
        np.testing.assert_array_equal(columns.terminal[part], episode.terminations)
        np.testing.assert_array_equal(columns.truncated[part], episode.truncations)
        start += steps
    assert start == len(data) == theirs.total_steps

    FORMAT.write(data, store / "ours" / name, FORMAT.WriteOptions(id=f"ours/{name}", author="us"))
    ours = minari.load_dataset(f"ours/{name}")
    assert (ours.total_steps, ours.total_episodes) == (theirs.total_steps, theirs.total_episodes)
    for one, other in zip(ours.iterate_episodes(), theirs.iterate_episodes(), strict=True):
        np.testing.assert_array_equal(one.truncations, other.truncations)
        if isinstance(env.observation_space, spaces.Box):
            np.testing.assert_array_equal(
                one.observations.reshape(other.observations.shape), other.observations
            )


def test_the_environment_is_the_datasets_own(store, tmp_path, capsys):
    made(gymnasium.make("CartPole-v1"), "cart-v0")
    assert main(["data", "import", "cart-v0", "--out", str(tmp_path / "data")]) == 0
    assert "environment: gym/CartPole-v1" in capsys.readouterr().out
    assert open_dataset(tmp_path / "data").provenance["environment"] == "gym/CartPole-v1"
    FORMAT.write(open_dataset(tmp_path / "data"), store / "again-v0")
    assert minari.load_dataset("again-v0").recover_environment().spec.id == "CartPole-v1"


def test_jpeg_images_are_refused_unless_asked_for(store, tmp_path):
    theirs = made(Noise(IMAGE, spaces.Discrete(3)), "jpeg-v0")
    with pytest.raises(DataError, match="holds JPEG images.*--jpeg yes") as refused:
        FORMAT.read("jpeg-v0", tmp_path / "data")
    assert "\n" not in str(refused.value) and not (tmp_path / "data").exists()
    summary = FORMAT.read("jpeg-v0", tmp_path / "data", FORMAT.ReadOptions(jpeg=True))
    assert any("stored as JPEG" in line for line in summary.lines())
    episode = next(iter(theirs.iterate_episodes()))
    frames = open_dataset(tmp_path / "data").timeline.frames(np.arange(6))
    np.testing.assert_array_equal(frames, episode.observations)


def test_parts_of_the_observations_can_be_left_out(store, tmp_path):
    made(Noise(MIXED, BOX), "mixed-v0")
    FORMAT.read("mixed-v0", tmp_path / "data", FORMAT.ReadOptions(drop="z,m"))
    assert open_dataset(tmp_path / "data").spec.frame_shape == (3,)
    with pytest.raises(DataError, match='the observations have no part "zz"'):
        FORMAT.read("mixed-v0", tmp_path / "other", FORMAT.ReadOptions(drop="zz"))
    made(Noise(spaces.Dict(image=IMAGE, speed=BOX), BOX), "pictures-v0", jpeg_encoding=False)
    with pytest.raises(DataError, match="--drop image"):
        FORMAT.read("pictures-v0", tmp_path / "other")


class Masked(Noise):
    """It says after every step which of three actions may be taken, and what was said is kept here."""

    def __init__(self):
        super().__init__(BOX, spaces.Discrete(3, start=1))
        self.random, self.said = np.random.default_rng(0), []

    def _said(self) -> dict:
        self.said.append(self.random.random(3) < 0.6)
        self.said[-1][self.random.integers(3)] = True
        return {"action_mask": self.said[-1].astype(np.int8), "lives": 3}

    def step(self, action):
        return *super().step(action)[:4], self._said()

    def reset(self, **options):
        return super().reset(**options)[0], self._said()


def collected(env: Masked, name: str, *, obeys: bool) -> list[np.ndarray]:
    """A dataset in the local store; the masks of its episodes, (steps + 1, actions)."""
    collector = minari.DataCollector(env, record_infos=True)
    masks = []
    for episode in range(3):
        env.said = []
        collector.reset(seed=episode)
        for _ in range(5):
            mask = env.said[-1] if obeys else ~env.said[-1]
            collector.step(1 + int(mask.argmax()))
        masks.append(np.array(env.said))
    collector.create_dataset(dataset_id=name, **DESCRIPTION)
    return masks


class MaskedInside(Masked):
    """As in PettingZoo: the mask is a part of the observation."""

    def __init__(self):
        super().__init__()
        inside = spaces.Box(0, 1, (3,), np.int8)
        self.observation_space = spaces.Dict(observation=BOX, action_mask=inside)

    def _said(self) -> dict:
        super()._said()
        return {}

    def step(self, action):
        _, *rest = super().step(action)
        return self.seen(), *rest

    def reset(self, **options):
        return (self.seen() if super().reset(**options) else {}), {}

    def seen(self) -> dict:
        return {"observation": BOX.sample(), "action_mask": self.said[-1].astype(np.int8)}


@pytest.mark.parametrize("drop", ["", "action_mask"])
def test_masks_inside_the_observations_are_the_logs(store, tmp_path, drop):
    said = collected(MaskedInside(), "inside-v0", obeys=True)
    FORMAT.read("inside-v0", tmp_path / "data", FORMAT.ReadOptions(drop=drop))
    data = open_dataset(tmp_path / "data")
    assert data.spec.frame_shape == BOX.shape
    if drop:
        assert data.timeline.allowed is None
    else:
        np.testing.assert_array_equal(data.timeline.allowed, np.concatenate([masks[:-1] for masks in said]))


def test_masks_of_actions_among_the_infos_are_the_logs(store, tmp_path, capsys):
    """An agent that learned without them would take forbidden actions."""
    said = collected(Masked(), "masked-v0", obeys=True)
    assert main(["data", "import", "minari", "masked-v0", "--out", str(tmp_path / "data")]) == 0
    assert "infos of the steps left out: lives\n" in capsys.readouterr().out
    timeline = open_dataset(tmp_path / "data").timeline
    for episode, masks in enumerate(said):
        steps = np.arange(5) + 5 * episode
        np.testing.assert_array_equal(timeline.allowed[steps], masks[:-1])
        after = Masks(timeline.allowed_after(steps), 3)[:]
        known = masks[1:].copy()
        known[-1] &= not timeline.terminal[steps[-1]]  # nothing is chosen after a terminal step
        np.testing.assert_array_equal(after, known)
    FORMAT.write(open_dataset(tmp_path / "data"), store / "again-v0")
    for masks, theirs in zip(said, minari.load_dataset("again-v0").iterate_episodes(), strict=True):
        last = masks[-1] & (not theirs.terminations[-1])
        np.testing.assert_array_equal(theirs.infos["action_mask"], [*masks[:-1], last])
    FORMAT.read("again-v0", tmp_path / "again")
    again = open_dataset(tmp_path / "again").timeline
    np.testing.assert_array_equal(np.asarray(again.allowed), np.asarray(timeline.allowed))
    np.testing.assert_array_equal(again.next_allowed.bits, timeline.next_allowed.bits)


def test_masks_that_the_player_did_not_obey_are_refused_until_they_are_left_out(store, tmp_path, capsys):
    env = Masked()
    env.random = np.random.default_rng(3)
    collected(env, "free-v0", obeys=False)
    words = ["data", "import", "minari", "free-v0", "--out", str(tmp_path / "data")]
    assert main(words) == 3
    assert "--drop action_mask" in capsys.readouterr().err
    assert main([*words, "--drop", "action_mask"]) == 0
    assert "infos of the steps left out: action_mask, lives\n" in capsys.readouterr().out
    assert open_dataset(tmp_path / "data").timeline.allowed is None


def test_masks_without_the_final_states_are_refused(store, tmp_path, capsys):
    collected(Masked(), "short-v0", obeys=True)
    with h5py.File(store / "short-v0" / "data" / "main_data.hdf5", "a") as file:
        masks = file["episode_1/infos/action_mask"][:-1]
        del file["episode_1/infos/action_mask"]
        file["episode_1/infos/action_mask"] = masks
    assert main(["data", "import", "minari", "short-v0", "--out", str(tmp_path / "data")]) == 3
    said = capsys.readouterr().err
    assert "episode_1 has masks of shape (5, 3) for 5 steps" in said and "--drop action_mask" in said
    assert len(FORMAT.verify("short-v0").problems) == 1


def test_observations_without_numbers_are_refused(store, tmp_path, capsys):
    """It was a traceback of a division by zero."""
    made(Noise(spaces.Box(-1, 1, (0,)), spaces.Discrete(2)), "empty-v0")
    assert main(["data", "import", "minari", "empty-v0", "--out", str(tmp_path / "data")]) == 3
    assert "have no numbers: there is nothing to learn from" in capsys.readouterr().err
    assert len(FORMAT.verify("empty-v0").problems) == 1


def test_rewards_that_float32_would_round_are_refused(tmp_path):
    """They are checked before they are converted."""
    FORMAT.write(recorded(tmp_path / "log", SPECS["vectors"]), tmp_path / "out")
    with h5py.File(tmp_path / "out" / "data" / "main_data.hdf5", "a") as file:
        for group in file.values():
            rewards = 1e9 + group["rewards"][()].astype(float)
            del group["rewards"]
            group["rewards"] = rewards
    with pytest.raises(DataError, match="rewards are near 1e.09, and float32 holds them in steps of 64"):
        FORMAT.read(tmp_path / "out", tmp_path / "data")


def test_what_is_not_a_dataset_is_refused_in_one_line(store, tmp_path):
    with pytest.raises(DataError, match="pip install minari.: minari download cart/pole-v9"):
        FORMAT.read("cart/pole-v9", tmp_path / "data")
    FORMAT.write(recorded(tmp_path / "log", SPECS["vectors"]), tmp_path / "out")
    file, facts = tmp_path / "out" / "data" / "main_data.hdf5", tmp_path / "out" / "data" / "metadata.json"

    def problem() -> str:
        return FORMAT.verify(tmp_path / "out").problems[0]

    content, text = file.read_bytes(), facts.read_text()
    file.write_bytes(content[: len(content) // 2])
    assert "is not a readable HDF5 file" in problem()
    file.write_bytes(content)
    facts.write_text(text.replace('"total_episodes": ', '"total_episodes": 1'))
    assert "counts 115 episodes, and main_data.hdf5 holds 15" in problem()
    facts.write_text(text.replace('\\"Discrete\\"', '\\"Text\\"'))
    assert "Text spaces are not supported" in problem()
    facts.write_text("{")
    assert "is not a readable table of facts" in problem()
    with pytest.raises(UsageError, match="write namespace/name-v0"):
        FORMAT.WriteOptions(id="a b")
