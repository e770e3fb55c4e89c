"""The functions of the Python interface, and the words of the commands that call them.

`optimist train`, `collect`, `select` and `export` are made from these signatures: a parameter whose
annotation has a help is an argument or an option of the command. What only one function needs is imported in
it, so that help appears at once and a policy is loaded quickly.
"""

from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from optimist.choosing import estimators
from optimist.errors import UsageError, closest

if TYPE_CHECKING:
    from optimist.agents._agent import Agent
    from optimist.choosing.ranking import Selection
    from optimist.data.dataset import Dataset
    from optimist.training.export import Exported
    from optimist.training.run import Run

Preset = Annotated[str | None, "the agent's named settings [its first]"]
Recipe = Annotated[str, "lengths and rates; auto: by the observations and actions"]
Restart = Annotated[bool, "delete what the folder holds and start again"]
Allow = Annotated[Iterable[str], "a module that a run's folder may import; may be repeated", "module"]
Step = Annotated[str | int, "a step whose policy was kept, chosen, best, healthy or last", "STEP"]


def open(path: str | Path) -> "Dataset":
    """The dataset in this folder."""
    from optimist.data.dataset import Dataset

    return Dataset.open(path)


def load(path: str | Path, *, step: Step = "last", allow: Allow = ()) -> "Run":
    """The run in this folder, with the policies of its "last" step, of its "best" evaluation or of any step
    in `run.kept`. "healthy" is "last", except that a seed that diverged has its last policy before that.
    "chosen" is the one policy that `select` chose.

    The folder may name classes of other modules: a module that is neither imported already nor installed as a
    plug-in is imported only if `allow` names it."""
    from optimist.training.run import load_run

    return load_run(path, allow, step)


def train(
    agent: Annotated["Agent | str", "an agent; optimist agents lists them"],
    data: Annotated["Dataset | str | Path", "a dataset's folder"],
    *,
    out: Annotated[
        str | Path | None, "the run's folder [runs/AGENT-DATA, and letters for a part of the data]", "RUN"
    ] = None,
    seeds: Annotated[Iterable[int], "trained together", "0,1,2"] = (0,),
    environment: Annotated[str | None, "where to evaluate, or none [the data's environment]", "ENV"] = None,
    preset: Preset = None,
    recipe: Recipe = "auto",
    restart: Restart = False,
    options: Mapping[str, Any] | None = None,
    part: "Callable[[Dataset], Dataset] | None" = None,
    **settings: Any,
) -> "Run":
    """Learn from logged data alone. The same command again continues an unfinished run.

    An agent given by name gets the recipe's settings; an agent such as `optimist.agents.Rem()` keeps its own.
    `options` are fields of the agent, {"optimizer.epsilon": 1e-4}; further keywords are fields of `Training`:
    steps, batch, evaluate_every. Evaluation plays the environment of the data unless `environment` names
    another, or is "none" or "". The run is in `out`, or in runs/AGENT-DATA as on the command line; data in
    memory has letters of its own in place of DATA.

    `part` selects what is learned from: `part=lambda log: log.best(0.1)` is `--best 0.1`. It differs from the
    data `data.best(0.1)` if `data_per_seed` is "own": then it selects from the log of each player.
    """
    from optimist.data.machine import with_home
    from optimist.training.offline import OfflineTraining, usual_environment, usual_folder
    from optimist.training.resolve import resolve_training
    from optimist.training.run import load_run
    from optimist.training.seed_logs import whole
    from optimist.training.settings import Training

    dataset, part = _dataset(agent, data), part or whole
    _refuse_misspelt(settings, Training, train)
    resolved = resolve_training(
        dataset.spec, agent, preset=preset, recipe=recipe, options=options, settings=settings
    )
    folder = with_home(out) if out else usual_folder(resolved.agent, part(dataset))
    OfflineTraining(
        resolved.agent,
        dataset,
        resolved.settings,
        out=folder,
        seeds=_seeds(seeds),
        environment=usual_environment(dataset, environment),
        restart=restart,
        part=part,
    ).run()
    return load_run(folder)


