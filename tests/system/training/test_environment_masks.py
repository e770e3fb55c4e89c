"""The masks of an environment are obeyed and recorded wherever it is played. The gates of these tests raise
an error for an action that their mask forbids."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import optimist
from fuse import Fuse
from little import small, vectors
from optimist import envs
from optimist.agents._table_agent import HuberAgent
from optimist.data import Dataset, Recorder, Spec, Transition
from optimist.data.verify import verify
from optimist.envs import Lanes, Step
from optimist.errors import DataError, UsageError
from optimist.training.evaluation import _stream, check_playable, evaluate
from optimist.training.learner import Learner
from optimist.training.play.acting import act
from optimist.training.play.replay import Memory, Mixed, Recall

ACTIONS, LENGTH = 4, 5
GATES = "gym/Gates-v0"
MASKED = vectors(20, actions_count=3).spec


def mask_of(place: int, episode: int) -> np.ndarray:
    """One or two of four actions, which ones the observation tells."""
    mask = np.zeros(ACTIONS, np.int8)
    mask[[(place + episode) % ACTIONS, (place * episode) % ACTIONS]] = 1
    return mask


class Gates(gymnasium.Env):
    """Five gates in a row. The fifth step is terminal in every other episode, else truncated."""

    observation_space = Box(0, np.inf, (2,), np.float32)
    action_space = Discrete(ACTIONS)
    metadata = {"render_modes": ["rgb_array"]}
    played = 0  # steps of all environments

    def __init__(self, render_mode=None):
        self.render_mode, self.episode = render_mode, 0

    def seen(self) -> tuple[Any, dict]:
        return np.float32([self.place, self.episode]), {"action_mask": mask_of(self.place, self.episode)}

    def reset(self, *, seed=None, options=None):
        self.place, self.episode = 0, self.episode + 1
        return self.seen()

    def step(self, action):
        assert mask_of(self.place, self.episode)[action], "forbidden"
        self.place, Gates.played = self.place + 1, Gates.played + 1
        over, lasts = self.place == LENGTH, self.episode % 2
        return self.seen()[0], float(action), over and not lasts, over and bool(lasts), self.seen()[1]

    def render(self):
        return np.zeros((8, 8, 3), np.uint8)


class BoardGates(Gates):
    """As in PettingZoo: the mask is inside the observation."""

    observation_space = Dict(
        {"observation": Gates.observation_space, "action_mask": Box(0, 1, (ACTIONS,), np.int8)}
    )

    def seen(self):
        observation, info = super().seen()
        return {"observation": observation, **info}, {}


class TwoPartGates(BoardGates):
    observation_space = Dict(
        {"place": Box(0, 9, (1,)), "episode": Box(0, 99, (1,)), "action_mask": MultiBinary(ACTIONS)}
    )

    def seen(self):
        (place, episode), info = Gates.seen(self)
        return {"place": np.float32([place]), "episode": np.float32([episode]), **info}, {}


class Forgetful(Gates):
    """Where everything is allowed it says nothing; but it begins with a mask."""

    def step(self, action):
        *rest, _ = super().step(action)
        return *rest, {}


class Late(Gates):
    def reset(self, **options):
        return super().reset(**options)[0], {}


class Closed(Gates):
    def seen(self):
        return super().seen()[0], {"action_mask": np.zeros(ACTIONS, np.int8)}


class Wide(Gates):
    def seen(self):
        return super().seen()[0], {"action_mask": np.ones(ACTIONS + 1, np.int8)}


class Open(Gates):
    """The same without masks."""

    def seen(self):
        return super().seen()[0], {}

    def step(self, action):
        self.place += 1
        return self.seen()[0], float(action), False, self.place == LENGTH, {}


GAMES = (Gates, BoardGates, TwoPartGates, Late, Closed, Wide, Open)


@pytest.fixture(scope="module", autouse=True)
def _known_to_gymnasium():
    for game in GAMES:
        gymnasium.register(f"{game.__name__}-v0", entry_point=game)
    yield
    for game in GAMES:
        del gymnasium.registry[f"{game.__name__}-v0"]


QUICK = {"lanes": 2, "window": 60, "warm_up": 20, "epsilon_decay": 20, "epsilon": 0.5, "batch": 4}


@pytest.fixture(scope="module")
def collected(tmp_path_factory, _known_to_gymnasium):
    """The log of two seeds of an agent that learns and explores behind the gates."""
    out = tmp_path_factory.mktemp("gates") / "log"
    return optimist.collect(GATES, agent=small("rem"), steps=64, seeds=(0, 1), out=out, **QUICK)


@pytest.fixture(scope="module")
def run(collected, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "run"
    return optimist.train(small("dqn"), collected, steps=4, evaluate_every=2, episodes=2, out=out)


def check_gates(data: Dataset) -> None:
    """Every step has the mask of its state, and every successor that counts its own."""
    masks, timeline = data.timeline.allowed, data.timeline
    assert masks.allow(timeline.action).all()
    after = np.unpackbits(timeline.allowed_after(np.arange(len(data.timeline))), axis=-1, count=ACTIONS)
    step = 0
    for episode in data.episodes:
        expected = [mask_of(int(place), int(number)) for place, number in episode.frames]
        for place in range(len(episode)):
            np.testing.assert_array_equal(masks[step], expected[place])
            known = np.zeros(ACTIONS) if timeline.terminal[step] else expected[place + 1]
            np.testing.assert_array_equal(after[step], known)
            step += 1
    assert step == len(data.timeline) and not np.array(masks).all()


def test_collect_obeys_and_records_the_masks(collected):
    check_gates(collected)
    assert collected.timeline.truncated.any() and collected.timeline.terminal.any()
    assert verify(collected.timeline.source.folder) == []
    assert optimist.load(collected.timeline.source.folder / "agent").masked


@pytest.mark.parametrize("game", ["BoardGates", "TwoPartGates"])
def test_a_mask_inside_a_dict_observation_is_a_mask_and_no_part_of_the_frame(game, tmp_path):
    data = optimist.collect(f"gym/{game}-v0", agent="random", steps=40, lanes=2, out=tmp_path)
    assert data.spec.frame_shape == (2,)
    if game == "BoardGates":
        check_gates(data)
    assert data.timeline.allowed.allow(data.timeline.action).all()


def test_the_policy_of_a_masked_log_plays_among_the_allowed_actions(run, collected):
    """In evaluation, in a film, and where a few real episodes decide; with half of the actions at random."""
    before = Gates.played
    assert [row.length for row in run.evaluate(3, epsilon=0.5)] == [LENGTH] * 3
    assert len(run.pictures(frames=7)) == 7
    optimist.select(run.path, data=collected, updates=20, episodes=4)
    assert Gates.played > before + 3 * LENGTH + 6


def test_every_seed_and_lane_is_evaluated_by_its_own_mask(collected):
    """By steps, so that lanes begin new episodes."""
    learner = Learner(small("dqn"), collected.spec)
    rows = evaluate(
        learner, learner.init((0, 1)).params, GATES, seeds=(0, 1), episodes=0, steps=200, epsilon=0.1
    )
    assert {row.seed for row in rows} == {0, 1} and {row.length for row in rows} == {LENGTH}


def test_all_exploration_is_among_the_allowed_actions_and_reaches_each():
    learner, allowed = Learner(optimist.agents.Random(), MASKED), np.array([1, 0, 1], bool)
    for epsilon in (0.0, 1.0):
        masks = np.broadcast_to(allowed, (1, 400, 3))
        taken = act(learner, {}, np.zeros((1, 400, 4), np.float32), epsilon, jax.random.PRNGKey(0), 0, masks)
        counts = np.bincount(np.asarray(taken)[0], minlength=3)
        assert counts[1] == 0 and (abs(counts[[0, 2]] - 200) < 50).all()


def test_a_log_with_masks_in_an_environment_without_them_is_said_and_the_other_way_round(collected, caplog):
    check_playable(collected.spec, "gym/Open-v0", masked=True)
    check_playable(collected.spec, "gym/Open-v0", masked=False)
    check_playable(collected.spec, GATES, masked=True)
    check_playable(collected.spec, GATES, masked=False)
    assert caplog.messages == [
        "the log has masks of allowed actions, and gym/Open-v0 gives none: every action can be chosen there",
        f"{GATES} gives masks of allowed actions, and the log has none: policies obey them there, untrained",
    ]


def test_a_policy_without_masks_obeys_those_of_the_environment(tmp_path):
    log = optimist.collect("gym/Open-v0", agent="random", steps=40, lanes=2, out=tmp_path / "log")
    assert log.timeline.allowed is None
    run = optimist.train(small("dqn"), log, steps=2, out=tmp_path / "run", environment="")
    assert not run.masked and run.policy(np.zeros(2, np.float32)) in range(ACTIONS)
    run, played = optimist.load(tmp_path / "run"), Gates.played
    assert len(run.evaluate(2, environment=GATES, epsilon=0.5)) == 2  # a gate raises at a forbidden action
    assert Gates.played >= played + 2 * LENGTH
    assert len(run.evaluate(2, environment="gym/Open-v0")) == 2


def test_a_mask_that_cannot_be_obeyed_is_one_line():
    for game, said in {
        "Late": r"gives an action_mask of \(4,\) for 4 actions, and none at its first reset: wrap",
        "Wide": r"gives an action_mask of \(5,\) for 4 actions: wrap the environment",
        "Closed": "allows no action, and its episode goes on: correct its mask, or end",
    }.items():
        with pytest.raises(UsageError, match=f"gym/{game}-v0 {said}"):
            play = envs.make(f"gym/{game}-v0")
            play.reset()
            play.step([0])


def test_where_a_later_mask_is_missing_everything_is_allowed(tmp_path):
    env = optimist.record(Forgetful(), tmp_path)
    _, info = env.reset()
    env.step(int(info["action_mask"].argmax()))
    env.unwrapped.place = 0
    env.step(int(info["action_mask"].argmax()))
    env.close()
    masks = np.array(optimist.open(tmp_path).timeline.allowed)
    np.testing.assert_array_equal(masks, [info["action_mask"], np.ones(ACTIONS)])


# Recording.


def play_gates(env, steps: int) -> None:
    """Any allowed action, in an environment that is reset by hand."""
    random = np.random.default_rng(0)
    seen, info = env.reset()
    for _ in range(steps):
        mask = info["action_mask"] if "action_mask" in info else seen["action_mask"]
        seen, _, terminal, truncated, info = env.step(random.choice(np.flatnonzero(mask)))
        if terminal or truncated:
            seen, info = env.reset()
    env.close()


@pytest.mark.parametrize("game", [Gates, BoardGates])
def test_record_keeps_the_masks(game, tmp_path, monkeypatch):
    monkeypatch.setattr("optimist.data.lane_recorder.SHARD_STEPS", 7)
    play_gates(optimist.record(game(), tmp_path), steps=33)
    play_gates(optimist.record(game(), tmp_path), steps=4)  # a second lane in the same folder
    data = optimist.open(tmp_path)
    check_gates(data)
    assert len(data.timeline) == 37 and verify(tmp_path) == []


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_a_recorded_vector_has_the_masks_of_each_lane(mode, tmp_path):
    env = optimist.record(SyncVectorEnv([Gates] * 3, autoreset_mode=mode), tmp_path)
    random, (_, infos), ended = np.random.default_rng(0), env.reset(), np.zeros(3, bool)
    for _ in range(24):
        actions = [random.choice(np.flatnonzero(mask)) for mask in infos["action_mask"]]
        _, _, terminal, truncated, infos = env.step(np.array(actions))
        ended |= terminal | truncated
    env.close()
    assert ended.all() and verify(tmp_path) == []
    check_gates(optimist.open(tmp_path))


def test_a_forbidden_action_in_a_recording_is_one_line_and_masks_can_be_left_out(tmp_path):
    env = optimist.record(gymnasium.make("Taxi-v4"), tmp_path / "log")
    _, info = env.reset(seed=0)
    said = r"does not allow the action 5: .* optimist.record\(env, folder, masks=False\)"
    with pytest.raises(DataError, match=said):
        env.step(5)
    assert not info["action_mask"][5]
    env = optimist.record(gymnasium.make("Taxi-v4"), tmp_path / "open", masks=False)
    env.reset(seed=0)
    env.step(5)
    env.close()
    assert optimist.open(tmp_path / "open").timeline.allowed is None


def test_steps_with_and_without_masks_are_not_put_into_one_folder(tmp_path):
    play_gates(optimist.record(Gates(), tmp_path), steps=3)
    env = optimist.record(Gates(), tmp_path, masks=False)
    with pytest.raises(DataError, match="have masks of allowed actions, and this step has none; record into"):
        env.reset()
    env.close()
    with Recorder(tmp_path, optimist.open(tmp_path).spec, lanes=1) as recorder:
        frame = np.zeros((1, 2), np.float32)
        with pytest.raises(DataError, match="and this step has none"):
            recorder.add(frame, [0], [0.0], [False], [True], frame)


def masked_rows(count: int):
    """Rows of two lanes for a recorder."""
    random, frame = np.random.default_rng(0), np.zeros((2, 1), np.float32)
    allowed = np.ones((2, 9), bool)
    for _ in range(count):
        following, action = random.normal(size=(2, 1)).astype(np.float32), random.integers(9, size=2)
        terminal = random.random(2) < 0.2
        truncated = (random.random(2) < 0.2) & ~terminal
        after = random.random((2, 9)) < 0.7
        yield frame, action, np.zeros(2), terminal, truncated, following, after, allowed
        over = terminal | truncated
        frame = np.where(over[:, None], np.float32(7), following)
        allowed = np.ones((2, 9), bool)


def test_a_recording_that_goes_on_has_the_same_bytes_as_one_in_one_piece(tmp_path):
    spec, rows = Spec((1,), "float32", actions=9), list(masked_rows(50))
    for name in ("whole", "parts"):
        with Recorder(tmp_path / name, spec, lanes=2, shard_steps=40) as recorder:
            for number, row in enumerate(rows if name == "whole" else rows[:33]):
                recorder.add(*row)
                if name == "parts" and number % 5 == 0:
                    recorder.flush()
    with Recorder(tmp_path / "parts", spec, lanes=2, shard_steps=40) as recorder:
        assert recorder.go_on(2 * 30)
        for row in rows[30:]:
            recorder.add(*row)
    whole, parts = (Dataset.open(tmp_path / name).timeline for name in ("whole", "parts"))
    np.testing.assert_array_equal(whole.allowed.bits, parts.allowed.bits)
    after = [timeline.allowed_after(np.arange(100)) for timeline in (whole, parts)]
    np.testing.assert_array_equal(*after)
    assert verify(tmp_path / "parts") == [] and after[0].any()
    recorder = Recorder(tmp_path / "wrong", spec, lanes=2)
    with pytest.raises(DataError, match="its mask does not allow the action 3"), recorder:
        recorder.add(*rows[0][:1], [3, 3], *rows[0][2:7], np.arange(18).reshape(2, 9) % 9 != 3)


# Environments that are divided among processes, and those that are programs.


class Gate:
    """One action is allowed: the one that the observation shows."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def reset(self):
        self.age, self.place = 0, int(self.random.integers(ACTIONS))
        return np.float32([self.place])

    @property
    def allowed(self):
        return np.arange(ACTIONS) == self.place

    def step(self, action):
        assert action == self.place
        self.age, self.place = self.age + 1, int(self.random.integers(ACTIONS))
        return np.float32([self.place]), 1.0, False, self.age == 3

    def close(self):
        pass


