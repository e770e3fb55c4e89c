"""The commands, each a few calls into the floors below.

Imports that take a second stand inside the functions, so that help and mistakes are answered at once.
"""

import argparse
from pathlib import Path
from typing import Any

from optimist.cli.data import add_views, part_of
from optimist.cli.options import Parser, add_fields, number, option_names, seeds, whole_number, with_options
from optimist.errors import UsageError

ENVIRONMENTS = (
    "atari/<Game> as in atari/Breakout, minatar/<game> as in minatar/breakout, "
    "mujoco/<Task> as in mujoco/Hopper, or gym/<id>"
)


def demo(words: list[str]) -> None:
    parser = Parser(
        "optimist demo",
        description="MinAtar Breakout: an online DQN plays and is logged; DQN, QR-DQN and REM learn from the "
        "log alone; a page shows how well.",
    )
    parser.add_argument("--out", type=Path, default=Path("demo"), help="the folder it fills [demo]")
    from optimist.studies.demo import Demo, run_demo
    from optimist.studies.sheet import print_sheet

    add_fields(parser, Demo())
    options = parser.options(words)
    outcome = run_demo(options.out, with_options(Demo(), options))
    print_sheet(outcome.scores)
    print(f"the page with everything: {outcome.report}")


def collect(words: list[str]) -> None:
    from optimist import agents, envs
    from optimist.training.online import Collection, OnlineTraining
    from optimist.training.resolve import resolve_collection

    parser = Parser("optimist collect", description="An online agent plays; everything it saw is kept.")
    parser.add_argument("environment", metavar="ENV", nargs="?", help=ENVIRONMENTS)
    parser.add_argument(
        "--out", type=Path, help="the dataset's folder; the player's own run is its folder agent"
    )
    parser.add_argument(
        "--agent", metavar="name", help=f"{', '.join(agents.available())} [dqn, or as the preset says]"
    )
    parser.add_argument(
        "--seeds",
        "--seed",
        type=seeds,
        default=(0,),
        metavar="0,1,2",
        help="cover everything random; several play side by side, each in its own lanes [0]",
    )
    first = _first_look(parser, words, Collection())
    if not first.helps:
        _demand(first.environment, f"name an environment: {ENVIRONMENTS}")
        _demand(first.out, "say where to keep the data: --out DATA")
    name = first.environment or "minatar/breakout"
    spec = envs.make(name).spec
    found = resolve_collection(spec, first.agent, preset=first.preset, scale=first.scale)
    options = _second_look(parser, words, found.settings, found.agent, envs.options_of(name))
    OnlineTraining(
        with_options(found.agent, options),
        _asked_for(name, options),
        with_options(found.settings, options),
        out=first.out,
        seeds=first.seeds,
        restart=first.restart,
    ).run()
    print(f"recorded in {first.out}; see: optimist data info {first.out}")


def train(words: list[str]) -> None:
    from optimist import agents, envs
    from optimist.data.dataset import Dataset
    from optimist.training.offline import OfflineTraining, Training
    from optimist.training.resolve import resolve_training

    parser = Parser("optimist train", description="Learn from logged data alone.", epilog=agent_lines())
    parser.add_argument("agent", metavar="AGENT", nargs="?", help=", ".join(agents.available()))
    parser.add_argument("data", metavar="DATA", nargs="?", type=Path, help="a dataset's folder")
    parser.add_argument("--out", type=Path, metavar="RUN", help="the run's folder [runs/AGENT-DATA]")
    parser.add_argument("--seeds", type=seeds, default=(0,), metavar="0,1,2", help="trained together [0]")
    parser.add_argument(
        "--environment", metavar="ENV", help="where to evaluate, or none [where the data is from]"
    )
    add_views(parser)
    first = _first_look(parser, words, Training())
    if not first.helps:
        _demand(first.agent, f"name an agent: {', '.join(agents.available())}")
        agents.preset(first.agent, first.preset)
        _demand(first.data, "name a dataset's folder, such as one made by optimist collect")
    dataset = None if first.helps else Dataset.open(first.data)
    spec, scale = (dataset.spec, first.scale) if dataset else (None, "paper")
    agent, settings = resolve_training(spec, first.agent or "rem", preset=first.preset, scale=scale)
    origin = dataset.provenance.get("environment", "") if dataset else ""
    environment = first.environment or envs.from_data(origin)
    environment = "" if environment == "none" else environment
    options = _second_look(
        parser, words, settings, agent, envs.options_of(environment) if environment else None
    )
    assert dataset is not None  # help has left by now
    out = first.out or Path("runs") / f"{agents.name_of(agent)}-{first.data.resolve().name}"
    OfflineTraining(
        with_options(agent, options),
        dataset,
        with_options(settings, options),
        out=out,
        seeds=first.seeds,
        environment=_asked_for(environment, options),
        restart=first.restart,
        part=lambda log: part_of(log, first),
    ).run()
    if environment:
        _tell_scores(agents.name_of(agent), out, part_of(dataset, first))
    print(f"trained in {out}; watch it: optimist play {out} --out video.gif")


