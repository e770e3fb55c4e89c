"""The functions of the Python interface: open, load, train, collect, select and export.

Each function imports what only it needs, so that a policy is loaded quickly.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optimist import agents, envs
from optimist.agents._agent import Agent
from optimist.data.dataset import Dataset
from optimist.data.machine import with_home
from optimist.errors import UsageError, closest
from optimist.training.run import Run, load_run

if TYPE_CHECKING:
    from optimist.choosing.ranking import Selection
    from optimist.training.export import Exported

log = logging.getLogger("optimist")


def open(path: str | Path) -> Dataset:
    """The dataset in this folder."""
    return Dataset.open(path)


def load(path: str | Path, *, step: int | str = "last", allow: Iterable[str] = ()) -> Run:
    """The run in this folder, with the policies of its "last" step, of its "best" evaluation or of any step
    in `run.kept`. "healthy" is "last", except that a seed that diverged has its last policy before that.
    "chosen" is the one policy that `select` chose.

    The folder may name classes of other modules: a module that is neither imported already nor installed as a
    plug-in is imported only if `allow` names it."""
    return load_run(path, allow, step)


def train(
    agent: Agent | str,
    data: Dataset | str | Path,
    *,
    preset: str | None = None,
    recipe: str = "auto",
    options: Mapping[str, Any] | None = None,
    seeds: Iterable[int] = (0,),
    out: str | Path | None = None,
    environment: str | None = None,
    part: Callable[[Dataset], Dataset] | None = None,
    restart: bool = False,
    **settings: Any,
) -> Run:
    """Train offline on the data, as `optimist train` does: the same settings give the same run.

    An agent given by name gets the recipe's settings; an agent such as `optimist.agents.Rem()` keeps its own.
    `options` are fields of the agent, {"optimizer.epsilon": 1e-4}; further keywords are fields of `Training`:
    steps, batch, evaluate_every. Evaluation plays the environment of the data unless `environment` names
    another, or is "none" or "". The run is in `out`, or in runs/AGENT-DATA as on the command line; data in
    memory has letters of its own in place of DATA. The same call continues an unfinished run.

    `part` selects what is learned from: `part=lambda log: log.best(0.1)` is `--best 0.1`. It differs from the
    data `data.best(0.1)` if `data_per_seed` is "own": then it selects from the log of each player.
    """
    from optimist.training.offline import OfflineTraining, usual_environment, usual_folder
    from optimist.training.resolve import resolve_training
    from optimist.training.seed_logs import whole
    from optimist.training.settings import Training

    dataset = _dataset(agent, data)
    _refuse_misspelt(settings, Training, train)
    found = resolve_training(
        dataset.spec,
        agent,
        preset=preset,
        recipe=_recipe(recipe, settings),
        options=options,
        settings=settings,
    )
    part = part or whole
    out = with_home(out) if out else usual_folder(found.agent, part(dataset))
    OfflineTraining(
        found.agent,
        dataset,
        found.settings,
        out=out,
        seeds=_seeds(seeds),
        environment=usual_environment(dataset, environment),
        restart=restart,
        part=part,
    ).run()
    return load_run(out)


def collect(
    environment: str,
    *,
    out: str | Path,
    agent: Agent | str | None = None,
    preset: str | None = None,
    recipe: str = "auto",
    options: Mapping[str, Any] | None = None,
    seeds: Iterable[int] | None = None,
    start_from: str | Path | None = None,
    step: int | str = "last",
    restart: bool = False,
    **settings: Any,
) -> Dataset:
    """Train an agent online and record every step, as `optimist collect` does: the same settings give the
    same run.

    The default agent is DQN, the default seed 0. `options` are fields of the agent; further keywords are
    fields of `Collection`: steps, lanes, epsilon.

    With `start_from`, a run's folder, the agents of that run go on from their last step, or from a `step`
    whose policy was kept; half of each minibatch is from the log of that run, unless `mix` is another share.
    """
    from optimist.training.beginning import beginning
    from optimist.training.online import OnlineTraining
    from optimist.training.resolve import resolve_collection
    from optimist.training.settings import Collection

    _refuse_misspelt(settings, Collection, collect)
    spec, start, out = envs.spec_of(environment), None, with_home(out)
    if start_from is not None:
        start = beginning(start_from, step=step, seeds=None if seeds is None else _seeds(seeds))
    found = resolve_collection(
        spec,
        agent,
        preset=preset,
        recipe=_recipe(recipe, settings),
        options=options,
        settings=settings,
        start=start,
    )
    OnlineTraining(
        found.agent,
        environment,
        found.settings,
        out=out,
        seeds=start.seeds if start else _seeds((0,) if seeds is None else seeds),
        restart=restart,
        start=start,
    ).run()
    return Dataset.open(out)


def select(
    runs: str | Path | Run | Iterable[str | Path | Run],
    *,
    data: Dataset | str | Path | None = None,
    rule: str = "cautious",
    updates: int = 10_000,
    episodes: int = 0,
    environment: str = "",
    out: str | Path | None = None,
    allow: Iterable[str] = (),
    steps: int | None = None,
    anyway: bool = False,
) -> "Selection":
    """Choose among all kept policies of runs that learned from one dataset, by that dataset alone, as
    `optimist select` does. `selection.answer` says whether the first is better than the log's own policy, and
    by how much; `selection.chosen` is the policy to ship, None if the log cannot tell, unless `anyway`;
    `selection.ranking` has all of them. `load(chosen.run, step="chosen")` loads the choice. With `episodes`,
    the policies that rank best play at most that many real episodes in all, which then decide.
    """
    from optimist.choosing.selecting import select_policy
    from optimist.training.storage.selected import refuse_read_only

    several = [runs] if isinstance(runs, (str, Path, Run)) else list(runs)
    folders = [each.path if isinstance(each, Run) else with_home(each) for each in several]
    refuse_read_only(folders)
    found = select_policy(
        folders,
        data=data,
        rule=rule,
        updates=updates,
        episodes=episodes,
        environment=environment,
        allow=allow,
        steps=steps,
        anyway=anyway,
    )
    page = None if out is None else Path(with_home(out))
    found.write(page)
    if page is not None:
        from optimist.studies.report.selection_report import write_selection_page

        write_selection_page(found, page, "optimist.select(...)")
    return found


def export(
    run: Run | str | Path,
    to: str | Path,
    *,
    step: int | str | None = None,
    seed: int | None = None,
    data: Dataset | str | Path | None = None,
) -> "Exported":
    """Write the policy of one seed to a file that needs neither this package nor JAX, as `optimist export`
    does: policy.npz for NumPy, policy.onnx, or policy.stablehlo. Without a `step` it is the one of the loaded
    run, or the last of a folder. Its actions are compared with the policy's on observations of `data`, by
    default the data of the run."""
    from optimist.training.export import export_policy

    if not isinstance(run, Run):
        run = load_run(run, step="last" if step is None else step)
    elif step is not None:
        run = load_run(run.path, step=step)
    return export_policy(run, with_home(to), seed=seed, data=data)


def _dataset(agent: Any, data: Any) -> Dataset:
    """The data to learn from; UsageError if it is something else, or where the agent should be."""
    is_folder = isinstance(agent, (str, Path)) and Path(with_home(agent)).is_dir()
    if isinstance(agent, Dataset) or (is_folder and str(data) in agents.available()):
        raise UsageError('the agent comes first, then the data, as in optimist.train("cql", data)')
    if isinstance(data, Dataset):
        return data
    if not isinstance(data, (str, Path)):
        raise UsageError(
            f"the data is of type {type(data).__name__}: give the folder of a dataset, or a dataset, as "
            "optimist.Dataset.from_arrays makes one"
        )
    return Dataset.open(data)


def _refuse_misspelt(settings: Mapping[str, Any], record: type, function: Callable[..., Any]) -> None:
    """Raise UsageError for a word that is none of the settings, and most like an argument of the function."""
    own, known = list(signature(function).parameters), list(signature(record).parameters)
    for name in settings:
        meant = None if name in known else closest(name, [*known, *own])  # on ties the last
        if meant in own:
            raise UsageError(f'there is no setting "{name}": did you mean "{meant}"?')


def _recipe(recipe: str, settings: dict[str, Any]) -> str:
    """The recipe; its former name is scale."""
    if "scale" not in settings:
        return recipe
    log.warning("scale= is now called recipe=; only studies have a scale")
    return settings.pop("scale")


def _seeds(seeds: Iterable[int]) -> tuple[int, ...]:
    try:
        return tuple(index(seed) for seed in seeds)  # NumPy's whole numbers too
    except TypeError:
        raise UsageError(f"seeds is {seeds!r}: list them, as in seeds=(0, 1, 2) or seeds=range(3)") from None
