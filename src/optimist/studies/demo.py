"""The study `demo` of the catalogue at any size: record play, learn from the log alone, report."""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, NamedTuple

from optimist.errors import UsageError
from optimist.studies import study_file
from optimist.studies.engines import find
from optimist.studies.perform import perform_study
from optimist.studies.plan import WHOLE, Study
from optimist.studies.results.logs import read_logs
from optimist.studies.scores.curves import curves, sheet
from optimist.studies.sheet import Sheet


@dataclass(frozen=True)
class Demo:
    """The size of the demo; the defaults take minutes on two cores."""

    environment: Annotated[str, "the game"] = "minatar_jax/breakout"
    online_steps: Annotated[int, "agent steps to log"] = 80_000
    offline_steps: Annotated[int, "gradient steps of each agent"] = 6_000
    evaluations: Annotated[int, "evaluations of each agent"] = 10
    episodes: Annotated[int, "full episodes per evaluation and seed"] = 20
    seeds: Annotated[int, "seeds of each agent"] = 3

    def __post_init__(self):
        for name in ("online_steps", "offline_steps", "evaluations", "episodes", "seeds"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}: it must be 1 or more")
        if self.offline_steps % self.evaluations:
            raise UsageError(f"{self.offline_steps} steps do not divide into {self.evaluations} evaluations")

    def study(self) -> Study:
        """The study of the catalogue with these sizes; warm-up and epsilon decay follow the log's length."""
        usual, steps = study_file.load("demo"), self.online_steps
        assert usual.collect is not None
        usual_play = usual.collect["settings"]
        play = {
            "steps": steps,
            "warm_up": min(usual_play["warm_up"], steps // 10),
            "epsilon_decay": steps // 3,
        }
        every = self.offline_steps // self.evaluations
        return replace(
            usual,
            title=f"Learning {self.environment} from logged play",
            environments=study_file.environments("demo", [self.environment]),
            seeds=self.seeds,
            collect={**usual.collect, "settings": play},
            training={"steps": self.offline_steps, "evaluate_every": every, "episodes": self.episodes},
        )

    def command(self, out: Path) -> str:
        changed = [field.name for field in fields(self) if getattr(self, field.name) != field.default]
        words = [f"--{name.replace('_', '-')} {getattr(self, name)}" for name in changed]
        return " ".join(["optimist demo", f"--out {out}", *words])


class Outcome(NamedTuple):
    """The path of the page, and a table of the scores."""

    report: Path
    scores: Sheet


def run_demo(out: Path, demo: Demo) -> Outcome:
    """Run everything in one folder; the same call again continues after a stop."""
    study = demo.study()
    jobs = study.jobs()
    engine = find("local")
    written, _ = perform_study(study, jobs, out, engine, engine.Options(), command=demo.command(out))
    runs = {job.label: curves(job.run_folder(out)) for job in jobs if job.label}
    (log,) = read_logs(jobs, out).values()
    levels = {
        "best policy in the data": log.best.get(WHOLE),
        "average behaviour": log.average.get(WHOLE),
    }
    return Outcome(written[0], sheet(runs, levels))
