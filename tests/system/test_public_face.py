"""The public names as users write them: they run, editors see them, and `make lint` checks them strictly."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import optimist


def small_log() -> optimist.Dataset:
    random = np.random.default_rng(0)
    return optimist.Dataset.from_arrays(
        observations=random.normal(size=(60, 4)),
        actions=random.integers(0, 2, 60),
        rewards=random.normal(size=60),
        terminals=np.arange(60) % 20 == 19,
        truncations=False,
    )


def test_a_script_of_public_names_runs(tmp_path: Path) -> None:
    data = small_log()
    run = optimist.train("dqn", data, steps=4, batch=8, out=tmp_path / "run", environment="")
    action: int = run.policy(data.observation(0))
    assert action in range(data.spec.actions)
    returns: list[float] = [episode.return_ for episode in data.episodes]
    assert len(returns) == 3
    batch: optimist.Transition = data.batch(16, seed=1, step=3)
    assert batch.observation.shape == (16, 4)
    spec: optimist.Spec = data.first(10).spec
    with optimist.Recorder(tmp_path / "data", spec, lanes=1) as recorder:
        for step in data.episodes[0]:
            recorder.add(
                observation=step.observation[None],
                action=[step.action],
                reward=[step.reward],
                terminal=[step.discount == 0],
                truncated=[False],
                next_observation=step.next_observation[None],
            )
    assert len(optimist.open(tmp_path / "data")) == 20


def test_every_public_name_is_listed_and_found() -> None:
    assert dir(optimist) == sorted([*optimist.__all__, "__version__"])
    assert all(getattr(optimist, name) is not None for name in optimist.__all__)


def test_signatures_are_real() -> None:
    parameters = inspect.signature(optimist.Dataset.from_arrays).parameters
    assert list(parameters)[:5] == ["observations", "actions", "rewards", "terminals", "truncations"]
    assert "next_observations" in (inspect.getdoc(optimist.Dataset.from_arrays) or "")


def test_naming_the_package_imports_neither_jax_nor_numpy() -> None:
    code = "import sys, optimist; dir(optimist); sys.exit(bool({'jax', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_commands_of_datasets_do_without_jax(tmp_path: Path) -> None:
    """Its import takes a second, and logs are looked at on machines that cannot train. Nothing is kept yet in
    the user's cache: the first import on a new machine needed JAX."""
    rows = "".join(f"{n // 10},{n},{n % 3},1.0,{int(n % 10 == 9)}\n" for n in range(40))
    (tmp_path / "log.csv").write_text("episode,x,action,reward,done\n" + rows)
    columns = "--observations x --terminals done --episodes episode"
    commands = (f"import log.csv --out log {columns}", "info log", "verify log", "report log --out page.html")
    code = f"""
import sys
sys.modules["jax"] = None  # it cannot be imported
from optimist.cli.main import main
sys.exit(max(main(["data", *words.split()]) for words in {commands}))
"""
    new = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=new).returncode == 0


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(optimist.__file__).parent / "py.typed").exists()