class Row:
    """A family whose lanes may be divided among processes."""

    ON_ONE_CORE = True

    @staticmethod
    def make(game, *, seeds):
        return Lanes("gates", Spec((1,), "float32", actions=ACTIONS), [Gate(seed) for seed in seeds], {})


def test_masks_cross_the_processes_of_an_environment():
    name = f"{__file__}:Row/short"
    made = [envs.make(name, lanes=5, processes=processes) for processes in (1, 2)]
    for play in made:
        play.reset()
    for _ in range(7):
        masks = [play.allowed for play in made]
        np.testing.assert_array_equal(*masks)
        steps = [play.step(masks[0].argmax(axis=1)) for play in made]
        for one, other in zip(*steps, strict=True):
            np.testing.assert_array_equal(one, other)
    for play in made:
        play.close()


class GateTable(NamedTuple):
    frames: Any
    allowed: Any
    age: Any
    wrong: Any  # how often a forbidden action came


@dataclass(frozen=True)
class GateRules:
    """Gates as a JAX program; the reward tells whether the action was allowed."""

    def shown(self, age, wrong) -> GateTable:
        allowed = (age[:, None] + jnp.arange(ACTIONS)[None]) % 3 == 0
        return GateTable(age[:, None].astype(jnp.float32), allowed, age, wrong)

    def step(self, table, actions):
        was_allowed = jnp.take_along_axis(table.allowed, actions[:, None], 1)[:, 0]
        age = table.age + 1
        truncated = age == 6
        following = self.shown(jnp.where(truncated, 0, age), table.wrong + ~was_allowed)
        seen = self.shown(age, table.wrong)
        step = Step(
            following.frames, was_allowed * 1.0, truncated & False, truncated, seen.frames, seen.allowed
        )
        return following, step


