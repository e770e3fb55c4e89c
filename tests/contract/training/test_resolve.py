"""Equal words give equal runs: in Python, on the command line, in a study and in the demo."""

import contextlib
import functools
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import optimist
from little import played
from optimist import agents, envs
from optimist.agents import described
from optimist.cli.main import perform
from optimist.data import Dataset, from_arrays
from optimist.errors import DataError, UsageError
from optimist.studies.demo import Demo
from optimist.studies.job import Job, perform_job
from optimist.training import offline, online, resolve
from optimist.training.resolve import resolve_collection, resolve_training
from optimist.training.storage.configuration import as_config, toml

CLIPPED = ("atari", "minatar", "minatar_jax")
GAMES = {  # one of every family
    "atari/Breakout": "paper",
    "minatar/breakout": "small",
    "minatar_jax/freeway": "small",
    "gym/CartPole-v1": "vectors",
    "mujoco/Hopper": "control",
}


# Nobody plays here, and an emulator takes a quarter of a second to start.
made = functools.cache(envs.make)


class AskedError(Exception):
    """Carries what was asked for, in place of running it."""


@contextlib.contextmanager
def only_asked(monkeypatch):
    """Training ends where it would begin: with its agent and its settings known."""

    def begin(self, agent, where, settings, *, out, environment=None, **_):
        agent.check(where.spec if hasattr(where, "spec") else made(where).spec)
        if isinstance(where, str):
            settings = resolve.resolve_for_environment(settings, where)
        else:
            agent, settings, _ = resolve.resolve_for_log(
                agent, settings, where, (0,), environment=environment
            )
        raise AskedError({"agent": described(agent), "training": as_config(settings)})

    with monkeypatch.context() as patch:
        for kind in (offline.OfflineTraining, online.OnlineTraining):
            patch.setattr(kind, "__init__", begin)
        patch.setattr(envs, "make", made)
        yield


def asked(call) -> dict | str:
    """What a call would run, or why it will not."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            call()
    except AskedError as record:
        return record.args[0]
    except DataError as problem:
        return str(problem)
    raise AssertionError("it ran")


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return {game: played(tmp_path_factory.mktemp("log"), game=game, rows=3, lanes=1) for game in GAMES}


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("name", agents.available())
def test_every_way_to_ask_resolves_to_the_same_run(name, game, logs, tmp_path, monkeypatch):
    common = {"environment": game, "agent": name, "preset": None, "recipe": GAMES[game], "seeds": (0,)}
    learns = Job(name="x", data=str(logs[game]), settings={"steps": 7}, **common)
    plays = Job(name="y", settings={"steps": 7}, **common)
    with only_asked(monkeypatch):
        trained = [
            asked(lambda: optimist.train(name, logs[game], steps=7)),
            asked(lambda: perform(["train", name, str(logs[game]), "--steps", "7"])),
            asked(lambda: perform_job(learns, tmp_path)),
        ]
        collected = [
            asked(lambda: optimist.collect(game, agent=name, out=tmp_path, steps=7)),
            asked(
                lambda: perform(["collect", game, "--agent", name, "--out", str(tmp_path), "--steps", "7"])
            ),
            asked(lambda: perform_job(plays, tmp_path)),
        ]
    assert trained[0] == trained[1] == trained[2]
    assert collected[0] == collected[1] == collected[2]
    for asked_for in (trained[0], collected[0]):
        if isinstance(asked_for, dict):  # not refused
            limit = asked_for["training"].get("clip_rewards")
            assert limit == (1.0 if game.partition("/")[0] in CLIPPED else None)
            assert asked_for["training"].get("observations") != "auto"


def foreign_logs() -> dict[str, Dataset]:
    """Somebody else's logs, each with what "auto" follows from."""
    random, count = np.random.default_rng(0), 60
    ends, arms = np.arange(count) % 10 == 9, random.integers(2, size=count)
    vectors, rewards = random.normal(size=(count, 3)), 100 * random.normal(size=count)
    pictures = random.integers(0, 256, size=(count, 10, 10, 1)).astype(np.uint8)
    pushes = np.clip(random.normal(size=(count, 2)), -1, 1)
    logged = functools.partial(Dataset.from_arrays, truncations=False)
    return {
        "pictures": logged(pictures, arms, rewards, ends, channels="last"),
        "vectors": logged(vectors, arms, rewards, ends),
        "vector actions": logged(vectors, pushes, rewards, ends),
        "masks": logged(vectors, arms, rewards, ends, allowed_actions=np.ones((count, 2), bool)),
        "small rewards": logged(vectors, arms, rewards / 1e6, ends),
    }


