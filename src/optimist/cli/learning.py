"""`optimist train`, `collect` and `demo`: what their options are depends on the agent and the environment."""

from pathlib import Path
from typing import Annotated, Any

from optimist import api
from optimist.cli import index
from optimist.cli.data import Part, refuse_logs
from optimist.cli.words import CommandLine, in_columns, setting_words
from optimist.errors import DataError, UsageError, command_line, did_you_mean


def train_words(line: CommandLine) -> None:
    """Add the settings of the training, of the agent and of the environments."""
    typed = line.arguments()
    if len(typed) == 2 and Path(typed[0]).is_dir() and not Path(typed[1]).exists():
        first, second = (word.replace("-", "_").lower() for word in typed)
        if first not in index.agents() and second in index.agents():
            right = command_line("train", typed[1], typed[0])
            raise UsageError(f"the agent comes first, then the dataset: {right}")
    if typed:
        line.after = f"presets of {typed[0]}: {', '.join(index.agent(typed[0])['presets'])}"
    else:
        about = {name: entry["what"] for name, entry in index.agents().items()}
        line.after = f"agents:\n{in_columns(about)}"
    _add_settings(line, "training", typed[0] if typed else None, line.value("--preset"))
    _add_environments(line, {family: entry["settings"] for family, entry in index.environments().items()})


def collect_words(line: CommandLine) -> None:
    """Add the settings of the collection, of the agent and of the environment."""
    name, preset = index.player(line.value("--agent"), line.value("--preset"))
    _add_settings(line, "collection", name, preset)
    chosen = line.arguments()[:1] or list(index.environments())
    _add_environments(line, {each.partition("/")[0]: index.environment(each) for each in chosen})


def demo_words(line: CommandLine) -> None:
    line.add("options", setting_words(index.records()["demo"], "settings"))


def _add_settings(line: CommandLine, kind: str, name: str | None, preset: str | None) -> None:
    """Add the settings of the training and of the agent; without an agent, hidden options of all agents."""
    recipes, recipe = index.recipes(), line.value("--recipe")
    if recipe and recipe not in (*recipes, "auto"):
        raise UsageError(f'there is no recipe "{recipe}": {did_you_mean(recipe, [*recipes, "auto"])}')
    line.after = f"recipes: {', '.join(recipes)}\n{line.after}".rstrip()
    entry = index.agent(name) if name else None
    actions = entry["actions"] if entry else "any"
    fitting = [each for each in recipes if actions in recipes[each]["actions"]]
    fitting = [recipe] if recipe in recipes else fitting
    others = {each: recipes[each][kind] for each in fitting}
    title = f"{kind}, with the default of each recipe where they differ"
    line.add(title, setting_words(index.records()[kind], "settings", others=others))
    if entry is None:
        every = [chosen for agent in index.agents().values() for chosen in agent["presets"].values()]
        line.add("the agent", setting_words(_union(every), "options", is_hidden=True))
        return
    chosen = index.preset(str(name), preset)
    presets = [chosen] if preset else [*entry["presets"].values(), chosen]  # a recipe may prefer one of these
    fitted = (chosen if preset else entry)["fitted"][kind]
    others = {each: fitted.get(each, {}) for each in fitting}
    line.add(entry["source"].rstrip("."), setting_words(_union(presets), "options", others=others))


def _union(presets: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: setting for each in presets for name, setting in each["settings"].items()}


def _add_environments(line: CommandLine, families: dict[str, Any]) -> None:
    for family, settings in families.items():
        line.add(f"the environment, if it is {family}/...", setting_words(settings, "game"))


def train(data: Path, part: Part, *, game: dict[str, Any], settings: dict[str, Any], **words: Any) -> None:
    """Train, and print the scores."""
    from optimist.data.dataset import Dataset

    try:
        dataset = Dataset.open(data)
    except DataError:
        refuse_logs(data)  # a better message, if it is a log of another program
        raise
    if game:
        from optimist.training.offline import usual_environment

        words["environment"] = _with_options(usual_environment(dataset, words.get("environment")), game)
    run = api.train(data=dataset, part=part.of, **words, **settings)
    if run.environment:
        _print_scores(run, part.of(dataset))
        print(f"trained in {run.path}; to watch it: {command_line('play', run.path, '--out', 'video.gif')}")
    else:
        _print_estimates(run.path)


def _print_estimates(run: Path) -> None:
    """What the log alone says of the policies, and what to do with them."""
    from optimist.studies.scores.curves import estimator_sheet
    from optimist.studies.sheet import print_sheet
    from optimist.training.storage.checkpoint import kept_steps
    from optimist.training.storage.rows import read_metrics
    from optimist.training.storage.run_folder import read_alarms

    sheet = estimator_sheet(read_metrics(run))
    if sheet.rows:
        print_sheet(sheet)
    print(f"trained in {run}; its curves as a page: {command_line('report', run)}")
    if kept_steps(run):
        print(f"to choose a policy by the log: {command_line('select', run)}")
    healthy = ["--step", "healthy"] if read_alarms(run) else []
    print(f"to use it elsewhere: {command_line('export', run, *healthy, '--to', 'policy.onnx')}")


def _print_scores(run: Any, dataset: Any) -> None:
    from optimist.agents import short_name
    from optimist.data.look import card
    from optimist.studies.scores.curves import curves, sheet
    from optimist.studies.sheet import print_sheet

    facts = card(dataset)
    levels = {"best tenth of the episodes": facts["return_best_tenth"]}
    if facts["best_policy_return"] is not None:
        levels = {"best policy in the data": facts["best_policy_return"]}
    levels["average behaviour"] = facts["return_mean"]
    print_sheet(sheet({short_name(run.learner.agent): curves(run.path)}, levels))


def collect(
    environment: str, *, out: Path, game: dict[str, Any], settings: dict[str, Any], **words: Any
) -> None:
    """Collect, and say where."""
    environment = _with_options(environment, game) if game else environment
    api.collect(environment, out=out, **words, **settings)
    print(f"recorded in {out}; see: {command_line('data', 'info', out)}")


def _with_options(environment: str, game: dict[str, Any]) -> str:
    """The environment's name with the given options."""
    from optimist import envs
    from optimist.training.settings import with_values

    usual = envs.options_of(environment) if environment else None
    if usual is None:
        option = f"--{next(iter(game)).replace('_', '-')}"
        raise UsageError(f'{environment or "no environment"} has no option "{option}": leave it out')
    return envs.named(environment, with_values(usual, game, environment))


def demo(
    *,
    out: Annotated[Path, "the folder for the results", "FOLDER"] = Path("demo"),
    settings: dict[str, Any],
) -> None:
    """Record, train, evaluate and report in minutes. An online DQN plays and is recorded; DQN, QR-DQN and REM
    learn from the log alone; a page shows the scores."""
    from optimist.studies.demo import Demo, run_demo
    from optimist.studies.sheet import print_sheet

    outcome = run_demo(out, Demo(**settings))
    print_sheet(outcome.scores)
    print(f"the report: {outcome.report}")
