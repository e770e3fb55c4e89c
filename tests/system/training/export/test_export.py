"""An exported policy acts as the policy does, in programs that have neither this package nor JAX."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
import pytest

import optimist
from little import small
from optimist.agents import available
from optimist.cli.main import main
from optimist.data import Spec
from optimist.errors import DataError, RunError, UsageError
from optimist.training.export import exporting, onnx_file, program
from optimist.training.export.numpy_policy import NumpyPolicy
from optimist.training.learner import Learner
from optimist.training.run import Run
from optimist.training.scaling import Inputs

VECTORS = Spec((4,), "float32", actions=3)
BOARD = Spec((10, 10, 3), "bool", actions=3)
SCREEN = Spec((40, 36, 1), "uint8", actions=3, stack=4)
BOX = Spec((4,), "float32", action_low=(-1.0, -2.0), action_high=(1.0, 3.0))


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(exporting, "CHECKED", 500)


def untrained(name: str, spec: Spec, agent=None, inputs: Inputs | None = None) -> Run:
    learner = Learner(agent or small(name), spec, inputs)
    return Run(Path("a run"), learner, "", (7, 8), 5, learner.init((7, 8)).params, "nowhere")


def fits(name: str, spec: Spec) -> bool:
    try:
        small(name).check(spec)
    except DataError:
        return False
    return True


# One agent of each kind of output; the others compute it with the same operations.
KINDS = {"dqn", "rem", "c51", "bootstrapped_dqn", "discrete_bcq", "behaviour_cloning"}
KINDS |= {"td3", "iql", "sac_cql"}
CASES = [
    pytest.param(
        name,
        VECTORS if fits(name, VECTORS) else BOX,
        id=name,
        marks=() if name in KINDS else pytest.mark.slow,
    )
    for name in available()
]
FILES = {  # how a program reads a policy of each kind
    ".npz": NumpyPolicy,
    ".onnx": onnx_file.runner,
    ".stablehlo": lambda file: jax.export.deserialize(bytearray(file.read_bytes())).call,
}


def exported(run: Run, folder: Path, suffixes=exporting.SUFFIXES, **more) -> list:
    """The policy in a file of each kind, checked, and the files' own functions of an observation."""
    actions = []
    for suffix in suffixes:
        made = exporting.export_policy(run, folder / f"policy{suffix}", **more)
        assert made.checked and made.different == 0
        actions.append(FILES[suffix](made.path))
    return actions


@pytest.mark.parametrize("stack", [1, 3])
def test_an_exported_policy_scales_and_limits_observations_itself(stack, tmp_path):
    """It takes observations as they were logged; the first of an episode has missing frames. Far from the
    mean it would take other actions without the limit."""
    centre, spread = (50_000.0, 0.5, -3.0, 0.0), (1_000.0, 0.5, 0.01, 7.0)
    spec = replace(VECTORS, stack=stack)
    scale = Inputs(centre, spread, limit=10.0)
    run = untrained("dqn", spec, inputs=scale)
    random = np.random.default_rng(0)
    frames = np.array(centre) + random.normal(size=(200, stack, 4)) * spread * random.choice(
        [1, 30], (200, 1, 1)
    )
    frames[::5, : stack - 1] = 0
    rows = frames.reshape(200, -1).astype(np.float32)
    expected = run.policy(rows)
    free = untrained("dqn", spec, inputs=replace(scale, limit=np.inf)).policy(rows)
    assert len(set(expected.tolist())) > 1 and (expected != free).sum() > 10
    for action in exported(run, tmp_path):
        np.testing.assert_array_equal([int(np.asarray(action(row))) for row in rows], expected)


@pytest.mark.parametrize(("name", "dtype"), [("td3", "bool"), ("td3", "uint8"), ("bcq", "bool")])
def test_a_policy_of_action_vectors_reads_flags_and_bytes(name, dtype, tmp_path):
    exported(untrained(name, replace(BOX, frame_dtype=dtype)), tmp_path)


