"""A user's package adds agents, environments, torsos and loggers; nothing of somebody else's is imported
because a folder names it."""

import importlib
import json
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import optimist
from little import small, vectors
from optimist import agents, envs, plugins
from optimist.cli.main import main
from optimist.data import formats
from optimist.errors import DataError, UsageError
from optimist.networks import Network
from optimist.studies.job import Job
from optimist.studies.perform import by_other_code, warn_of_other_code
from optimist.studies.work import performed
from optimist.training.loggers import logger_classes
from optimist.training.storage.configuration import other_code, own_code

PACKAGE = '''
"""Four plug-ins, as somebody would write them who read CONTRIBUTING."""
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from optimist.agents import ValueAgent
from optimist.data import Spec
from optimist.data.formats import Log
from optimist.envs import Lanes
from optimist.equations.losses import huber

(Path(__file__).parent / "imported").touch()


@dataclass(frozen=True, kw_only=True)
class Keen(ValueAgent):
    """DQN with a bonus on every target."""

    bonus: float = 0.5

    def values(self, table):
        return table.mean()

    def loss(self, q, q_target, step, key):
        target = self.target(step, q_target(step.next_observation).mean().max()) + self.bonus
        return huber(target - q(step.observation).mean()[step.action])


class Shy(Keen):
    """The same, but no entry point leads to it."""


@dataclass(frozen=True)
class Doubled:
    """Every number of the observation, and its double."""

    def init(self, key, observation_shape, initializer):
        return {"scale": jnp.full((2,), 1.0)}

    def features(self, observation_shape):
        return 2 * int(np.prod(observation_shape))

    def __call__(self, params, observation):
        flat = observation.astype(jnp.float32).reshape(-1)
        return jnp.concatenate([flat * params["scale"][0], 2 * flat * params["scale"][1]])


class Walk:
    def __init__(self, length):
        self.length = length

    def reset(self):
        self.place = 0
        return np.float32([self.place])

    def step(self, action):
        self.place += 1 if action else -1
        return np.float32([self.place]), float(action), abs(self.place) >= self.length, False

    def render(self):
        return np.zeros((8, 8, 3), np.uint8)

    def close(self):
        pass


class Corridor:
    """Walk to the end."""

    @staticmethod
    def games():
        return ["short"]

    @staticmethod
    def make(game, *, seeds, length=3):
        spec = Spec((1,), "float32", actions=2)
        return Lanes(f"corridor/{game}", spec, [Walk(length) for _ in seeds], {"my_plugin": "1.0"})


class Numbers:
    """Rewards, one a line."""

    @dataclass(frozen=True)
    class ReadOptions:
        scale: float = 1.0

    @staticmethod
    def detect(address):
        return str(address).endswith(".numbers")

    @staticmethod
    def open(address, options):
        rewards = options.scale * np.loadtxt(address)
        columns = {"observations": rewards[:, None], "actions": np.zeros(len(rewards), int)}
        columns |= {"rewards": rewards, "terminals": np.ones(len(rewards), bool)}
        return Log(columns, lambda names: [{name: columns[name] for name in names}])


class Lines:
    def __init__(self, folder, seeds, step):
        self.file = open(folder / "lines.txt", "a")

    def add(self, step, values, seed):
        print(step, seed, *sorted(values), file=self.file)

    def close(self):
        self.file.close()
'''
ENTRIES = """
[optimist.agents]
keen = my_plugin:Keen

[optimist.environments]
corridor = my_plugin:Corridor

[optimist.formats]
numbers = my_plugin:Numbers

[optimist.torsos]
doubled = my_plugin:Doubled

[optimist.loggers]
lines = my_plugin:Lines
"""
TRAIN = ["--steps", "4", "--evaluate-every", "4", "--episodes", "2", "--batch", "4", "--target-period", "7"]


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> Path:
    """A folder as pip fills it."""
    folder = tmp_path_factory.mktemp("site-packages")
    (folder / "my_plugin").mkdir()
    (folder / "my_plugin" / "__init__.py").write_text(PACKAGE)
    about = folder / "my_plugin-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plugin\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRIES)
    return folder