RECIPE_OF = {"pictures": "small", "vector actions": "control"}  # for the others "vectors"


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    folder = tmp_path_factory.mktemp("foreign")
    return {kind: log.save(folder / kind).path for kind, log in foreign_logs().items()}


@pytest.mark.parametrize("name", agents.available())
def test_every_way_to_ask_finds_the_same_values_in_a_foreign_log(name, foreign, tmp_path, monkeypatch):
    """A study gave every agent the scale and the loss of the paper. The demo is the catalogue's study at any
    size; here it has this log, agent and recipe in place of its own."""
    size = Demo(offline_steps=7, evaluations=1, seeds=1).study()
    line = [
        word for key, value in size.training.items() for word in (f"--{key}".replace("_", "-"), str(value))
    ]
    for kind, log in foreign.items():
        common = {"environment": "", "preset": None, "recipe": RECIPE_OF.get(kind, "vectors"), "seeds": (0,)}
        job = Job(name="x", agent=name, data=str(log), settings=size.training, **common)
        place = {"collect": None, "data": str(log), "environments": ("",), "recipe": common["recipe"]}
        *_, demo = replace(size, agents={name: {"agent": name}}, **place).jobs()
        with only_asked(monkeypatch):
            python = asked(lambda log=log: optimist.train(name, log, **size.training))
            words = asked(lambda log=log: perform(["train", name, str(log), *line]))
            study, shown = (asked(lambda job=job: perform_job(job, tmp_path)) for job in (job, demo))
        assert python == words == study == shown, kind
        if isinstance(python, dict):  # not refused
            decided = {**python["agent"], **python["training"]}
            assert "auto" not in [decided.get(setting) for setting in resolve.FOLLOWING]


@pytest.mark.parametrize(
    ("name", "words", "given", "written"),
    [
        ("rem", "--precision bf16", {"precision": "bf16"}, ['precision = "bf16"']),
        # config.toml had 2 from Python and 2.0 from the command line, and so two fingerprints.
        (
            "dqn",
            "--reward-scale 2 --optimizer.epsilon 1 --clip-rewards 3",
            {"reward_scale": 2, "clip_rewards": 3, "options": {"optimizer.epsilon": 1}},
            ["reward_scale = 2.0", "epsilon = 1.0"],
        ),
        # Python refused steps=1e3 as not a whole number, which it is.
        (
            "dqn",
            "--steps 1e3 --target-period 2e2 --batch 8",
            {"steps": 1e3, "batch": 8.0, "options": {"target_period": 2e2}},
            ["\nsteps = 1000\n", "target_period = 200\n"],
        ),
        (
            "rem",
            "--batch 8 --columns 4",
            {"batch": np.int64(8), "options": {"columns": np.int32(4)}},
            ["batch = 8\n"],
        ),
    ],
)
def test_a_setting_is_the_same_in_python_and_on_the_command_line(
    name, words, given, written, logs, monkeypatch
):
    log = logs["minatar/breakout"]
    with only_asked(monkeypatch):
        python = asked(lambda: optimist.train(name, log, **given))
        line = asked(lambda: perform(["train", name, str(log), *words.split()]))
    assert toml(python) == toml(line) and all(each in toml(python) for each in written)


@pytest.fixture
def begun(monkeypatch) -> list[dict]:
    """What each training was created with, in place of running it."""
    seen: list[dict] = []

    def begin(self, *_, **words):
        seen.append(words)
        raise AskedError(words)

    monkeypatch.setattr(offline.OfflineTraining, "__init__", begin)
    return seen


def each_asks(*calls) -> None:
    for call in calls:
        with pytest.raises(AskedError):
            call()


@pytest.mark.parametrize(("word", "found"), [("none", ""), ("", ""), (None, "minatar/breakout")])
def test_no_environment_is_the_same_word_in_python_and_on_the_command_line(logs, begun, word, found):
    log, words = logs["minatar/breakout"], [] if word is None else ["--environment", word]
    each_asks(
        lambda: optimist.train("dqn", log, environment=word),
        lambda: perform(["train", "dqn", str(log), *words]),
    )
    assert [words["environment"] for words in begun] == [found] * 2