@pytest.mark.parametrize(("name", "spec"), CASES)
def test_every_agent_has_the_same_actions_in_numpy_and_in_onnx(name, spec, tmp_path):
    exported(untrained(name, spec), tmp_path, (".npz", ".onnx"), seed=8)


def bcq(*, alike: bool) -> Run:
    """Its candidates are all worth the same, or each something else."""
    run = untrained("bcq", BOX)
    if not alike:
        return run
    equal = jax.tree.map(lambda leaf: 0 * leaf + 1, run.params["critic"])
    equal[0] = equal[0]._replace(weight=0 * equal[0].weight)
    return replace(run, params={**run.params, "critic": equal})


@pytest.mark.parametrize(
    ("alike", "place", "moved", "ties"), [(True, 5, 0, 50), (False, 5, 0, None), (True, 5, 0.01, None)]
)
def test_of_candidates_with_the_same_value_any_may_be_chosen(
    alike, place, moved, ties, tmp_path, monkeypatch
):
    """Rounding decides between them; a worse candidate, or an action that is none, is a fault."""
    run = bcq(alike=alike)

    @jax.jit
    def choices(observation):
        key = jax.random.PRNGKey(exporting.POLICY)
        return run.learner.agent.choices(BOX, run.params_of(7), observation, key)

    def other(observation):
        actions, values = choices(observation)
        return actions[np.argsort(-values)[place]] + moved

    monkeypatch.setattr(exporting, "_write_onnx", lambda path, *rest: path.touch() or other)
    if ties is None:
        with pytest.raises(RunError, match="50 of its 50 actions are not the policy's"):
            exporting.export_policy(run, tmp_path / "policy.onnx")
        return
    made = exporting.export_policy(run, tmp_path / "policy.onnx")
    assert (made.different, made.ties) == (0, ties)
    assert made.lines()[1].endswith(
        "50 of 50 actions are the policy's, 50 of them by another candidate of the same value"
    )


@pytest.mark.parametrize("spec", [BOARD, SCREEN], ids=["board", "screen"])
def test_images_are_read_by_the_networks_own_convolutions(spec, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "CHECKED", 100)
    exported(untrained("rem", spec, optimist.agents.Rem(columns=4)), tmp_path)


def test_the_heads_of_rem_become_one_before_they_are_written(tmp_path):
    count = {}
    for columns in (2, 200):
        path = tmp_path / f"{columns}.npz"
        exporting.export_policy(untrained("rem", VECTORS, optimist.agents.Rem(columns=columns)), path)
        with np.load(path) as file:
            count[columns] = sum(file[name].size for name in file.files if name != "program")
    assert count[2] == count[200]


def test_the_file_for_numpy_runs_where_there_is_nothing_else(tmp_path):
    run = untrained("rem", VECTORS)
    exporting.export_policy(run, tmp_path / "policy.npz")
    code = (
        "import sys, numpy as np\n"
        "from numpy_policy import NumpyPolicy\n"
        "policy = NumpyPolicy('policy.npz')\n"
        "print([policy(row) for row in np.linspace(-2, 2, 40).reshape(10, 4)])\n"
        "assert not {'jax', 'optimist'} & set(sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    rows = np.linspace(-2, 2, 40).reshape(10, 4).astype(np.float32)
    assert json.loads(ran.stdout) == run.policy(rows).tolist(), ran.stderr


def test_frames_are_stacked_by_the_file_for_numpy(tmp_path):
    run = untrained("dqn", Spec((2,), "float32", actions=5, stack=3), inputs=Inputs((1.0, -2.0), (3.0, 0.1)))
    (policy,), frames = exported(run, tmp_path, (".npz",)), np.arange(8, dtype=np.float32).reshape(4, 2)
    for _ in range(2):
        policy.reset()
        seen = np.zeros(6, np.float32)
        for frame in frames:
            seen = np.concatenate([seen[2:], frame])
            assert policy.see(frame) == run.policy(seen)


@pytest.mark.parametrize("stack", [1, 3])
def test_images_without_channels_are_taken_as_they_were_logged(stack, tmp_path):
    """The policy took (h, w), and its file only (h, w, 1), which nothing said."""
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (30, 12, 14)).astype(np.uint8)
    ends = np.arange(30) % 10 == 9
    log = optimist.Dataset.from_arrays(
        pixels, np.arange(30) % 3, np.zeros(30), ends, truncations=False, stack=stack
    )
    run = untrained("dqn", log.spec)
    made = exporting.export_policy(run, tmp_path / "policy.npz", data=log)
    told = "12x14x1 uint8" if stack == 1 else "12x14x3 uint8: 3 frames of 12x14x1, oldest first"
    assert made.lines()[1] == f"an observation is {told}"
    policy = NumpyPolicy(tmp_path / "policy.npz")
    for row, frame in enumerate(pixels[:10]):
        assert policy.see(frame) == run.policy(log.observation(row))
        if stack == 1:
            assert policy(frame) == policy(frame[..., None]) == run.policy(frame)
    with pytest.raises(ValueError, match=r"shape \(14, 12\)"):
        policy.see(pixels[0].T)