class GateProgram:
    """Gates as an environment; one with `rules` may be played in one program with the agent."""

    name, spec = "program", Spec((1,), "float32", actions=ACTIONS)

    def __init__(self, lanes: int, *, fused: bool):
        self._rules, self.lanes, self._lanes = GateRules(), lanes, jnp.zeros(lanes, jnp.int32)
        self.table: Any = None
        if fused:
            self.rules = self._rules

    def begin(self):
        return self._rules.shown(self._lanes, self._lanes)

    def reset(self):
        self.table = self.begin()
        return np.asarray(self.table.frames)

    @property
    def allowed(self):
        return None if self.table is None else np.asarray(self.table.allowed)

    def step(self, actions):
        self.table, taken = self._rules.step(self.table, jnp.asarray(actions))
        return Step(*jax.device_get(tuple(taken)))

    def versions(self):
        return {}

    def close(self):
        pass


class Program:
    @staticmethod
    def make(game, *, seeds):
        return GateProgram(len(seeds), fused=game == "fused")


def test_a_game_that_is_a_program_is_played_by_its_masks_and_learned_from_with_them(tmp_path):
    """Row by row or fused, the log is the same."""
    how = {**QUICK, "window": 400, "epsilon": 0.3}
    logs = []
    for game in ("plain", "fused"):
        name = f"{__file__}:Program/{game}"
        logs.append(optimist.collect(name, agent=small("dqn"), steps=300, out=tmp_path / game, **how))
    plain, fused = (log.timeline for log in logs)
    assert fused.allowed.allow(fused.action).all() and (fused.reward == 1).all()
    for column in ("action", "reward", "truncated"):
        np.testing.assert_array_equal(getattr(plain, column), getattr(fused, column))
    steps = np.arange(len(plain))
    np.testing.assert_array_equal(plain.allowed.bits, fused.allowed.bits)
    np.testing.assert_array_equal(plain.allowed_after(steps), fused.allowed_after(steps))
    run = optimist.load(tmp_path / "fused" / "agent")
    assert {row.score for row in run.evaluate(3, epsilon=0.5)} == {6.0}


