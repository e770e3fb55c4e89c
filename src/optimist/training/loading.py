"""Which policy of a run folder, finished or not, becomes a run in hand."""

import logging
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from optimist import plugins
from optimist.agents import from_description
from optimist.data.disk.manifest import spec_from
from optimist.data.machine import with_home
from optimist.data.transition import whole_number
from optimist.errors import RunError, UsageError, in_one_line, some_of
from optimist.training.guard import FREEZE, NEVER, health_like, where
from optimist.training.inputs import Inputs
from optimist.training.learner import Learner, TrainState
from optimist.training.run import OWN_PLAY, Run, mean_returns
from optimist.training.storage import checkpoint
from optimist.training.storage.alarms import read_alarms
from optimist.training.storage.configuration import fingerprint
from optimist.training.storage.policies import kept_steps, load_policy
from optimist.training.storage.run_folder import read_config, read_episodes
from optimist.training.storage.selected import chosen_policy

log = logging.getLogger("optimist")


def load_run(path: str | Path, allow: Iterable[str] = (), step: int | str = "last") -> Run:
    """The run in this folder with the policies of one step.

    "last" is the newest undamaged checkpoint, or the last kept policy if the folder came without checkpoints.
    A number is any step whose policy was kept. "best" is the evaluation with the highest mean return over the
    seeds. "healthy" is "last", but a seed that diverged has its last policy before that. "chosen" is the one
    policy that `optimist select` chose; the run then has only the seed of that policy.

    The modules in `allow` are imported first. Any other module that the folder names must be a plug-in or
    imported already."""
    path = Path(with_home(path))
    plugins.allow(allow)
    config = read_config(path)
    try:
        learner = learner_of(config)
        seeds, environment = tuple(config["seeds"]), config["environment"]
        source = config.get("dataset", {})
        data, masked = source.get("path", OWN_PLAY), bool(source.get("masks") or config.get("masks"))
        shapes, settings = learner.shapes(seeds), fingerprint(config)
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as problem:
        raise RunError(
            f"{path / 'config.toml'} is not the configuration of a run ({in_one_line(problem)})"
        ) from problem
    seed = None  # of the only policy, if the step has one
    if step in ("last", "healthy"):
        at, params = _newest(path, config, learner, healthy=step == "healthy")
    else:
        if step == "chosen":
            at, seed = chosen_policy(path, settings)
        else:
            at = _best_step(path) if step == "best" else _number(step)
        params = load_policy(path, at, shapes.params, settings)
    run = Run(path, learner, environment, seeds, at, params, data, masked)
    return run if seed is None else run.alone(seed)


def _newest(path: Path, config: dict, learner: Learner, *, healthy: bool) -> tuple[int, dict]:
    """The step and the parameters of the newest undamaged checkpoint, or of the last kept policy."""
    seeds, settings = tuple(config["seeds"]), fingerprint(config)
    shapes = learner.shapes(seeds)
    found = checkpoint.load_state(path / "checkpoints", shapes, settings)
    if found is None and not healthy and (kept := kept_steps(path)):
        log.warning(
            "%s has no checkpoint: the last policy that it keeps is of step %s", path, f"{kept[-1]:,}"
        )
        return kept[-1], load_policy(path, kept[-1], shapes.params, settings)
    if found is None:
        raise RunError(f"{path} has no checkpoint yet: train it first")
    if healthy:
        return _healthy(path, learner, seeds, *found)
    step, state = found
    _warn_of_divergence(path, config, step)
    return step, state.params


def _warn_of_divergence(path: Path, config: dict, step: int) -> None:
    """The last policy of a seed that diverged is seldom the one that people want."""
    try:
        diverged = [f"seed {seed} at step {alarm.step:,}" for seed, alarm in read_alarms(path).items()]
    except RunError as problem:
        log.warning("%s", problem)
        return
    training = config.get("training")
    frozen = isinstance(training, dict) and training.get("on_divergence") == FREEZE  # then they are healthy
    if diverged and not frozen:
        log.warning(
            "%s: values diverged in %s, and this is the policy of step %s: --step healthy takes the last one "
            "before that",
            path,
            some_of(diverged, 3),
            f"{step:,}",
        )


def learner_of(config: dict) -> Learner:
    """The learner of a run with this configuration."""
    agent, spec = from_description(config["agent"]), spec_from(config["spec"])
    return Learner(agent, spec, Inputs.from_config(config.get("inputs"), spec))


def _number(step: int | str) -> int:
    text = step.replace("_", "") if isinstance(step, str) else str(whole_number("step", step))
    if not text.isdecimal():
        raise UsageError(f'step is "{step}": give a number, "last", "best", "healthy" or "chosen"')
    return int(text)


def _healthy(
    path: Path, learner: Learner, seeds: tuple[int, ...], step: int, state: TrainState
) -> tuple[int, dict]:
    """The parameters of the newest checkpoint, of diverged seeds those of their last healthy look; and the
    earliest step of these policies."""
    health = checkpoint.load_health(path / "checkpoints", step, health_like(learner, seeds))
    if health is None or (calm := np.asarray(health.alarm) == NEVER).all():
        return step, state.params
    steps = np.where(calm, step, health.step)
    told = ", ".join(f"seed {seed} of step {at:,}" for seed, at in zip(seeds, steps.tolist(), strict=True))
    log.warning("%s: healthy policies: %s", path, told)
    return int(steps.min()), where(calm, state.params, health.params)


def _best_step(path: Path) -> int:
    """The kept step with the best evaluation."""
    scores, kept = mean_returns(read_episodes(path)), set(kept_steps(path))
    known = {step: score for step, score in scores.items() if step in kept}
    if not known:
        reason = "keeps no policy of an evaluation" if scores else "was never evaluated"
        raise RunError(f'{path} {reason}, so it has no "best" step: name a step, or "last"')
    best = max(known, key=lambda step: known[step])
    log.warning(
        "%s: step %s is the best of %s evaluations by the mean return over the seeds; it was chosen by "
        "playing, so those scores are too high",
        path,
        f"{best:,}",
        len(known),
    )
    return best
