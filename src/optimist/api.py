"""The whole system in three lines of Python."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from optimist import envs
from optimist.agents import name_of, preset
from optimist.agents._agent import Agent
from optimist.data.store import Dataset
from optimist.errors import UsageError
from optimist.training.offline import OfflineTraining
from optimist.training.online import Collection, OnlineTraining
from optimist.training.scales import scale_for
from optimist.training.trained import Run, load_run


def open(path: str | Path) -> Dataset:
    """The dataset in this folder."""
    return Dataset.open(path)


def load(path: str | Path) -> Run:
    """The run in this folder."""
    return load_run(path)


def train(
    agent: Agent | str,
    data: Dataset | str | Path,
    *,
    steps: int | None = None,
    seeds: Iterable[int] = (0,),
    out: str | Path | None = None,
    environment: str | None = None,
    restart: bool = False,
    **settings,
) -> Run:
    """Train on the data alone; further settings are the fields of `Training`.

    An agent is taken as it is; the name of one is fitted to the size of the data's observations.
    Evaluation plays the environment the data came from, unless another (or "" for none) is named. The same
    call again continues an unfinished run.
    """
    dataset = data if isinstance(data, Dataset) else Dataset.open(data)
    scale = scale_for(dataset.spec)
    agent = scale.fitted(preset(agent)) if isinstance(agent, str) else agent
    if not isinstance(agent, Agent):
        raise UsageError(f'{agent!r} is not an agent: pass "rem" or one such as optimist.agents.Rem()')
    if environment is None:
        environment = envs.from_data(dataset.provenance.get("environment", ""))
    out = out or Path("runs") / f"{name_of(agent)}-{dataset.fingerprint[:8]}"
    if steps is not None:
        settings["steps"] = steps
    training = OfflineTraining(
        agent,
        dataset,
        replace(scale.training, **settings),
        out=out,
        seeds=tuple(seeds),
        environment=environment,
        restart=restart,
    )
    training.run()
    return load_run(out)


def collect(
    environment: str,
    *,
    out: str | Path,
    agent: Agent | None = None,
    seeds: tuple[int, ...] = (0,),
    restart: bool = False,
    **settings,
) -> Dataset:
    """Let an online agent play and keep every step; further settings are the fields of `Collection`."""
    agent = agent or preset("dqn")
    OnlineTraining(
        agent, environment, Collection(**settings), out=out, seeds=tuple(seeds), restart=restart
    ).run()
    return Dataset.open(out)
