"""`optimist train`, `collect` and `demo`: the commands that make data and runs.

Slow imports are inside the functions, so that help and errors appear at once.
"""

import argparse
import logging
from pathlib import Path
from typing import Any

from optimist.cli import index
from optimist.cli.data import refuse_logs
from optimist.cli.options import Parser, arguments_in, command, quoted, seeds, value_in
from optimist.cli.settings import Setting, add_settings, given, settings_of, union
from optimist.cli.views import add_views, part_of
from optimist.errors import DataError, UsageError, did_you_mean

ENVIRONMENTS = (
    "atari/<Game> as in atari/Breakout, minatar/<game> as in minatar/breakout, "
    "mujoco/<Task> as in mujoco/Hopper, or gym/<id>"
)
log = logging.getLogger("optimist")


def add(commands: Any) -> None:
    command(commands, "demo", demo, _demo_options)
    command(commands, "collect", collect, _collect_options)
    command(commands, "train", train, _train_options)


def _demo_options(parser: Parser, words: list[str]) -> None:
    parser.add_argument("--out", type=Path, default=Path("demo"), help="the folder for the results [demo]")
    add_settings(parser, index.settings(index.read()["settings"]["demo"]), "setting")


def demo(options: argparse.Namespace) -> None:
    """Record, train, evaluate and report in minutes.

    An online DQN plays and is recorded; DQN, QR-DQN and REM learn from the log alone; a page shows the
    scores.
    """
    from optimist.studies.demo import Demo, run_demo
    from optimist.studies.sheet import print_sheet

    outcome = run_demo(options.out, Demo(**given(options, "setting")))
    print_sheet(outcome.scores)
    print(f"the report: {outcome.report}")


def _collect_options(parser: Parser, words: list[str]) -> None:
    environment = "".join(arguments_in(words)[:1])
    parser.demand("environment", f"name an environment: {ENVIRONMENTS}", metavar="ENV", help=ENVIRONMENTS)
    parser.demand(
        "--out",
        "name the dataset's folder: --out DATA",
        type=Path,
        metavar="DATA",
        help="the dataset's folder; the agent's run is in its subfolder agent",
    )
    parser.add_argument("--agent", metavar="name", help="see optimist agents [dqn, or the preset's agent]")
    parser.add_argument(
        "--seeds",
        "--seed",
        type=seeds,
        metavar="0,1,2",
        help="random seeds; several agents play at once, each in its own lanes [0, or those of --from]",
    )
    parser.add_argument(
        "--from",
        dest="start_from",
        metavar="RUN[:step]",
        help="go on from a run: its agent and parameters; step: a number, last, best or chosen [last]",
    )
    _add_choices(parser)
    name, preset = index.player(value_in(words, "--agent"), value_in(words, "--preset"))
    _add_settings(parser, "collection", name, preset, value_in(words, "--recipe"))
    families, family = index.read()["environments"], environment.partition("/")[0]
    if environment and family not in families:  # of another package, or a mistake
        from optimist import envs

        options = envs.options_of(environment)
        families = {family: {"settings": settings_of(options) if options else {}}}
    _add_environments(parser, {family: families[family]} if environment else families)
    _add_former_names(parser)


def collect(options: argparse.Namespace) -> None:
    """Let an online agent play and record everything. The same command again continues."""
    from optimist import envs

    spec, start = envs.make(options.environment).spec, None
    from optimist.training.beginning import beginning, split
    from optimist.training.online import OnlineTraining
    from optimist.training.resolve import resolve_collection

    if options.start_from:
        path, step = split(options.start_from)
        start = beginning(path, step=step, seeds=options.seeds)
    found = resolve_collection(spec, options.agent, start=start, **_asked(options))
    OnlineTraining(
        found.agent,
        _with_options(options.environment, options),
        found.settings,
        out=options.out,
        seeds=start.seeds if start else options.seeds or (0,),
        restart=options.restart,
        start=start,
    ).run()
    print(f"recorded in {options.out}; see: optimist data info {quoted(options.out)}")


def _train_options(parser: Parser, words: list[str]) -> None:
    name = next(iter(arguments_in(words)), None)
    _refuse_exchanged(arguments_in(words))
    parser.epilog = index.preset_line(name) if name else index.agent_lines()
    known = ", ".join(index.read()["agents"])
    parser.demand("agent", f"name an agent: {known}", metavar="AGENT", help="see optimist agents")
    parser.demand(
        "data",
        "name a dataset's folder, such as one made by optimist collect",
        metavar="DATA",
        type=Path,
        help="a dataset's folder",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="RUN",
        help="the run's folder [runs/AGENT-DATA, and letters for a part of the data]",
    )
    parser.add_argument("--seeds", type=seeds, default=(0,), metavar="0,1,2", help="trained together [0]")
    parser.add_argument(
        "--environment", metavar="ENV", help="where to evaluate, or none [the data's environment]"
    )
    _add_choices(parser)
    add_views(parser)
    _add_settings(parser, "training", name, value_in(words, "--preset"), value_in(words, "--recipe"))
    _add_environments(parser, index.read()["environments"])
    _add_former_names(parser)


def _refuse_exchanged(words: list[str]) -> None:
    """Raise UsageError if the dataset comes first, and then an agent."""
    if len(words) == 2 and Path(words[0]).is_dir() and not Path(words[1]).exists():
        known = index.read()["agents"]
        first, second = (word.replace("-", "_").lower() for word in words)
        if first not in known and second in known:
            raise UsageError(
                f"the agent comes first, then the dataset: optimist train {words[1]} {quoted(words[0])}"
            )