@pytest.fixture
def installed(packages, monkeypatch):
    monkeypatch.syspath_prepend(packages)
    yield packages
    sys.modules.pop("my_plugin", None)


def elsewhere(packages: Path, script: str, *words) -> str:
    """What a process of its own prints, with the package installed."""
    path = f"{packages}:{':'.join(filter(None, sys.path))}"
    line = [sys.executable, "-P", "-c", script, *map(str, words)]
    done = subprocess.run(line, capture_output=True, text=True, env={"PYTHONPATH": path, "HOME": "/tmp"})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


COMMANDS = """
import json, sys, optimist
from optimist.cli.main import main
for words in json.loads(sys.argv[1]):
    assert main(words) == 0, words
"""
LOAD = """
run = optimist.load(sys.argv[2])
print(run, run.policy([0.0]), len(run.evaluate(2)))
"""


@pytest.mark.slow
def test_an_installed_package_collects_trains_resumes_evaluates_and_loads(packages, tmp_path):
    data, run = str(tmp_path / "data"), tmp_path / "run"
    few = ["--steps", "64", "--lanes", "2", "--warm-up", "16", "--batch", "4"]
    collect = ["collect", "corridor/short", "--agent", "keen", "--out", data, *few]
    words = [
        "train",
        "keen",
        data,
        "--out",
        str(run),
        "--network.torso",
        "doubled",
        "--bonus",
        "0.25",
        *TRAIN,
    ]
    elsewhere(packages, COMMANDS, json.dumps([collect, [*words, "--loggers", "jsonl,lines"]]))
    config = tomllib.loads((run / "config.toml").read_text())
    agent = config["agent"]
    assert (agent["name"], agent["bonus"], config["environment"]) == ("keen", 0.25, "corridor/short")
    assert config["agent"]["network"] == {"torso": "doubled", "hidden": "auto"}
    assert "loggers" not in config["training"]
    lines = (run / "lines.txt").read_text().splitlines()
    assert lines[-1] == "4 0 return" and not (run / "tensorboard").exists()

    words[words.index("--steps") + 1] = "8"  # other loggers: still the same run
    said = elsewhere(packages, COMMANDS + LOAD, json.dumps([[*words, "--loggers", "jsonl"]]), run)
    assert (run / "lines.txt").read_text().splitlines() == lines
    steps = [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert steps[-1] == 8 and steps == sorted(set(steps))
    assert "keen" in said and "8" in said


def trained_in_python(name: str, out: Path) -> Path:
    optimist.train(name, vectors(), out=out, steps=4, evaluate_every=4, batch=4, loggers="jsonl")
    return out


def test_what_a_folder_names_is_imported_only_if_its_user_says_so(installed, tmp_path, capsys):
    run = trained_in_python("my_plugin:Shy", tmp_path / "run")
    assert tomllib.loads((run / "config.toml").read_text())["agent"]["name"] == "my_plugin:Shy"
    (installed / "my_plugin" / "imported").unlink()
    del sys.modules["my_plugin"]
    with pytest.raises(DataError, match=r'imports "my_plugin"; if you trust it: --allow my_plugin'):
        optimist.load(run)
    assert main(["evaluate", str(run)]) == 3
    assert capsys.readouterr().err.count("\n") == 1
    assert not (installed / "my_plugin" / "imported").exists()
    assert type(optimist.load(run, allow=["my_plugin"]).learner.agent).__name__ == "Shy"


def test_a_torso_that_a_folder_names_is_no_exception(installed, tmp_path):
    description = {**agents.described(small("dqn")), "network": {"torso": "their_module:Torso"}}
    with pytest.raises(DataError, match='torso "their_module:Torso", which imports "their_module"'):
        agents.from_description(description)


def test_a_file_is_named_by_its_whole_path(packages, tmp_path, monkeypatch):
    file = tmp_path / "own.py"
    file.write_text(PACKAGE)
    run = trained_in_python(f"{file}:Keen", tmp_path / "run")
    name = tomllib.loads((run / "config.toml").read_text())["agent"]["name"]
    assert name == f"{file}:Keen"
    assert agents.short_name(optimist.load(run).learner.agent) == "Keen"
    assert envs.make(f"{file}:Corridor/short?", lanes=2).reset().shape == (2, 1)
    assert envs.games_of(f"{file}:Corridor") == [f"{file}:Corridor/short"]
    with pytest.raises(UsageError, match='"own.py" is not a file: write its whole path'):
        agents.agent_class("own.py:Keen")
    monkeypatch.chdir(tmp_path)
    other = file.rename(tmp_path / "other.py")
    with pytest.raises(UsageError, match=f'"other.py" is not a whole path: write its whole path, {other}'):
        agents.agent_class("other.py:Keen")
    with pytest.raises(UsageError, match='there is no file "/gone/own.py": put it there'):
        agents.agent_class("/gone/own.py:Keen")


def test_a_run_that_was_moved_is_told_where_its_file_is_now(packages, tmp_path, capsys, monkeypatch):
    """The configuration has the path of the machine that trained."""
    monkeypatch.setattr(plugins, "_allowed_files", {})
    there, here = tmp_path / "there" / "mine.py", tmp_path / "here" / "mine.py"
    for file in (there, here):
        file.parent.mkdir()
        file.write_text(PACKAGE)
    run = trained_in_python(f"{there}:Keen", tmp_path / "run")
    there.unlink()
    del sys.modules[str(there)]
    assert main(["export", str(run), "--to", str(tmp_path / "policy.npz")]) == 3
    complaint = capsys.readouterr().err
    assert f'names the agent "{there}:Keen", and that file is not here' in complaint
    assert "name its place: --allow /folder/mine.py, in Python" in complaint and complaint.count("\n") == 1
    found = optimist.load(run, allow=[str(here)]).learner.agent
    assert type(found).__module__ == str(here) and agents.short_name(found) == "Keen"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def (:", "SyntaxError: invalid syntax"),
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
    ],
)
def test_a_file_that_cannot_be_imported_is_one_line(tmp_path, text, said):
    (tmp_path / "own.py").write_text(text)
    with pytest.raises(UsageError, match=f"own.py cannot be imported .{said}.*--debug shows where"):
        agents.agent_class(f"{tmp_path / 'own.py'}:Keen")