def test_images_may_have_their_channels_first(tmp_path):
    spec = Spec((10, 12, 3), "uint8", actions=4, stack=2, channels_first=True)
    run = untrained("dqn", spec)
    policy, in_onnx = exported(run, tmp_path, (".npz", ".onnx"))
    frames = np.random.default_rng(0).integers(0, 256, (3, 3, 10, 12))
    for before, frame in zip(np.zeros_like(frames[:1]).tolist() + frames.tolist(), frames, strict=False):
        stacked = np.concatenate([before, frame]).astype(np.uint8)
        expected = run.policy(stacked)
        assert policy.see(frame) == policy(stacked) == expected
        assert in_onnx(stacked) == expected
    with pytest.raises(UsageError, match=r"of \(10, 12, 6\): give one \(6, 10, 12\) or a batch"):
        run.policy(np.moveaxis(stacked, 0, -1))


def test_the_files_answer_with_the_users_names_and_scale_as_in_training(tmp_path):
    names, inputs = ("stay", "left", "right"), Inputs((5.0, 0.0, 0.0, 1e4), (2.0, 1.0, 0.5, 3e3))
    run = untrained("rem", Spec((4,), "float32", actions=3, action_names=names), inputs=inputs)
    policy, _ = exported(run, tmp_path, (".npz", ".onnx"))
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx")
    rows = np.random.default_rng(0).normal([5, 0, 0, 1e4], [2, 1, 0.5, 3e3], (30, 4)).astype(np.float32)
    expected = [run.policy(row) for row in rows]
    assert len(set(expected)) > 1
    assert [policy(row) for row in rows] == expected
    assert [session.run(["name"], {"observation": row})[0] for row in rows] == expected


@pytest.mark.parametrize("spec", [VECTORS, BOX], ids=["discrete", "vectors"])
def test_what_is_not_an_observation_is_refused(spec, tmp_path):
    run = untrained("dqn" if spec.discrete else "td3", spec)
    in_numpy, in_onnx = exported(run, tmp_path, (".npz", ".onnx"))
    with pytest.raises(ValueError, match=r"shape \(5,\): this policy takes \(4,\)"):
        in_numpy(np.zeros(5))
    with pytest.raises(Exception, match="Got: 5 Expected: 4"):
        in_onnx(np.zeros(5, np.float32))
    for bad in (np.nan, np.inf):
        row = np.array([0, bad, 0, 0], np.float32)
        with pytest.raises(ValueError, match="NaN or infinity"):
            in_numpy(row)
        action = in_onnx(row)
        assert action == -1 if spec.discrete else np.isnan(action).all()


PIXELS = np.random.default_rng(4).integers(0, 256, (40, 36, 1))