def train(options: argparse.Namespace) -> None:
    """Learn from logged data alone. The same command again continues an unfinished run."""
    from optimist.data.dataset import Dataset

    try:
        dataset = Dataset.open(options.data)
    except DataError:
        refuse_logs(options.data)  # a better message, if it is a log of another program
        raise
    from optimist import agents, envs
    from optimist.training.offline import OfflineTraining, usual_folder
    from optimist.training.resolve import resolve_training
    from optimist.training.storage.alarms import read_alarms
    from optimist.training.storage.policies import kept_steps

    agent, settings = resolve_training(dataset.spec, options.agent, **_asked(options))
    environment = options.environment
    if environment is None:
        environment = envs.from_data(dataset.provenance.get("environment", ""))
    environment = "" if environment == "none" else environment
    out = options.out or usual_folder(agent, part_of(dataset, options))
    OfflineTraining(
        agent,
        dataset,
        settings,
        out=out,
        seeds=options.seeds,
        environment=_with_options(environment, options),
        restart=options.restart,
        part=lambda part: part_of(part, options),
    ).run()
    named = quoted(out)
    if not environment:
        _print_estimators(out)
        print(f"trained in {out}; its curves as a page: optimist report {named}")
        if kept_steps(out):
            print(f"to choose a policy by the log: optimist select {named}")
        healthy = " --step healthy" if read_alarms(out) else ""
        print(f"to use it elsewhere: optimist export {named}{healthy} --to policy.onnx")
        return
    _print_scores(agents.short_name(agent), out, part_of(dataset, options))
    print(f"trained in {out}; to watch it: optimist play {named} --out video.gif")


def _print_estimators(run: Path) -> None:
    from optimist.studies.results.run_curves import estimator_sheet, read_metrics
    from optimist.studies.sheet import print_sheet

    found = estimator_sheet(read_metrics(run))
    if found.rows:
        print_sheet(found)


def _print_scores(name: str, run: Path, dataset: Any) -> None:
    from optimist.data.card import card
    from optimist.studies.scores.curves import scores, sheet, summary
    from optimist.studies.sheet import print_sheet

    facts = card(dataset)
    levels = {
        "best policy in the data": facts["best_policy_return"],
        "average behaviour": facts["return_mean"],
    }
    print_sheet(sheet({name: summary(scores(run))}, levels))


def _add_choices(parser: Parser) -> None:
    """Add the options that decide the defaults of the settings."""
    names = ", ".join(index.read()["recipes"])
    parser.add_argument("--preset", metavar="name", help="the agent's named settings [its first]")
    parser.add_argument(
        "--recipe",
        default="auto",
        metavar="name",
        help=f"lengths and rates: {names} [auto: by the observations and actions]",
    )
    parser.add_argument("--scale", metavar="name", help=argparse.SUPPRESS)  # the recipe's former name
    parser.add_argument("--restart", action="store_true", help="delete what the folder holds and start again")


def _add_settings(
    parser: Parser, kind: str, name: str | None, preset: str | None, recipe: str | None
) -> None:
    """Add the settings of the training and of the agent; without an agent, hidden options of all agents."""
    found, recipes = index.read(), index.read()["recipes"]
    if recipe and recipe not in (*recipes, "auto"):
        raise UsageError(f'there is no recipe "{recipe}": {did_you_mean(recipe, [*recipes, "auto"])}')
    entry = index.agent(name) if name else None
    fitting = (
        (recipe,) if recipe and recipe in recipes else index.FITTING[entry["actions"] if entry else "any"]
    )
    add_settings(
        parser.add_argument_group(f"{kind}, with the default of each recipe where they differ"),
        index.settings(found["settings"][kind]),
        "setting",
        others={each: recipes[each][kind] for each in fitting},
    )
    if name and entry:
        chosen = index.preset(name, preset)
        add_settings(
            parser.add_argument_group(entry["source"].rstrip(".")),
            index.settings(chosen["settings"]),
            "agent",
            others={each: chosen["fitted"].get(each, {}) for each in fitting},
        )
        return
    every: list[dict[str, Setting]] = [
        index.settings(chosen["settings"])
        for agent in found["agents"].values()
        for chosen in agent["presets"].values()
    ]
    parser.add_argument_group("the agent", f"to see its settings: {parser.prog} AGENT --help")
    add_settings(parser, union(every), "agent", hidden=True)


def _add_former_names(parser: Parser) -> None:
    """Add hidden options of version 0.1.0; the resolver reports their new names."""
    for place, name in (("setting", "home"), ("setting", "log"), ("agent", "hidden"), ("agent", "network")):
        if f"--{name}" not in parser._option_string_actions:  # a user's own agent may have such a field
            parser.add_argument(
                f"--{name}", dest=f"{place}:{name}", default=argparse.SUPPRESS, help=argparse.SUPPRESS
            )


def _add_environments(parser: Parser, families: dict[str, Any]) -> None:
    for family, entry in families.items():
        if entry["settings"]:
            group = parser.add_argument_group(f"the environment, if it is {family}/...")
            add_settings(group, index.settings(entry["settings"]), "environment")


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of the resolver."""
    if options.scale:
        log.warning("--scale is now called --recipe; only studies have --scale")
    return {
        "preset": options.preset,
        "recipe": options.scale or options.recipe,
        "options": given(options, "agent"),
        "settings": given(options, "setting"),
    }


def _with_options(environment: str, options: argparse.Namespace) -> str:
    """The environment's name with the given options."""
    chosen = given(options, "environment")
    if not chosen:
        return environment
    from optimist import envs
    from optimist.training.resolve import with_values

    usual = envs.options_of(environment) if environment else None
    if usual is None:
        option = f"--{next(iter(chosen)).replace('_', '-')}"
        raise UsageError(f'{environment or "no environment"} has no option "{option}": leave it out')
    return envs.named(environment, with_values(usual, chosen, environment))