def _tell_scores(name: str, run: Path, dataset: Any) -> None:
    from optimist.data.card import card
    from optimist.studies.scores.curves import scores, sheet, summary
    from optimist.studies.sheet import print_sheet

    facts = card(dataset)
    levels = {
        "best policy in the data": facts["best_policy_return"],
        "average behaviour": facts["return_mean"],
    }
    print_sheet(sheet({name: summary(scores(run))}, levels))


def evaluate(words: list[str]) -> None:
    parser = Parser("optimist evaluate", description="Full episodes with every seed of a run, side by side.")
    parser.add_argument("run", metavar="RUN", type=Path, help="a run's folder")
    parser.add_argument("--episodes", type=whole_number, metavar="int", help="so many per seed [100]")
    parser.add_argument(
        "--steps",
        type=whole_number,
        metavar="int",
        help="instead: full episodes until so many steps [125000 for Atari]",
    )
    parser.add_argument(
        "--epsilon", type=number, metavar="number", help="random actions [0.001; none among action vectors]"
    )
    parser.add_argument("--environment", metavar="ENV", default="", help="[where the data is from]")
    parser.add_argument("--out", type=Path, metavar="CSV", help="one row per episode [RUN/evaluation.csv]")
    options = parser.options(words)
    from optimist.cli.tables import evaluation_table
    from optimist.studies.sheet import print_sheet
    from optimist.training.run import load_run
    from optimist.training.scales import scale_for
    from optimist.training.storage.run_folder import write_episodes

    run = load_run(options.run)
    usual = scale_for(run.learner.spec).training
    episodes = 100 if options.episodes is None else options.episodes
    usual_steps = usual.evaluation_steps if options.episodes is None else None
    steps = usual_steps if options.steps is None else options.steps
    epsilon = usual.epsilon if options.epsilon is None else options.epsilon
    rows = run.evaluate(episodes, epsilon, options.environment, steps)
    out = options.out or options.run / "evaluation.csv"
    write_episodes(out, rows)
    print_sheet(evaluation_table(run.step, rows))
    print(f"every episode is in {out}")


def play(words: list[str]) -> None:
    parser = Parser("optimist play", description="An animated picture of a trained agent at play.")
    parser.add_argument("run", metavar="RUN", type=Path, help="a run's folder")
    parser.add_argument("--out", type=Path, default=Path("video.gif"), metavar="GIF", help="[video.gif]")
    parser.add_argument("--seed", type=int, metavar="int", help="which seed's policy [the first]")
    parser.add_argument("--frames", type=whole_number, default=400, metavar="int", help="its length [400]")
    parser.add_argument("--fps", type=int, default=15, metavar="int", help="frames a second [15]")
    options = parser.options(words)
    from optimist.training.play.video import write_gif
    from optimist.training.run import load_run

    write_gif(options.out, load_run(options.run).pictures(options.seed, options.frames), options.fps)
    print(f"wrote {options.out}")


def agents(words: list[str]) -> None:
    parser = Parser(
        "optimist agents", description="Every agent and preset: table, target, mixture, optimiser."
    )
    parser.options(words)
    from optimist.cli.tables import agents_table
    from optimist.studies.sheet import print_sheet

    print_sheet(agents_table())


def _first_look(parser: Parser, words: list[str], settings: Any) -> argparse.Namespace:
    """What decides the defaults of everything else; `helps` says that only help was asked for."""
    from optimist import agents, envs

    parser.add_argument("--preset", metavar="name", help="the agent's named settings [its first]")
    parser.add_argument(
        "--scale",
        default="auto",
        metavar="name",
        help="paper, paper-5x, mini, small, or by the observations [auto]",
    )
    parser.add_argument("--restart", action="store_true", help="begin anew over what is there")
    helping = [word for word in words if word in ("-h", "--help")]
    every_agent = [agent for name in agents.available() for agent in agents.presets(name).values()]
    later = frozenset().union(*map(option_names, (settings, *envs.families_options(), *every_agent)))
    first = parser.options([word for word in words if word not in helping], later)
    first.helps = bool(helping)
    return first


def _second_look(parser: Parser, words: list[str], *records: Any) -> argparse.Namespace:
    """All options, with the fields of the records among them; prints the help where it was asked for."""
    for record in filter(None, records):
        title = (type(record).__doc__ or "").splitlines()[0].rstrip(".")
        add_fields(parser.add_argument_group(title), record)
    return parser.options(words)


def _asked_for(environment: str, options: argparse.Namespace) -> str:
    """The environment's name, with the options that were given."""
    from optimist import envs

    usual = envs.options_of(environment) if environment else None
    return envs.named(environment, with_options(usual, options)) if usual else environment


def _demand(value: Any, remedy: str) -> None:
    if value is None:
        raise UsageError(remedy)


def agent_lines() -> str:
    """Every agent with its one line."""
    from optimist import agents

    lines = [(name, (agents.agent_class(name).__doc__ or "").splitlines()[0]) for name in agents.available()]
    return "agents:\n" + "\n".join(f"  {name:8} {line}" for name, line in lines)