@pytest.mark.parametrize(
    ("spec", "same", "others"),
    [
        (
            replace(SCREEN, stack=1),
            [PIXELS, PIXELS.astype(np.float64), PIXELS.astype(np.uint8).tolist()],
            {"whole number from 0 to 255": PIXELS / 255, "holds -1, and": PIXELS - 1, "to 255": PIXELS + 9},
        ),
        (
            BOARD,
            [np.ones((10, 10, 3), kind) for kind in ("bool", "uint8", "float64")],
            {"0 or 1": np.full((10, 10, 3), 2)},
        ),
        (
            Spec((40, 36, 1), "float32", actions=3),
            [PIXELS / 255, (PIXELS / 255).astype(np.float32)],
            {"is uint8, and the log's images are floats": PIXELS.astype(np.uint8)},
        ),
        (VECTORS, [np.array([1, 0, 255, 3], kind) for kind in ("uint8", "int64", "float32")], {}),
    ],
    ids=["bytes", "flags", "floats", "vectors"],
)
def test_an_observation_means_the_same_in_any_type(spec, same, others, tmp_path):
    """Networks divide bytes by 255, and pixels of another type were not."""
    run = untrained("dqn", spec)
    exporting.export_policy(run, tmp_path / "policy.npz")
    in_numpy, params = NumpyPolicy(tmp_path / "policy.npz"), run.params_of(7)
    logged = np.asarray(same[0]).astype(spec.frame_dtype)
    expected = int(run.learner.action(params, logged, jax.random.PRNGKey(0)))
    for each in same:
        assert run.policy(each) == in_numpy(each) == expected
    for message, bad in others.items():
        with pytest.raises(UsageError, match=message):
            run.policy(bad)
        with pytest.raises(ValueError, match=message):
            in_numpy(bad)


def test_the_onnx_file_says_what_it_is(tmp_path):
    exporting.export_policy(untrained("td3", BOX), tmp_path / "policy.onnx", seed=8)
    told = {each.key: json.loads(each.value) for each in onnx.load(tmp_path / "policy.onnx").metadata_props}
    assert told["agent"] == "td3" and told["seed"] == 8 and told["action_high"] == [1.0, 3.0]


@pytest.mark.parametrize(
    ("names", "shown", "none"),
    [((7, 100, 52_000), [7, 100, 52_000], -1), (("hold", 7, "2"), ["hold", "7", "2"], "")],
)
def test_names_may_be_numbers_and_of_names_of_which_some_are_texts_all_are(names, shown, none, tmp_path):
    exporting.export_policy(untrained("dqn", replace(VECTORS, action_names=names)), tmp_path / "policy.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx")
    rows = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    found = [session.run(["action", "name"], {"observation": row}) for row in rows]
    assert len({int(number) for number, _ in found}) > 1
    assert all(name == shown[int(number)] for number, name in found)
    nothing = session.run(["name"], {"observation": np.full(4, np.nan, np.float32)})[0]
    assert nothing == none  # what is no observation has no action


def odd(x):
    """Operations that a user's own torso may have and ours have not."""
    x = jax.nn.sigmoid(x) + jax.lax.rsqrt(1 + x**2) - jnp.cos(x) * jnp.abs(x)
    table = jnp.einsum("i,j->ij", x, x) @ jnp.ones((4, 3)) + jnp.linspace(0, 1, 12).reshape(4, 3)
    gram = jnp.einsum("ij,kj->ki", table, table)
    chosen = jnp.where((gram != gram.min()) & ~(gram > 2), gram, jnp.clip(gram, -1, 1) ** 3)
    padded = jax.lax.pad(chosen, 0.5, [(1, -2, 0), (0, 1, 0)])[::-1].T
    row = jax.lax.dynamic_slice(padded, (jnp.argmin(padded.sum(1)), 0), (2, 3))
    return jnp.sqrt(jnp.abs(jnp.concatenate([row.ravel(), x]))) + jnp.sign(x[0])


