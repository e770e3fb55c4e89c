"""`optimist evaluate`, `play`, `select`, `export`, `report`, `run push` and `run pull`."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from optimist import api
from optimist.api import Allow, Step
from optimist.errors import RunError, StorageError, UndecidedError, UsageError, command_line

if TYPE_CHECKING:
    from optimist.studies.sheet import Sheet
    from optimist.training.run import Run

BETWEEN_LOOKS = 1.0  # seconds
SHOWN = 10  # rows of the printed ranking
RunFolder = Annotated[Path, "a run's folder", "RUN"]
Environment = Annotated[str, "where to play [the data's environment]", "ENV"]
Seed = Annotated[int | None, "which seed's policy [the first]"]
Repository = Annotated[str, "its name on the Hub, user/name", "USER/NAME"]
log = logging.getLogger("optimist")


def evaluate(
    run: RunFolder,
    *,
    step: Step = "last",
    follow: Annotated[
        bool, "score every kept policy, also of a run that still trains, until it is done"
    ] = False,
    episodes: Annotated[int | None, "episodes per seed [100]"] = None,
    steps: Annotated[
        int | None, "instead of --episodes: full episodes until this many steps [125_000 for Atari]"
    ] = None,
    epsilon: Annotated[float | None, "share of random actions [0.001; 0 for action vectors]"] = None,
    environment: Environment = "",
    out: Annotated[
        Path | None,
        "one row per episode [RUN/evaluation.csv; for another policy than the last evaluation-STEP.csv; with "
        "--follow evaluation-kept.csv]",
        "CSV",
    ] = None,
    allow: Allow = (),
) -> None:
    """Score every seed of a run in full episodes."""
    from optimist.studies.sheet import print_sheet
    from optimist.training.evaluation import mean_scores
    from optimist.training.run import load_run

    if follow:
        rows = list[Any]()
        for kept in _kept_steps(run, step):
            scores = _scores(load_run(run, allow, kept), episodes, steps, epsilon, environment)
            rows += scores
            means, file = mean_scores(scores), _written(rows, out, run / "evaluation-kept.csv")
            each = ", ".join(f"seed {seed}: {mean:.2f}" for seed, mean in means.items())
            average = sum(means.values()) / len(means)
            where = f", in {file}" if file else ""
            print(f"step {kept:,}: average return {average:.2f} ({each}){where}", flush=True)
        return
    loaded = load_run(run, allow, step)
    rows = _scores(loaded, episodes, steps, epsilon, environment)
    print_sheet(_evaluation_table(loaded.step, rows))
    name = "evaluation.csv" if step == "last" else f"evaluation-{loaded.step}.csv"
    if file := _written(rows, out, run / name):
        print(f"every episode is in {file}")


def _evaluation_table(step: int, rows: list[Any]) -> "Sheet":
    import numpy as np

    from optimist.studies.sheet import Sheet, number

    heads = ("seed", "episodes", "average return", "worst", "best", "average length")
    shown, means = list[list[Any]](), list[float]()
    for seed in dict.fromkeys(row.seed for row in rows):
        mine = [row for row in rows if row.seed == seed]
        scores, length = [row.score for row in mine], np.mean([row.length for row in mine])
        means.append(float(np.mean(scores)))
        worst, best = number(min(scores)), number(max(scores))
        shown.append([str(seed), len(mine), f"{means[-1]:.2f}", worst, best, f"{length:.0f}"])
    if len(means) > 1:
        together = f"{np.mean(means):.2f} ± {np.std(means, ddof=1):.2f}"
        shown.append(["all", len(rows), together, "", "", ""])
    return Sheet(f"after {step:,} steps", heads, shown)


def _kept_steps(run: Path, step: str | int) -> Iterator[int]:
    """The steps of the policies that the run keeps, as it keeps them, until it is done."""
    from optimist.training.storage.checkpoint import kept_steps
    from optimist.training.storage.run_folder import is_done, refuse_unless_run

    if step != "last":
        raise UsageError("--follow scores every kept policy: leave out --step")
    refuse_unless_run(run)
    seen, done = set[int](), False
    while not done:
        done = is_done(run)  # asked first: the last policy is kept before the run is done
        new = sorted(set(kept_steps(run)) - seen)
        yield from new
        seen.update(new)
        time.sleep(0 if done or new else BETWEEN_LOOKS)
    if not seen:
        raise RunError(f"{run} kept no policy: train with --keep-policies above 0")


def _scores(
    run: "Run", episodes: int | None, steps: int | None, epsilon: float | None, environment: str
) -> list[Any]:
    """One row for each episode; what is not given is as in the recipe of this kind of environment."""
    from optimist.training.resolve import recipe_for

    usual = recipe_for(run.learner.spec).training
    usual_steps = usual.evaluation_steps if episodes is None else None
    return run.evaluate(
        episodes=100 if episodes is None else episodes,
        epsilon=usual.evaluation_epsilon if epsilon is None else epsilon,
        environment=environment,
        steps=usual_steps if steps is None else steps,
    )


def _written(rows: list[Any], out: Path | None, usual: Path) -> Path | None:
    """The file of the episodes; None if it was not asked for and cannot be written."""
    from optimist.training.storage.rows import write_episodes

    try:
        write_episodes(out or usual, rows)
    except (OSError, StorageError) as problem:
        if out:
            raise
        log.warning("the episodes were not saved (%s): name another file with --out CSV", problem)
        return None
    return out or usual


def play(
    run: RunFolder,
    *,
    step: Step = "last",
    environment: Environment = "",
    out: Annotated[Path, "a .gif or .mp4 file", "FILM"] = Path("video.gif"),
    seed: Seed = None,
    frames: Annotated[int, "frames in the film"] = 400,
    fps: Annotated[int, "frames per second"] = 15,
    allow: Allow = (),
) -> None:
    """Film a trained policy as an animated GIF or an MP4."""
    from optimist.training.play.video import check_film, write_film
    from optimist.training.run import load_run

    check_film(out)
    pictures = load_run(run, allow, step).pictures(seed, frames, environment=environment)
    write_film(out, pictures, fps)
    print(f"wrote {out}")


def select(*, out: Path | None = None, **words: Any) -> None:
    """Choose a policy, and print the ranking; UndecidedError if none is chosen."""
    from optimist.studies.report.selection_report import ranking_sheet
    from optimist.studies.sheet import print_sheet

    selection = api.select(out=out, **words)
    print(selection.answer)
    print_sheet(ranking_sheet(selection, SHOWN))
    if out:
        print(f"wrote {out / 'selection.html'}")
    if selection.chosen is None:
        first = f"--anyway chooses {selection.ranking[0].name}"
        clone = command_line("train", "behaviour_cloning", selection.facts["data"])
        raise UndecidedError(f"no policy was chosen; to clone today's: {clone}; {first}")
    line = command_line("export", selection.chosen.run, "--step", "chosen", "--to", "policy.onnx")
    print(f"chosen: {selection.chosen.name}; to ship it: {line}")


def export(**words: Any) -> None:
    """Export, and print what was compared."""
    print(*api.export(**words).lines(), sep="\n")


def report(
    run: RunFolder,
    *,
    out: Annotated[Path | None, "the page, an HTML file [RUN/report.html]", "PAGE"] = None,
    command: str,
) -> None:
    """Write one page about a run: its curves, with or without an environment, and its warnings."""
    page = out or run / "report.html"
    if page.is_dir():
        raise UsageError(f"{page} is a folder: name a file, as in --out {page / 'page.html'}")
    if not (run / "config.toml").exists():
        if (run / "manifest.json").exists():
            line = command_line("data", "report", run, "--out", "page.html")
            raise UsageError(f"{run} is a dataset, not a run: {line}")
        if (run / "study.json").exists():
            raise UsageError(f"{run} is a study, not a run: {command_line('study', 'report', run)}")
    from optimist.studies.report.run_report import write_run_report

    warned = write_run_report(run, page, command=command)
    print(f"wrote {page}")
    for each in warned:
        print(f"warning: {each}")


def push(
    run: RunFolder,
    repository: Repository,
    *,
    private: Annotated[bool, "only you may see it"] = False,
    checkpoints: Annotated[bool, "send those too: others can then continue it"] = False,
) -> None:
    """Send a run to the Hugging Face Hub: its settings, results and policies, with a card."""
    from optimist.data import hub
    from optimist.training.storage.checkpoint import kept_steps
    from optimist.training.storage.run_folder import read_config

    if not (run / "config.toml").exists():
        raise RunError(f"{run} is not a run: it has no config.toml; name the --out of a run")
    if not checkpoints and not kept_steps(run):
        raise RunError(f"{run} keeps no policies, so nobody could use it: add --checkpoints")
    config = read_config(run)
    facts = {
        "agent": config.get("agent", {}).get("name"),
        "environment": config.get("environment"),
        "seeds": ", ".join(map(str, config.get("seeds", []))),
        "steps": config.get("training", {}).get("steps"),
        "dataset": config.get("dataset", {}).get("fingerprint"),
    }
    if config.get("dataset", {}).get("masks"):
        facts["allowed actions"] = "each call of its policies takes a mask of them"
    address = hub.push_run(run, repository, facts, private=private, checkpoints=checkpoints)
    print(f"sent {run} to {address}")


def pull(repository: Repository, *, out: Annotated[Path, "the run's folder", "RUN"]) -> None:
    """Bring a run from the Hugging Face Hub."""
    from optimist.data import hub
    from optimist.training.storage.run_folder import read_config

    hub.pull_run(repository, out)
    use = hub.use_of_run(out, read_config(out).get("environment"))
    print(f"{repository} is in {out}; see {use}")