FAILING = """
import optimist.agents


class Lines:
    def __init__(self, folder, *, seeds, step):
        pass

    def add(self, step, values, seed):
        raise {error}

    def close(self):
        pass


class Wrong(optimist.agents.agent_class("dqn")):
    def loss(self, q, q_target, step, key):
        raise {error}


class Games:
    @staticmethod
    def games():
        return ["one"]

    @staticmethod
    def make(game, *, seeds):
        raise {error}
"""


@pytest.mark.parametrize(
    ("words", "where", "error", "said"),
    [
        ("{file}:Wrong --loggers jsonl", "Wrong.loss", 'ValueError("all\\nwrong")', "ValueError: all"),
        ("{file}:Wrong --loggers jsonl", "Wrong.loss", "KeyError(3)", "KeyError: 3"),
        ("dqn --loggers {file}:Lines", "Lines.add", 'ConnectionError("no host")', "ConnectionError: no host"),
    ],
)
def test_an_error_of_ones_own_class_is_one_line_that_names_it(tmp_path, capsys, words, where, error, said):
    file = tmp_path / "own.py"
    file.write_text(FAILING.replace("{error}", error))
    vectors().save(tmp_path / "log")
    options = ["--steps", "4", "--out", str(tmp_path / "run")]
    line = ["train", *words.format(file=file).split(), str(tmp_path / "log"), *options]
    assert main(line) == 1
    told = capsys.readouterr().err.splitlines()[-1]
    remedy = "mend it, and run the command again; --debug shows where"
    assert told == f"optimist: {file}:{where} failed ({said}): {remedy}"
    assert main([*line, "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"agent": "{file}:Wrong"}, "{file}:Wrong.loss failed (KeyError: 3): mend it, and run the command"),
        ({"loggers": "{file}:Lines"}, "{file}:Lines.add failed (KeyError: 3): mend it, and run the command"),
        ({"environment": "{file}:Games/one"}, "the environment {file}:Games/one failed (KeyError: 3): mend"),
    ],
)
def test_a_worker_of_a_study_names_an_error_of_ones_own_class_too(tmp_path, changed, what):
    """And the file with its traceback, which --debug does not show."""
    file = tmp_path / "own.py"
    file.write_text(FAILING.replace("{error}", "KeyError(3)"))
    vectors().save(tmp_path / "log")
    words = {name: value.format(file=file) for name, value in changed.items()}
    settings = {"steps": 4, "evaluate_every": 4, "loggers": words.pop("loggers", "jsonl")}
    common = {"environment": "", "agent": "dqn", "preset": None, "recipe": "small", **words}
    one = Job(name="runs/one", data=str(tmp_path / "log"), seeds=(0,), settings=settings, **common)
    told, log = performed(one, tmp_path, 0), tmp_path / "runs/one/log.txt"
    assert told.startswith(what.format(file=file)) and told.count(f"{log} shows where") == 1
    assert "--debug" not in told and f'File "{file}"' in log.read_text()