def test_other_operations_of_a_users_own_network_have_the_same_results(tmp_path):
    traced = program.trace(odd, [((4,), "float32")])
    facts = {"actions": 0, "action_names": [], "dtype": "float32"}
    facts |= {"observation_shape": [4], "frame_shape": [4]}
    in_numpy = exporting._write_npz(tmp_path / "policy.npz", traced, facts)
    in_onnx = exporting._write_onnx(tmp_path / "policy.onnx", traced, facts)
    for row in np.random.default_rng(2).normal(size=(50, 4)).astype(np.float32):
        expected = np.asarray(odd(row))
        np.testing.assert_allclose(in_numpy(row), expected, atol=1e-5)
        np.testing.assert_allclose(in_onnx(row), expected, atol=1e-5)


def test_an_operation_that_no_file_can_hold_is_named_with_the_remedy():
    with pytest.raises(UsageError, match="uses sort, .*policy.stablehlo"):
        program.trace(jnp.sort, [((4,), "float32")])


def test_a_file_with_other_actions_is_not_kept(tmp_path, monkeypatch):
    right = exporting._write_npz
    monkeypatch.setattr(exporting, "_write_npz", lambda *args: lambda x: 1 - right(*args)(x))
    with pytest.raises(RunError, match="of its 50 actions are not the policy's"):
        exporting.export_policy(untrained("dqn", VECTORS), tmp_path / "policy.npz")
    assert not (tmp_path / "policy.npz").exists()


def test_the_command_exports_a_kept_policy_and_checks_it_on_the_log(log, tmp_path, capsys):
    words = [
        "--steps",
        "40",
        "--evaluate-every",
        "20",
        "--environment",
        "none",
        "--out",
        str(tmp_path / "run"),
    ]
    assert main(["train", "dqn", str(log), *words]) == 0
    files = [tmp_path / "early.npz", tmp_path / "late.npz"]
    for file, step in zip(files, ("20", "last"), strict=True):
        assert main(["export", str(tmp_path / "run"), "--to", str(file), "--step", step]) == 0
        assert "checked on logged observations: 500 of 500" in capsys.readouterr().out
    assert [NumpyPolicy(file).facts["step"] for file in files] == [20, 40]
    made = optimist.export(tmp_path / "run", tmp_path / "policy.onnx", step=20, data=log)
    assert made.checked == 500
    loaded, file = optimist.load(tmp_path / "run", step=20), tmp_path / "loaded.npz"
    for step, written in ((None, 20), ("last", 40), (20, 20)):
        optimist.export(loaded, file, step=step, data=log)
        assert NumpyPolicy(file).facts["step"] == written
    assert main(["export", str(tmp_path / "run"), "--to", "policy.pt"]) == 2
    assert "choose one of policy.npz, policy.onnx, policy.stablehlo" in capsys.readouterr().err


def test_an_online_agent_is_checked_on_the_recording_of_its_play(tmp_path):
    play = {"steps": 64, "lanes": 2, "warm_up": 16, "batch": 4}
    optimist.collect("minatar_jax/breakout", out=tmp_path / "data", **play)
    made = optimist.export(tmp_path / "data" / "agent", tmp_path / "policy.npz")
    assert (made.observations, made.checked) == ("logged observations", 64)
    (tmp_path / "data" / "manifest.json").unlink()
    made = optimist.export(tmp_path / "data" / "agent", tmp_path / "policy.npz")
    assert made.observations == (
        f"random observations, because the log of {tmp_path / 'data' / 'agent'} cannot be opened"
    )  # it spoke of masks, which this log never had


def test_data_that_does_not_fit_is_refused_before_a_file_is_written(log, tmp_path):
    with pytest.raises(UsageError, match="name a log like the one"):
        exporting.export_policy(untrained("dqn", VECTORS), tmp_path / "policy.npz", data=log)
    assert not (tmp_path / "policy.npz").exists()


