"""Datasets and runs go to the Hub and come back whole: the real client, a stand-in of the service."""

import subprocess
import sys

import numpy as np
import pytest

from hub_standin import Hub
from little import pixels
from optimist.cli.main import main
from optimist.data import Dataset, from_arrays, hub
from optimist.data.verify import verify

# The client's own, of its HTTP library.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


@pytest.fixture
def service(monkeypatch, tmp_path):
    import huggingface_hub.constants as constants

    with Hub() as found:
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        monkeypatch.setenv("HF_TOKEN", "hf_somebody")
        monkeypatch.setenv("HF_ENDPOINT", found.address)
        yield found


def test_a_dataset_comes_back_whole(service, tmp_path, capsys):
    sent = pixels(tmp_path / "log")
    assert main(["data", "push", str(tmp_path / "log"), "lab/little", "--license", "cc-by-4.0"]) == 0
    assert main(["data", "pull", "lab/little", "--out", str(tmp_path / "back")]) == 0
    assert Dataset.open(tmp_path / "back").fingerprint == sent.fingerprint
    assert verify(tmp_path / "back") == []
    assert f"{len(sent):,} steps in" in capsys.readouterr().out
    assert not (tmp_path / "back" / ".cache").exists()
    card = service.files["datasets/lab/little"]["README.md"].decode()
    assert card.startswith("---\ntags: [reinforcement-learning, offline-rl, optimist]\n")
    assert "license: cc-by-4.0" in card and "optimist data pull lab/little" in card
    assert f"| steps | {len(sent)} |" in card


def test_the_card_of_action_vectors_has_their_names_and_an_agent_for_them():
    steps = np.arange(20)
    data = from_arrays(
        np.stack([steps, -steps], axis=1).astype(float),
        np.stack([steps / 20, steps / 40], axis=1),
        np.zeros(20),
        steps % 5 == 4,
        truncations=False,
        provenance={"features": ["inside", "outside"], "action_columns": ["heat", "fan"]},
    )
    card = hub.data_card(data, "lab/heater")
    assert "| features | ['inside', 'outside'] |" in card and "| action columns | ['heat', 'fan'] |" in card
    assert "| return mean | 0 |" in card and "| return worst | 0 |" in card
    assert "optimist train bcq data --out run" in card


def test_masks_and_probabilities_are_on_the_cards(service, tmp_path):
    """Who brought such a run from the Hub learned of its masks from an error."""
    data = from_arrays(
        np.zeros((4, 1)),
        np.array([0, 1, 0, 0]),
        np.zeros(4),
        np.ones(4, bool),
        allowed_actions=np.array([[1, 0], [1, 1], [1, 1], [1, 1]], bool),
        probabilities=[0.5, 0.5, 0.5, 1.0],
    )
    card = hub.data_card(data, "lab/shop")
    assert "| allowed actions | mean 1.75, least 1, most 2 |" in card
    assert "| probabilities | mean 0.625, least 0.5, most 1 |" in card
    run, said = (
        run_folder(tmp_path / "run"),
        "| allowed actions | each call of its policies takes a mask of them |",
    )
    for masks in ("", "[dataset]\nmasks = true\n"):
        (run / "config.toml").write_text(f'environment = ""\nseeds = [0]\n[agent]\nname = "cql"\n{masks}')
        assert main(["run", "push", str(run), "lab/cql"]) == 0
        assert (said in service.files["models/lab/cql"]["README.md"].decode()) == bool(masks)


def test_a_damaged_dataset_is_refused(service, tmp_path, capsys):
    pixels(tmp_path / "log")
    hub.push_data(tmp_path / "log", "lab/little")
    files = service.files["datasets/lab/little"]
    shard = next(name for name in files if name.endswith(".arrow"))
    files[shard] = files[shard][:-9] + b"x" + files[shard][-8:]
    assert main(["data", "pull", "lab/little", "--out", str(tmp_path / "back")]) == 3
    assert "lab/little: " in capsys.readouterr().err


POLICIES = [f"policies/step-{step:012}-{'0' * 32}.safetensors" for step in (1, 2)]


def run_folder(path):
    (path / "policies").mkdir(parents=True)
    (path / "checkpoints").mkdir()
    (path / "config.toml").write_text(
        'environment = "minatar/breakout"\nseeds = [0, 1]\n[agent]\nname = "rem"\n'
    )
    for name in ("DONE", POLICIES[0], "checkpoints/1.safetensors", "metrics.jsonl", "other.py"):
        (path / name).write_text(name)
    return path


