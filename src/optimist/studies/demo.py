"""The whole path in minutes: play and log, learn from the log alone, show how well it worked."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from optimist.data.card import card
from optimist.data.dataset import Dataset
from optimist.data.disk.files import write_whole
from optimist.errors import UsageError
from optimist.studies.report.figures import learning_curves, save_png
from optimist.studies.report.report import write_report
from optimist.studies.scores.curves import Summary, scores, summary
from optimist.training.offline import OfflineTraining
from optimist.training.online import OnlineTraining
from optimist.training.play.video import gif_bytes
from optimist.training.progress import console
from optimist.training.resolve import resolve_collection, resolve_training
from optimist.training.run import load_run

AGENTS = {"DQN": "dqn", "QR-DQN": "qr_dqn", "REM": "rem"}
# A demo trains a sixteenth as long as the scale it borrows from, so it learns in larger steps.
SCALE, OPTIONS = "small", {"optimizer.learning_rate": 1e-3, "target_period": 100}


@dataclass(frozen=True)
class Demo:
    """How much the demo plays and learns; made to end within minutes on two cores."""

    environment: Annotated[str, "the game"] = "minatar/breakout"
    online_steps: Annotated[int, "agent steps to log"] = 80_000
    offline_steps: Annotated[int, "gradient steps of each agent"] = 6_000
    evaluations: Annotated[int, "evaluations of each agent"] = 10
    episodes: Annotated[int, "full episodes per evaluation and seed"] = 20
    seeds: Annotated[int, "seeds of each agent"] = 3

    def __post_init__(self):
        for name in ("online_steps", "offline_steps", "evaluations", "episodes", "seeds"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}: it is a whole number from 1 upwards")
        if self.offline_steps % self.evaluations:
            raise UsageError(f"{self.offline_steps} steps do not divide into {self.evaluations} evaluations")


@dataclass(frozen=True)
class Outcome:
    """What the demo found, and where the page is."""

    report: Path
    summaries: dict[str, Summary]
    card: dict


def run_demo(out: Path, demo: Demo) -> Outcome:
    """Everything, into one folder; the same call again goes on where it stopped."""
    player = resolve_collection(None, scale=SCALE, options=OPTIONS, settings=_pace(demo))
    play = OnlineTraining(player.agent, demo.environment, player.settings, out=out / "data")
    console.print(f"[bold]1[/] an online DQN plays {demo.environment}; every step is logged")
    play.run()
    dataset = Dataset.open(out / "data")
    console.print(f"[bold]2[/] {', '.join(AGENTS)} learn from the log alone, {demo.seeds} seeds each")
    runs = {label: _trained(out / name, name, dataset, demo) for label, name in AGENTS.items()}
    console.print("[bold]3[/] the report")
    facts = card(dataset)
    video = gif_bytes(load_run(runs["REM"]).pictures(frames=300))
    write_whole(out / "rem.gif", video)
    lines = {"best": facts["best_policy_return"], "average": facts["return_mean"]}
    save_png(learning_curves(runs, **lines), out / "curves.png")
    write_report(
        out / "report.html",
        title=f"Learning {demo.environment} from logged play",
        runs=runs,
        card=facts,
        video_gif=video,
        versions=json.loads((runs["REM"] / "versions.json").read_text()),
        commands=_commands(demo),
    )
    return Outcome(out / "report.html", {label: summary(scores(run)) for label, run in runs.items()}, facts)


def _pace(demo: Demo) -> dict[str, int]:
    """How the player's settings differ from the scale's, whose decay would outlast so short a log."""
    usual = resolve_collection(None, scale=SCALE).settings.warm_up
    steps = demo.online_steps
    return {"steps": steps, "warm_up": min(usual, steps // 10), "epsilon_decay": steps // 3}


def _length(demo: Demo) -> dict[str, int]:
    every = demo.offline_steps // demo.evaluations
    return {"steps": demo.offline_steps, "evaluate_every": every, "episodes": demo.episodes}


def _trained(path: Path, agent: str, dataset: Dataset, demo: Demo) -> Path:
    asked = resolve_training(None, agent, scale=SCALE, options=OPTIONS, settings=_length(demo))
    OfflineTraining(
        asked.agent,
        dataset,
        asked.settings,
        out=path,
        seeds=tuple(range(demo.seeds)),
        environment=demo.environment,
    ).run()
    return path


def _commands(demo: Demo) -> list[str]:
    """The same by hand."""
    learning, pace, length = _words(OPTIONS), _words(_pace(demo)), _words(_length(demo))
    seeds = ",".join(map(str, range(demo.seeds)))
    return [
        f"optimist collect {demo.environment} {pace} {learning} --out data",
        *(
            f"optimist train {name} data --out {name} {length} {learning} --seeds {seeds}"
            for name in AGENTS.values()
        ),
        "optimist play rem --out rem.gif",
    ]


def _words(values: Mapping[str, Any]) -> str:
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in values.items())
