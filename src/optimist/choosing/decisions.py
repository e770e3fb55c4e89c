"""The actions of each frozen policy at every logged state, computed once before the fitting."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from optimist.choosing.candidates import Candidate, Source
from optimist.choosing.evidence import Evidence, Steps
from optimist.training.learner import Learner
from optimist.training.play.acting import POLICY


class Answers(NamedTuple):
    """A candidate's actions at every transition of its log, (n,) each."""

    action: Any
    next_action: Any  # in the next observation


def answers(
    evidence: Evidence, sources: Sequence[Source], candidates: Sequence[Candidate], steps: Steps
) -> list[Answers]:
    """The answers of every candidate on its own log. `steps` are those of one view of each log."""
    found: dict[Candidate, Answers] = {}
    log_of = dict(zip(candidates, evidence.whose.tolist(), strict=True))
    for number, source in enumerate(sources):
        for step in source.run.kept:
            params = source.params(step)
            mine = [each for each in candidates if (each.source, each.step) == (number, step)]
            for log in sorted({log_of[each] for each in mine}):
                here = [each for each in mine if log_of[each] == log]
                rows = jnp.array([source.run.seeds.index(each.seed) for each in here])
                chosen = jax.tree.map(lambda leaf, rows=rows: leaf[rows], params)
                said = _on_log(source.run.learner, chosen, steps, log)
                found |= {each: Answers(*(c[i] for c in said)) for i, each in enumerate(here)}
    return [found[each] for each in candidates]


def _on_log(learner: Learner, params: dict, steps: Steps, log: int) -> Answers:
    """The answers of several policies of one run, (S, n)."""
    parts = []
    for inside, place in steps.chunks(log):
        positions = jnp.asarray(steps.begins[log] + inside)
        said = _answers(learner, params, steps.feed.minibatch, steps.feed.resident, positions)
        parts.append([np.asarray(column)[:, : place.stop - place.start] for column in said])
    return Answers(*(np.concatenate(columns, axis=1) for columns in zip(*parts, strict=True)))


@partial(jax.jit, static_argnames=("learner", "minibatch"))
def _answers(learner: Learner, params: dict, minibatch, resident, positions) -> Answers:
    batch, key = minibatch(resident, positions), jax.random.PRNGKey(POLICY)

    def of_step(params, step):
        return Answers(
            action=learner.action(params, step.observation, key, step.allowed),
            next_action=learner.action(params, step.next_observation, key, step.next_allowed),
        )

    def of_seed(params):
        return jax.vmap(partial(of_step, params))(batch)

    return jax.vmap(of_seed)(params)