def test_the_order_of_the_features_goes_with_the_policy(tmp_path, capsys):
    """A pattern takes the columns as the table has them, and a policy cannot see that two are exchanged."""
    rows = [f"{age},{hour},{age % 2},{age % 3},1" for age, hour in zip(range(20, 60), range(40), strict=True)]
    (tmp_path / "log.csv").write_text("\n".join(["x_old,x_new,action,reward,terminal", *rows]))
    told = ["--observations", "x_*", "--truncations", "no", "--out", str(tmp_path / "log")]
    assert main(["data", "import", "parquet", str(tmp_path / "log.csv"), *told]) == 0
    assert main(["data", "info", str(tmp_path / "log")]) == 0
    assert "features x_old, x_new" in " ".join(capsys.readouterr().out.split())
    short = ["--steps", "20", "--evaluate-every", "20", "--out", str(tmp_path / "run")]
    assert main(["train", "dqn", str(tmp_path / "log"), *short]) == 0
    for suffix in exporting.SUFFIXES:
        assert main(["export", str(tmp_path / "run"), "--to", str(tmp_path / f"policy{suffix}")]) == 0
        assert "an observation is, in this order: x_old, x_new" in capsys.readouterr().out
    assert NumpyPolicy(tmp_path / "policy.npz").facts["features"] == ["x_old", "x_new"]
    facts = {each.key: json.loads(each.value) for each in onnx.load(tmp_path / "policy.onnx").metadata_props}
    assert facts["features"] == ["x_old", "x_new"]


def test_the_features_of_a_stack_of_frames_are_those_of_each(tmp_path):
    steps = np.arange(40)
    data = optimist.Dataset.from_arrays(
        np.stack([steps, -steps], axis=1).astype(float),
        steps % 2,
        np.ones(40),
        steps % 8 == 7,
        truncations=False,
        stack=3,
        provenance={"features": ["age", "hour"]},
    )
    made = exporting.export_policy(untrained("dqn", data.spec), tmp_path / "policy.npz", data=data)
    assert "an observation is 3 frames, oldest first, each in this order: age, hour" in made.lines()


def masked_log(names: tuple[str, ...] = ()) -> optimist.Dataset:
    random = np.random.default_rng(3)
    allowed, actions = random.random((120, 3)) < 0.6, random.integers(0, 3, 120)
    allowed[np.arange(120), actions] = True
    return optimist.Dataset.from_arrays(
        random.normal(size=(120, 4)).astype(np.float32),
        np.array(names)[actions] if names else actions,
        random.normal(size=120),
        np.ones(120, bool),
        truncations=False,
        allowed_actions=allowed,
    )


@pytest.mark.parametrize("name", ["dqn", "rem", "c51", "bootstrapped_dqn", "discrete_bcq", "random"])
def test_an_exported_policy_of_a_log_with_masks_takes_a_mask(name, tmp_path):
    """It answered with actions that are not allowed, because it could not be told."""
    run, log = untrained(name, VECTORS), masked_log()
    for suffix in exporting.SUFFIXES:
        made = exporting.export_policy(run, tmp_path / f"policy{suffix}", data=log)
        assert (made.checked, made.different) == (120, 0)
        assert "each call takes one beside the observation, in this order: 0, 1, 2" in made.lines()[1]
    in_numpy, in_onnx = (FILES[suffix](tmp_path / f"policy{suffix}") for suffix in (".npz", ".onnx"))
    for number, mask in enumerate(log.timeline.allowed):
        row = log.observation(number)
        action = in_numpy(row, mask)
        assert mask[action] and in_onnx(row, mask) == action


@pytest.fixture(scope="module")
def masked_run(tmp_path_factory):
    """A run whose log with masks is there no more."""
    folder = tmp_path_factory.mktemp("masked")
    masked_log().save(folder / "log")
    optimist.train("dqn", folder / "log", steps=20, evaluate_every=20, out=folder / "run")
    (folder / "log").rename(folder / "elsewhere")
    return folder / "run"