# Learning.


def test_what_is_remembered_of_play_has_its_masks():
    masks = np.eye(3, dtype=bool)[:, None, :]
    nothing = np.zeros((3, 1))
    window = Memory(
        np.zeros((3, 1, 2)), nothing.astype(int), nothing, nothing > 0, nothing.astype(int), masks
    )
    item = (np.array([0, 1]), np.array([0, 0]))
    played = Recall(stack=1, gamma=0.9, clip=None)(window, item)
    np.testing.assert_array_equal(played.allowed, masks[[0, 1], 0])
    np.testing.assert_array_equal(played.next_allowed, masks[[1, 2], 0])
    unmasked = Recall(stack=1, gamma=0.9, clip=None)(window._replace(allowed=None), item)
    for resident, expected in ((played, [*masks[[0, 1], 0], *np.ones((2, 3))]), (unmasked, None)):
        mixed = Mixed(lambda *_: resident, lambda *_: unmasked)((0, 0), (0, 0))  # noqa: B023
        if expected is None:
            assert mixed.allowed is None
        else:
            np.testing.assert_array_equal(mixed.allowed, expected)


class Plain(HuberAgent):
    """DQN as docs/extending.md writes it, with a network that reads what `seen` makes of an observation."""

    @staticmethod
    def seen(observation):
        return observation

    def init(self, key, spec):
        return {"q": self.table(spec).init(key, self.seen(jnp.zeros(spec.observation_shape)).shape)}

    def values(self, table):
        return table.mean()

    def loss(self, q, q_target, step, key):
        target = self.target(step, self.next_table(q_target, step).mean().max())
        return self.error_loss(target - q(self.seen(step.observation)).mean()[step.action])

    def next_table(self, q_target, step):
        return q_target(self.seen(step.next_observation), step.next_allowed)

    def action(self, spec, params, observation, key, allowed=None):
        return super().action(spec, params, self.seen(observation), key, allowed)