@pytest.mark.parametrize("whole", [False, True])
def test_a_run_comes_back_without_what_is_not_its_own(whole, service, tmp_path):
    run = run_folder(tmp_path / "run")
    assert main(["run", "push", str(run), "lab/rem", "--private", *(["--checkpoints"] if whole else [])]) == 0
    assert "models/lab/rem" in service.private
    service.files["models/lab/rem"]["wicked.py"] = b"print()"
    assert main(["run", "pull", "lab/rem", "--out", str(tmp_path / "back")]) == 0
    back = {
        str(path.relative_to(tmp_path / "back")) for path in (tmp_path / "back").rglob("*") if path.is_file()
    }
    expected = {"README.md", "config.toml", "DONE", POLICIES[0], "metrics.jsonl"}
    assert back == expected | ({"checkpoints/1.safetensors"} if whole else set())
    card = (tmp_path / "back" / "README.md").read_text()
    assert "| agent | rem |" in card and "| seeds | 0, 1 |" in card


def test_a_run_without_an_environment_is_not_said_to_be_evaluated(service, tmp_path, capsys):
    run = run_folder(tmp_path / "run")
    (run / "config.toml").write_text('environment = ""\nseeds = [0]\n[agent]\nname = "cql"\n')
    assert main(["run", "push", str(run), "lab/cql"]) == 0
    card = service.files["models/lab/cql"]["README.md"].decode()
    assert "optimist export run --to policy.npz" in card and "optimist evaluate" not in card
    assert main(["run", "pull", "lab/cql", "--out", str(tmp_path / "back")]) == 0
    assert f"see optimist export {tmp_path / 'back'} --to policy.npz" in capsys.readouterr().out


def test_pushing_again_removes_what_is_gone(service, tmp_path):
    run = run_folder(tmp_path / "run")
    hub.push_run(run, "lab/rem", {})
    (run / POLICIES[0]).rename(run / POLICIES[1])
    hub.push_run(run, "lab/rem", {})
    names = set(service.files["models/lab/rem"])
    assert POLICIES[1] in names and POLICIES[0] not in names


def test_a_file_outside_is_not_sent_through_a_link(service, tmp_path, capsys):
    run = run_folder(tmp_path / "run")
    (tmp_path / "secret").write_text("mine")
    (run / POLICIES[1]).symlink_to(tmp_path / "secret")
    assert main(["run", "push", str(run), "lab/rem"]) == 3
    assert f"{POLICIES[1]} is a link that leads out of" in capsys.readouterr().err
    assert service.files == {}


def test_a_run_that_nobody_could_play_is_not_sent(service, tmp_path, capsys):
    run = run_folder(tmp_path / "run")
    (run / POLICIES[0]).unlink()
    assert main(["run", "push", str(run), "lab/rem"]) == 4
    assert "keeps no policies, so nobody could use it: add --checkpoints" in capsys.readouterr().err
    assert service.files == {}
    assert main(["run", "push", str(run), "lab/rem", "--checkpoints"]) == 0


MISTAKES = [
    ("data pull lab/none --out OUT", 2, "the Hub has no lab/none that you may see"),
    ("data pull a/b/c --out OUT", 2, '"a/b/c" is not the name of a repository: write user/name'),
    ("data pull lab/none --out FULL", 2, "is not empty: choose another --out"),
    ("run push FULL lab/x", 4, "is not a run: it has no config.toml"),
    ("run pull lab/none", 2, "name the run's folder: --out RUN"),
    ("data push OUT lab/x", 3, "OUT"),
]


@pytest.mark.parametrize(("words", "code", "phrase"), MISTAKES)
def test_mistakes_are_one_line(words, code, phrase, service, tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    places = {"OUT": str(tmp_path / "out"), "FULL": str(tmp_path / "full")}
    assert main([places.get(word, word) for word in words.split()]) == code
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1 and places.get(phrase, phrase) in complaint


def test_without_a_token_the_line_says_how_to_log_in(service, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("HF_TOKEN")
    pixels(tmp_path / "log")
    assert main(["data", "push", str(tmp_path / "log"), "lab/x"]) in (2, 6)
    assert "log in (hf auth login, HF_TOKEN)" in capsys.readouterr().err


def test_without_the_package_its_line_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert main(["data", "pull", "lab/x", "--out", str(tmp_path / "out")]) == 2
    assert 'huggingface_hub is not installed: pip install "optimist' in capsys.readouterr().err


def test_the_command_line_does_not_load_the_client():
    program = "import sys; from optimist.cli import main; print('huggingface_hub' in sys.modules)"
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"