def test_a_run_without_a_place_is_in_the_same_place_from_python_and_from_the_command_line(logs, begun):
    log = logs["minatar/breakout"]
    data = optimist.open(log)
    in_memory = from_arrays(np.zeros((9, 2)), np.zeros(9, int), np.zeros(9), np.ones(9, bool))
    each_asks(
        lambda: optimist.train("dqn", log),
        lambda: optimist.train("dqn", data),
        lambda: perform(["train", "dqn", str(log)]),
        lambda: optimist.train("dqn", data.first(9)),
        lambda: perform(["train", "dqn", str(log), "--first", "9"]),
        lambda: optimist.train("dqn", in_memory),
    )
    whole, part = f"runs/dqn-{Path(log).name}", f"runs/dqn-{Path(log).name}-{data.first(9).fingerprint[:8]}"
    places = [str(words["out"]) for words in begun]
    assert places == [*[whole] * 3, *[part] * 2, f"runs/dqn-{in_memory.fingerprint[:8]}"]


@pytest.mark.parametrize("resolve", [resolve_training, resolve_collection])
def test_episodes_that_are_asked_for_count_also_if_the_recipe_evaluates_by_steps(resolve):
    """The paper's 125,000 steps were played, whatever number of episodes was given."""

    def length(**settings):
        found = resolve(None, "dqn", recipe="paper", settings=settings).settings
        return found.episodes, found.evaluation_steps

    assert length() == (20, 125_000) and length(episodes=5) == (5, None)
    assert length(episodes=5, evaluation_steps=1000) == (5, 1000)


def test_an_agent_is_taken_as_it_is_and_a_name_is_fitted():
    spec = envs.make("minatar/breakout").spec
    own = agents.Rem(columns=7)
    assert resolve_training(spec, own).agent == own
    fitted = resolve_training(spec, "rem", options={"columns": 7, "optimizer.epsilon": 0.5}).agent
    assert fitted.optimizer == replace(own.optimizer, learning_rate=5e-4, epsilon=0.5)
    table = {"columns": 7, "optimizer": {"epsilon": 0.5}}  # as a study's file has it
    assert resolve_training(spec, "rem", options=table).agent == fitted
    assert (fitted.columns, fitted.target_period) == (7, 250)


def test_options_that_need_each_other_are_set_at_once():
    for options in ({"columns": 16, "networks": 16}, {"networks": 16, "columns": 16}):
        assert resolve_training(None, "rem", recipe="paper", options=options).agent.networks == 16


def test_who_plays_is_dqn_or_whom_the_preset_names():
    spec = envs.make("minatar/breakout").spec
    assert isinstance(resolve_collection(spec).agent, agents.Dqn)
    assert resolve_collection(spec, preset="adam").agent.optimizer.epsilon == 0.001 / 32
    assert resolve_collection(spec, preset="rem-online").agent.networks == 4


@pytest.mark.parametrize(
    ("name", "words", "complaint"),
    [
        ("rem", {"batch_size": 3}, 'training: there is no setting "batch_size": did you mean "batch"?'),
        ("rem", {"learning_rate": 3}, 'options={"optimizer.learning_rate": 3}'),
        ("rem", {"lr": 3}, 'options={"optimizer.learning_rate": 3}'),
        (
            "rem",
            {"columns": 3},
            '"columns" is an option of rem, not a setting of the training: pass options={"columns": 3}',
        ),
        ("cql", {"conservatism": 5}, 'of the training: pass options={"conservatism": 5}'),
        ("rem", {"options": {"steps": 3}}, '"steps" is no option of rem: outside options, pass steps=3'),
        ("rem", {"seeds": 3}, r"seeds is 3: list them, as in seeds=(0, 1, 2) or seeds=range(3)"),
        ("rem", {"seeds": "0,1"}, "seeds is '0,1': list them, as in seeds=(0, 1, 2)"),
        ("rem", {"seeds": [0.5]}, "seeds is [0.5]: list them, as in seeds=(0, 1, 2)"),
        ("rem", {"seed": 3}, 'there is no setting "seed": did you mean "seeds"?'),
        ("rem", {"environmnt": "none"}, 'there is no setting "environmnt": did you mean "environment"?'),
        ("rem", {"options": "columns"}, 'options is columns: name each, as in options={"columns": 3}'),
        ("rem", {"preset": "papre"}, 'rem has no preset "papre": did you mean "paper"?'),
        ("rem", {"options": {"colums": 3}}, 'rem: there is no setting "colums": did you mean "columns"?'),
        ("bc", {}, 'did you mean "behaviour_cloning"?'),
        ("rme", {}, 'did you mean "rem"?'),
        ("ppo", {}, "known: averaged_"),
    ],
)
def test_unknown_names_get_the_help_of_the_command_line(name, words, complaint, logs, tmp_path):
    with pytest.raises(UsageError) as caught:
        optimist.train(name, logs["minatar/breakout"], out=tmp_path / "run", **words)
    assert complaint in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()