class Cropped(Plain):
    @staticmethod
    def seen(observation):
        return jnp.round(8 * observation[1:]).astype(jnp.int8)


class Normalised(Plain):
    @staticmethod
    def seen(observation):
        return (observation - observation.mean()) / observation.std()


class Careless(Plain):
    def next_table(self, q_target, step):
        return q_target(step.next_observation)


class Unworried(Careless):
    next_is_a_maximum = False


def params_and_targets(agent) -> tuple[dict, dict]:
    """The targets value the last action far above the others."""
    params = agent.init(jax.random.PRNGKey(0), MASKED)
    return params, {"q": {**params["q"], "bias": params["q"]["bias"].at[2].add(100.0)}}


def next_value(agent, allowed) -> float:
    """The loss on steps whose best next action is the last one, and far better than the others."""
    nothing, mask = np.zeros(4, np.float32), None if allowed is None else np.tile(allowed, (4, 1))
    frames = np.random.default_rng(0).normal(size=(2, 4, 4)).astype(np.float32)
    batch = Transition(frames[0], nothing.astype(int), nothing, nothing + 0.9, frames[1], mask, mask)
    both = params_and_targets(agent)
    return float(Learner(agent, MASKED).losses(*both, batch, jax.random.PRNGKey(1))["q"])