def test_a_run_whose_log_with_masks_is_gone_still_takes_a_mask(masked_run, tmp_path):
    run, row, mask = optimist.load(masked_run), masked_log().observation(0), [False, True, False]
    with pytest.raises(UsageError, match=r"log has masks .* give the mask too"):
        run.policy(row)
    assert run.policy(row, mask) == 1
    for suffix in exporting.SUFFIXES:
        made = optimist.export(run, tmp_path / f"policy{suffix}")
        assert made.facts["takes_mask"] and made.different == 0
        assert "random observations and masks, because the log" in made.lines()[-1]
    in_numpy = NumpyPolicy(tmp_path / "policy.npz")
    assert in_numpy(row, mask) == 1
    with pytest.raises(ValueError, match="the log has masks of allowed actions"):
        in_numpy(row)
    plain = optimist.Dataset.from_arrays(np.zeros((9, 4)), np.arange(9) % 3, np.zeros(9), np.ones(9))
    made = optimist.export(run, tmp_path / "plain.npz", data=plain)
    assert made.facts["takes_mask"] and made.checked == 9


def test_a_log_of_another_kind_does_not_check_a_policy(tmp_path):
    """A file made for pixels of 0 to 1 would read those of 0 to 255 wrongly, and agree with itself."""
    random = np.random.default_rng(0)
    run, shape = untrained("dqn", Spec((12, 12, 1), "uint8", actions=3)), (9, 12, 12, 1)
    rows: dict = {"actions": np.arange(9) % 3, "rewards": np.zeros(9), "terminals": np.ones(9)}
    floats = optimist.Dataset.from_arrays(random.random(shape), **rows)
    more = optimist.Dataset.from_arrays(np.zeros(shape, np.uint8), actions_count=4, **rows)
    for other in (floats, more):
        with pytest.raises(UsageError, match="name a log like the one that it learned from"):
            optimist.export(run, tmp_path / "policy.npz", data=other)


def test_a_mask_that_is_none_is_refused_by_an_exported_policy(tmp_path):
    run, log = untrained("dqn", VECTORS), masked_log()
    in_numpy, in_onnx = exported(run, tmp_path, (".npz", ".onnx"), data=log)
    row, nothing = log.observation(0), np.zeros(3, bool)
    for bad in (nothing, np.ones(4, bool), np.ones(3)):
        with pytest.raises(ValueError, match="allowed is not 3 values"):
            in_numpy(row, bad)
    assert in_onnx(row, nothing) == -1
    exporting.export_policy(run, tmp_path / "free.npz")
    with pytest.raises(ValueError, match="takes no mask: its log had none"):
        NumpyPolicy(tmp_path / "free.npz")(row, np.ones(3, bool))


def test_the_order_of_an_action_vector_goes_with_the_policy(tmp_path, capsys):
    """Its numbers have units, which nothing but the names of the columns tells apart."""
    rows = [
        f"{row % 7},{row % 5},{row % 11 * 9.5},{row % 13 * 200.5 - 2406},1,{row % 10 == 9:d}"
        for row in range(60)
    ]
    (tmp_path / "log.csv").write_text("\n".join(["level,heat,valve_pct,heater_w,reward,terminal", *rows]))
    told = ["--observations", "level,heat", "--actions", "valve_pct,heater_w", "--truncations", "no"]
    words = [str(tmp_path / "log.csv"), *told, "--out", str(tmp_path / "log")]
    assert main(["data", "import", "parquet", *words]) == 0
    assert main(["data", "info", str(tmp_path / "log")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "action columns valve_pct, heater_w" in shown
    assert "action low 0; -2,406 action high 95, 0" in shown
    short = [
        "--steps",
        "20",
        "--evaluate-every",
        "20",
        "--out",
        str(tmp_path / "run"),
        "--network.hidden",
        "8",
    ]
    assert main(["train", "cloned_actor", str(tmp_path / "log"), *short]) == 0
    made = optimist.export(tmp_path / "run", tmp_path / "policy.npz")
    assert "an action is, in this order: valve_pct, heater_w" in made.lines()
    assert NumpyPolicy(tmp_path / "policy.npz").facts["action_columns"] == ["valve_pct", "heater_w"]