def test_the_current_folder_is_not_searched(tmp_path, monkeypatch):
    (tmp_path / "lying_here.py").write_text("from pathlib import Path\nPath('executed').touch()")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    for find in (agents.agent_class, lambda name: logger_classes(name), envs.make):
        with pytest.raises(UsageError, match='no module "lying_here"'):
            find("lying_here:Name")
    assert not (tmp_path / "executed").exists() and sys.path[0] == ""


@pytest.mark.parametrize("place", ["__main__", "not_there"])
def test_an_agent_that_no_other_process_could_load_is_refused_before_training(tmp_path, monkeypatch, place):
    kind = dataclass(frozen=True, kw_only=True)(type("Own", (agents.Dqn,), {"__module__": place}))
    with pytest.raises(UsageError, match=f"no other process could load {place}:Own: put the class into a"):
        optimist.train(kind(), vectors(), out=tmp_path / "run", steps=4)
    assert not (tmp_path / "run").exists()


@dataclass(frozen=True, kw_only=True)
class Listed(agents.Dqn):
    widths: tuple = (1, 2)


def test_an_agent_that_could_not_be_read_back_is_refused_before_training(tmp_path):
    with pytest.raises(UsageError, match="test_plugins:Listed could not be read back from a run folder"):
        optimist.train(Listed(), vectors(), out=tmp_path / "run", steps=4)
    assert not (tmp_path / "run").exists()


UNFINISHED = """
from dataclasses import dataclass

from optimist.agents import HuberAgent


@dataclass(frozen=True, kw_only=True)
class Vector(HuberAgent):
    def values(self, table):
        return table.mean()

    def loss(self, q, q_target, step, key):
        return self.error_loss(step.reward - q(step.observation).mean())  # of every action


class Plain(Vector):
    bonus: float = 0.5


@dataclass(frozen=True, kw_only=True)
class Valueless(HuberAgent):
    def loss(self, q, q_target, step, key):
        return 0.0
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Vector", "Vector.loss returns an array of (2,) for a transition: return one number"),
        (
            "Plain",
            "unfinished:Plain is not a dataclass: write @dataclass(frozen=True, kw_only=True) above it",
        ),
        ("Valueless", "unfinished:Valueless is not complete: it must define values"),
    ],
)
def test_an_agent_that_is_not_finished_is_told_what_it_lacks(name, said, tmp_path, monkeypatch, capsys):
    (tmp_path / "unfinished.py").write_text(UNFINISHED)
    monkeypatch.syspath_prepend(tmp_path)
    vectors().save(tmp_path / "log")
    words = ["--steps", "4", "--evaluate-every", "4", "--out", str(tmp_path / "run")]
    assert main(["train", f"unfinished:{name}", str(tmp_path / "log"), *words]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"optimist: {said}"


THING = """
class Thing:
    def make(self): ...
    add = close = scores = run = detect = open = ReadOptions = make