@pytest.mark.parametrize("kind", [Plain, Cropped, Normalised])
def test_an_agent_that_changes_the_observation_keeps_its_mask(kind):
    agent = kind(network="mlp")
    assert next_value(agent, [True, True, False]) < 10 < next_value(agent, [True, True, True])
    assert next_value(agent, None) == pytest.approx(next_value(agent, [True, True, True]), rel=1e-6)
    learner, params = Learner(agent, MASKED), params_and_targets(agent)[1]
    stacked, frame = jax.tree.map(lambda leaf: leaf[None], params), np.float32([[[3, 1, 4, 1]]])
    for mask, chosen in (([True, True, True], {2}), ([True, True, False], {0, 1})):
        (taken,) = act(learner, stacked, frame, 0.0, jax.random.PRNGKey(0), 0, np.array([[mask]]))[0]
        assert int(taken) in chosen


def test_an_agent_that_forgets_the_mask_is_told_how_to_give_it():
    assert next_value(Careless(network="mlp"), None) > 10
    with pytest.raises(
        UsageError, match=r"Careless.loss reads no mask: call q_target\(step.next_observation, step.nex"
    ):
        next_value(Careless(network="mlp"), [True, True, False])
    assert next_value(Unworried(network="mlp"), [True, True, False]) > 10


def test_an_agent_that_knows_no_masks_is_told_what_it_lacks(collected):
    learner = Learner(Fuse(), collected.spec)
    with pytest.raises(
        UsageError, match=r"Fuse.action cannot choose among some actions only: give it an arg"
    ):
        evaluate(learner, learner.init((0,)).params, GATES, seeds=(0,), episodes=1)


# What `collect` says.


def test_collect_says_that_no_episode_has_ended_and_that_nothing_was_learned(tmp_path, capsys, caplog):
    how = {"lanes": 2, "window": 60, "batch": 4}
    optimist.collect(GATES, agent=small("dqn"), steps=6, warm_up=6, out=tmp_path / "short", **how)
    assert "no episode has ended yet" in capsys.readouterr().out
    assert [line for line in caplog.messages if "learned" in line] == [
        "nothing was learned: the warm-up of 6 random steps was not passed; choose more --steps, or a "
        "smaller --warm-up"
    ]
    caplog.clear()
    optimist.collect(GATES, agent=small("dqn"), steps=30, warm_up=10, out=tmp_path / "long", **how)
    optimist.collect(GATES, agent="random", steps=6, out=tmp_path / "random", lanes=2)
    assert "  return " in capsys.readouterr().out and not any("learned" in line for line in caplog.messages)


# Taxi, as in Gymnasium.


def test_a_policy_of_taxi_scores_what_its_own_masked_play_gives(tmp_path):
    """Without masks it scored ten times as low: most of its actions were those that a mask forbids."""
    log = optimist.collect("gym/Taxi-v4", agent="random", steps=1_000, lanes=4, out=tmp_path / "log")
    assert log.timeline.allowed.allow(log.timeline.action).all()
    assert log.timeline.action.max() < 6 and (log.timeline.reward > -10).all()  # -10: a forbidden pick-up
    run = optimist.train(small("dqn"), log, steps=300, out=tmp_path / "run", environment="none")
    rows, own = run.evaluate(4, epsilon=0.0, environment="gym/Taxi-v4"), []
    for seed in envs.lane_seeds(_stream(run.seeds[0], run.step), 4):
        env, score, over = gymnasium.make("Taxi-v4"), 0.0, False
        place, info = env.reset(seed=seed)
        while not over:
            action = run.policy(np.arange(500) == place, info["action_mask"].astype(bool))
            assert info["action_mask"][action]
            place, reward, terminal, truncated, info = env.step(action)
            score, over = score + reward, terminal or truncated
        own.append(score)
    assert [row.score for row in rows] == own and min(own) >= -200