def collect(
    environment: Annotated[
        str,
        "an environment: atari/<Game> as in atari/Breakout, minatar/<game> as in minatar/breakout, "
        "mujoco/<Task> as in mujoco/Hopper, or gym/<id>",
        "ENV",
    ],
    *,
    out: Annotated[str | Path, "the dataset's folder; the agent's run is in its subfolder agent", "DATA"],
    agent: Annotated["Agent | str | None", "see optimist agents [dqn, or the preset's agent]"] = None,
    seeds: Annotated[
        Iterable[int] | None,
        "random seeds; several agents play at once, each in its own lanes [0, or those of --from]",
        "0,1,2",
    ] = None,
    start_from: Annotated[
        str | Path | None, "go on from a run: its agent, parameters and log", "--from RUN"
    ] = None,
    step: Annotated[str | int, "with --from: a kept step, last, best or chosen", "STEP"] = "last",
    preset: Preset = None,
    recipe: Recipe = "auto",
    restart: Restart = False,
    options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> "Dataset":
    """Let an online agent play and record everything. The same command again continues.

    The default agent is DQN, the default seed 0. `options` are fields of the agent; further keywords are
    fields of `Collection`: steps, lanes, epsilon.

    With `start_from`, a run's folder, the agents of that run go on from their last step, or from a `step`
    whose policy was kept; half of each minibatch is from the log of that run, unless `mix` is another share.
    """
    from optimist import envs
    from optimist.data.dataset import Dataset
    from optimist.data.machine import with_home
    from optimist.training.beginning import beginning
    from optimist.training.online import OnlineTraining
    from optimist.training.resolve import resolve_collection
    from optimist.training.settings import Collection

    _refuse_misspelt(settings, Collection, collect)
    spec, start, folder = envs.spec_of(environment), None, with_home(out)
    if start_from is None and step != "last":
        raise UsageError(f"step {step} is that of another run: name it, --from RUN or start_from=")
    if start_from is not None:
        start = beginning(start_from, step=step, seeds=None if seeds is None else _seeds(seeds))
    resolved = resolve_collection(
        spec, agent, preset=preset, recipe=recipe, options=options, settings=settings, start=start
    )
    OnlineTraining(
        resolved.agent,
        environment,
        resolved.settings,
        out=folder,
        seeds=start.seeds if start else _seeds((0,) if seeds is None else seeds),
        restart=restart,
        start=start,
    ).run()
    return Dataset.open(folder)


def select(
    runs: Annotated[
        "str | Path | Run | Iterable[str | Path | Run]",
        "at least one run; all of them learned from one dataset",
        "RUN ...",
    ],
    *,
    rule: Annotated[
        str, f"what ranks them: {', '.join(estimators.available())}, or module:Name", "RULE"
    ] = estimators.USUAL,
    updates: Annotated[int, "updates of each network"] = 10_000,
    steps: Annotated[
        int | None,
        "use about so many steps of each log, which is faster [all that there is room for]",
    ] = None,
    anyway: Annotated[bool, "choose the first policy even if it is not shown to be better"] = False,
    episodes: Annotated[
        int, "the most real episodes in all, played by the policies that rank best by the log"
    ] = 0,
    environment: Annotated[str, "where to play them [the data's environment]", "ENV"] = "",
    data: Annotated["Dataset | str | Path | None", "the data of the runs, if its folder was moved"] = None,
    out: Annotated[str | Path | None, "a folder for selection.json and a page [only in the runs]"] = None,
    allow: Allow = (),
    command: str = "optimist.select(...)",
) -> "Selection":
    """Say whether a kept policy of runs is better than the log's own policy, by their log alone. If so it is
    chosen: `--step chosen` loads it. If not, the exit code is 7.

    `selection.answer` says whether the first is better, and by how much; `selection.chosen` is the policy to
    ship, None if the log cannot tell, unless `anyway`; `selection.ranking` has all of them.
    `load(chosen.run, step="chosen")` loads the choice. With `episodes`, the policies that rank best play at
    most that many real episodes in all, which then decide. The page in `out` names the `command`.
    """
    from optimist.choosing.selecting import select_policy
    from optimist.data.machine import with_home
    from optimist.training.run import Run
    from optimist.training.storage.selected import refuse_read_only

    several = [runs] if isinstance(runs, (str, Path, Run)) else list(runs)
    folders = [each.path if isinstance(each, Run) else with_home(each) for each in several]
    refuse_read_only(folders)
    selection = select_policy(
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
    selection.write(page)
    if page is not None:
        from optimist.studies.report.selection_report import write_selection_page

        write_selection_page(selection, page, command)
    return selection


def export(
    run: Annotated["Run | str | Path", "a run's folder"],
    to: Annotated[
        str | Path, "the file: policy.npz (needs only NumPy), policy.onnx or policy.stablehlo", "--to FILE"
    ],
    *,
    step: Annotated[
        str | int | None, "a step whose policy was kept, chosen, best, healthy or last [last]", "STEP"
    ] = None,
    seed: Annotated[int | None, "which seed's policy [the first]"] = None,
    data: Annotated[
        "Dataset | str | Path | None", "logged observations for the check [the data of the run]", "DATA"
    ] = None,
    allow: Allow = (),
) -> "Exported":
    """Write a trained policy to a file that needs neither Optimist nor JAX, and check its actions.

    Without a `step` it is the policy of the loaded run, or the last of a folder. Its actions are compared
    with the policy's on observations of `data`, by default the data of the run."""
    from optimist.data.machine import with_home
    from optimist.training.export import export_policy
    from optimist.training.run import Run, load_run

    if not isinstance(run, Run):
        run = load_run(run, allow, "last" if step is None else step)
    elif step is not None:
        run = load_run(run.path, allow, step)
    return export_policy(run, with_home(to), seed=seed, data=data)


def _dataset(agent: Any, data: Any) -> "Dataset":
    """The data to learn from; UsageError if it is something else, or where the agent should be."""
    from optimist import agents
    from optimist.data.dataset import Dataset
    from optimist.data.machine import with_home

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
    """Raise UsageError for a word that is no setting, and most like an argument of the function."""
    own, known = list(signature(function).parameters), list(signature(record).parameters)
    for name in settings:
        meant = None if name in known else closest(name, [*own, *known])
        if meant in own:
            raise UsageError(f'there is no setting "{name}": did you mean "{meant}"?')


def _seeds(seeds: Iterable[int]) -> tuple[int, ...]:
    try:
        return tuple(index(seed) for seed in seeds)  # NumPy's whole numbers too
    except TypeError:
        raise UsageError(f"seeds is {seeds!r}: list them, as in seeds=(0, 1, 2) or seeds=range(3)") from None