class Nothing: ...
"""


@pytest.fixture
def things(tmp_path, monkeypatch):
    """A package with a thing of every kind."""
    about = tmp_path / "things-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: things\nVersion: 1.0\n")
    entries = "".join(f"[optimist.{kind}]\nthing = things:Thing\n" for kind in plugins.KINDS)
    (about / "entry_points.txt").write_text(entries)
    (tmp_path / "things.py").write_text(THING)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("things", None)


@pytest.mark.parametrize("kind", plugins.KINDS)
def test_every_kind_is_found_by_its_file_an_entry_point_or_an_address(things, kind):
    word, needs = plugins.KINDS[kind].word, plugins.KINDS[kind].needs
    for own in plugins.own(kind)[:1]:
        found = plugins.find(kind, own)
        module = getattr(found, "__module__", None) or found.__name__
        assert module.rpartition(".")[2] == own
    assert plugins.names(kind) == ["thing"]
    assert plugins.find(kind, "thing") is plugins.find(kind, "things:Thing")
    with pytest.raises(UsageError, match=f'there is no {word} "thinng": did you mean "thing"'):
        plugins.find(kind, "thinng")
    with pytest.raises(UsageError, match='things has no "Thinng": did you mean "Thing"'):
        plugins.find(kind, "things:Thinng")
    if needs:
        with pytest.raises(UsageError, match=f"Nothing is not an? {word}: it needs {' and '.join(needs)}"):
            plugins.find(kind, "things:Nothing")


def test_presets_are_agents(tmp_path, monkeypatch):
    (tmp_path / "own_presets.py").write_text(PACKAGE + '\nPRESETS = {"calm": {"bonus": 0.1}}\n')
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match="\"calm\" is {'bonus': 0.1}, not an agent such as Keen()"):
        agents.preset("own_presets:Keen")


def test_names_and_classes_lead_to_each_other(installed):
    import my_plugin

    assert plugins.names("agents") == ["keen"] and plugins.names("formats") == ["numbers"]
    assert agents.agent_class("keen") is agents.agent_class("my_plugin:Keen") is my_plugin.Keen
    assert agents.name_of(my_plugin.Keen()) == "keen" and agents.name_of(my_plugin.Shy()) == "my_plugin:Shy"
    assert Network(torso=my_plugin.Doubled).torso == "doubled"
    assert logger_classes("lines") == logger_classes([my_plugin.Lines]) == [my_plugin.Lines]
    assert envs.make("corridor/short", lanes=3).lanes == 3
    assert envs.from_data("corridor/short") == "corridor/short"


def with_torso(name):
    return agents.Dqn(network=name).check(vectors().spec)


@pytest.mark.parametrize(
    ("find", "name", "message"),
    [
        (agents.agent_class, "my_plugin:Kean", 'my_plugin has no "Kean": did you mean "Keen"'),
        (agents.agent_class, "my_plugin:Lines", "is not an agent"),
        (agents.agent_class, ":X", 'there is no module "": install'),
        (agents.agent_class, ".here:X", 'there is no module ".here": install'),
        (envs.make, "./own.py:Corridor/short", "write the whole path of the file in"),
        (agents.agent_class, "nowhere.at_all:X", 'no module "nowhere.at_all": install its package'),
        (envs.make, "coridor/short", 'did you mean "corridor"'),
        (with_torso, "my_plugin:Lines", "cannot be made"),
        (with_torso, "my_plugin:Walk.reset", "is not a torso"),
    ],
)
def test_a_wrong_name_is_answered_in_one_line(installed, find, name, message):
    with pytest.raises(UsageError, match=message) as caught:
        find(name)
    assert "\n" not in str(caught.value)


def test_a_torso_of_ones_own_is_below_an_actor_and_its_critics(installed, tmp_path):
    random = np.random.default_rng(0)
    columns = random.normal(size=(50, 4)), random.uniform(-1, 1, (50, 1)), random.normal(size=50)
    data = optimist.Dataset.from_arrays(*columns, random.random(50) < 0.1, truncations=False)
    options = {"network.torso": "my_plugin:Doubled", "network.hidden": "6"}
    settings = {"steps": 4, "evaluate_every": 4, "batch": 4, "loggers": "jsonl"}
    run = optimist.train("td3", data, out=tmp_path / "run", options=options, **settings)
    assert run.learner.agent.network.torso == "my_plugin:Doubled"
    params = run.policy.params
    assert params["actor"]["layers"][0].weight.shape == (8, 6)  # 4 numbers, doubled
    assert not (params["actor"]["torso"]["scale"] == 1).all()  # it learned
    loaded = optimist.load(tmp_path / "run", allow=["my_plugin"])
    observation = data.observation(0)
    np.testing.assert_array_equal(loaded.policy(observation), run.policy(observation))


def test_a_study_may_name_plug_ins_and_its_folder_imports_none(installed, tmp_path):
    options, settings = {"network.torso": "my_plugin:Doubled"}, {"steps": 7, "loggers": "my_plugin:Lines"}
    common = {"preset": None, "recipe": "small", "seeds": (0,), "options": options, "settings": settings}
    job = Job(name="run", environment="corridor/short", agent="my_plugin:Shy", data="log", **common)
    job.check()
    assert job.built_agent().network.torso == "my_plugin:Doubled"
    kept = json.dumps(job.written_down())
    (installed / "my_plugin" / "imported").unlink()
    del sys.modules["my_plugin"]
    assert Job.from_json(kept).steps() == 7 and not Job.from_json(kept).done(tmp_path)
    with pytest.raises(DataError, match="--allow my_plugin"):
        Job.from_json(kept).built_agent()
    assert not (installed / "my_plugin" / "imported").exists()
    assert type(Job.from_json(job.as_json()).built_agent()).__name__ == "Shy"  # as a worker has it


def edited(packages: Path, more: str) -> None:
    """Other code in the same file, which the next import finds."""
    (packages / "my_plugin" / "__init__.py").write_text(PACKAGE + more)


def test_a_run_that_continues_with_edited_code_says_so_and_names_both(installed, tmp_path, caplog):
    def code() -> str:
        return json.loads((tmp_path / "versions.json").read_text())["code of my_plugin"]

    def trained(steps: int) -> None:
        train = {"steps": steps, "evaluate_every": 4, "batch": 4, "loggers": "jsonl"}
        optimist.train("my_plugin:Shy", vectors(), out=tmp_path, **train)

    trained(4)
    first = code()
    trained(8)
    assert code() == first and "changed" not in caplog.text
    try:
        edited(installed, "# another line")
        trained(12)
        said = f"{tmp_path}: the code of my_plugin changed since it was last started; --restart begins anew"
        assert caplog.messages.count(said) == 1 and code().startswith(f"{first} then ")
        both = code()
        trained(16)
        assert caplog.messages.count(said) == 1 and code() == both
    finally:
        edited(installed, "")


def test_the_code_of_a_class_has_the_users_modules_that_it_imports(tmp_path, monkeypatch):
    """A folder on the path, and a package; what is installed, and what only lies there, is not in it."""
    files = {
        "coded_agent.py": "import json\nimport numpy\nimport coded_helper\nimport optimist\n\nclass A: ...",
        "coded_helper.py": "from coded_constants import RATE",
        "coded_constants.py": "RATE = 1",
        "coded_stranger.py": "",
        "site-packages/coded_library.py": "",
        "coded_package/__init__.py": "",
        "coded_package/deep/__init__.py": "",
        "coded_package/deep/agent.py": "from ..shared import rate\nimport coded_library\n\nclass A: ...",
        "coded_package/shared.py": "def rate(): ...",
    }
    for file, text in files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    for folder in (tmp_path, tmp_path / "site-packages"):
        monkeypatch.syspath_prepend(folder)
    importlib.import_module("coded_stranger")
    for name, modules in (
        ("coded_agent:A", {"coded_agent", "coded_helper", "coded_constants"}),
        ("coded_package.deep.agent:A", {"coded_package.deep.agent", "coded_package.shared"}),
    ):
        plugins.find("agents", name)
        found = plugins.hashes("agents", name)
        assert {each.removeprefix("code of ") for each in found} == modules
    before = plugins.hashes("agents", "coded_agent:A")
    (tmp_path / "coded_constants.py").write_text("RATE = 2")
    after = plugins.hashes("agents", "coded_agent:A")
    assert [each for each in before if before[each] != after[each]] == ["code of coded_constants"]
    (tmp_path / "coded_helper.py").write_text("def (:")  # half-edited: it is noticed, and no error
    assert plugins.hashes("agents", "coded_agent:A")["code of coded_helper"] != before["code of coded_helper"]


def test_a_study_names_the_runs_that_other_code_made(installed, tmp_path, caplog):
    common = {"preset": None, "recipe": "small", "seeds": (0,), "settings": {"steps": 4, "batch": 4}}
    log = Job(name="log", environment="gym/CartPole-v1", agent="keen", **common)
    learns = {"data": "log", "needs": ("log",), "environment": "gym/CartPole-v1", **common}
    jobs = [log, Job(name="dqn", agent="dqn", **learns), Job(name="keen", agent="keen", **learns)]
    for job in jobs:
        job.check()
        job.run_folder(tmp_path).mkdir(parents=True)
        text = json.dumps({"jax": "1", **own_code(job.wanted)})
        (job.run_folder(tmp_path) / "versions.json").write_text(text)
    assert by_other_code(jobs, tmp_path) == {}
    try:
        edited(installed, "# another line")
        warn_of_other_code(jobs, tmp_path)
        assert caplog.messages == [
            "the code of my_plugin changed since 2 of 3 runs were made: log, keen. They count as they are; "
            "to make them again, remove their folders or choose another --out"
        ]
    finally:
        edited(installed, "")


@pytest.mark.parametrize("name", ["numbers", "my_plugin:Numbers"])
def test_a_format_of_ones_own_is_imported(installed, tmp_path, name, capsys):
    file = tmp_path / "log.numbers"
    file.write_text("1\n2\n3\n")
    words = ["data", "import", name, str(file), "--out", str(tmp_path / "data"), "--scale", "2"]
    assert main(words) == 0
    assert optimist.open(tmp_path / "data").timeline.reward.tolist() == [2, 4, 6]
    assert formats.detect(file) == "numbers"
    assert main(["data", "export", name, str(tmp_path / "data"), "--out", str(tmp_path / "back")]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f'optimist: the format "{name}" can only be read: it has no function write'
    assert main(["data", "verify", str(file)]) == 0


def test_a_module_of_a_package_is_found_by_its_name(tmp_path, monkeypatch):
    (tmp_path / "outer_package").mkdir()
    (tmp_path / "outer_package/__init__.py").touch()
    (tmp_path / "outer_package/corridor.py").write_text("def make(game, *, seeds): ...")
    monkeypatch.syspath_prepend(tmp_path)
    assert plugins.find("environments", "outer_package:corridor").__name__ == "outer_package.corridor"
    with pytest.raises(UsageError, match='outer_package has no "stairs"'):
        plugins.find("environments", "outer_package:stairs")


LINE = """import gymnasium
import numpy as np

import line_rules


class Line(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), line_rules.PAY, True, False, {}
"""
REGISTRATION = 'import gymnasium\n\ngymnasium.register("Line-v0", entry_point="line_game:Line")\n'


@pytest.mark.parametrize("name", ["gym/line_names:Line-v0", "gym/Line-v0"])
def test_the_code_of_a_gymnasium_environment_of_ones_own_is_recorded(tmp_path, monkeypatch, name):
    """The module that registers it, that of its class, and what they import; none of an installed one."""
    files = {"line_names": REGISTRATION, "line_game": LINE, "line_rules": "PAY = 1.0\n"}
    for module, text in files.items():
        (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        importlib.import_module("line_names")
        envs.make(name).close()
        before = own_code({"environment": name})
        named = {"line_names"} if ":" in name else set()
        assert {each.removeprefix("code of ") for each in before} == {"line_game", "line_rules"} | named
        (tmp_path / "line_rules.py").write_text("PAY = -1.0\n")
        assert other_code(own_code({"environment": name}), before) == ["code of line_rules"]
        envs.make("gym/CartPole-v1").close()  # imports its module
        assert own_code({"environment": "gym/CartPole-v1"}) == {}
    finally:
        import gymnasium

        gymnasium.registry.pop("Line-v0", None)
        for module in files:
            sys.modules.pop(module, None)
