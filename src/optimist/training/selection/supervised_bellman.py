"""Supervised Bellman Validation: the Bellman error of a candidate's own values on held-out steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from optimist.training.selection.decisions import Answers
from optimist.training.selection.evidence import Evidence, Steps, stacked_on_device
from optimist.training.selection.regression import Critic, batch_size, fitted


@dataclass(frozen=True)
class Backup:
    """A network that is fitted to a candidate's targets, r + discount * V(s'): its mean is the backup."""

    critic: Critic

    def init(self, key) -> Any:
        return self.critic.init(key)

    def loss(self, params, targets, step, own) -> Any:
        """`own` is the candidate's target of this transition."""
        return ((own - self.critic(params, step.observation, step.action)) ** 2)[0]


def bellman_errors(
    evidence: Evidence,
    learned: Sequence[Answers],
    held: Sequence[Answers],
    held_steps: Steps,
    rewards: Sequence[tuple[np.ndarray, np.ndarray]],
    scales: Sequence[float],
    updates: int,
) -> np.ndarray:
    """The root mean squared difference between a candidate's values and the fitted backup of its values, on
    held-out steps, (C,), in the unit of the log's rewards (Zitovsky et al. 2023, algorithm 1).

    `rewards` are reward and discount of every learned step as the candidate's run trained on them; `scales`
    are the factors of its rewards. NaN for agents without values of actions."""
    known = [bool(np.isfinite(each.logged_value).all()) for each in held]
    targets = [
        (reward + discount * each.next_estimate if has else np.zeros(len(each.next_estimate)))
        for each, (reward, discount), has in zip(learned, rewards, known, strict=True)
    ]
    units = [float(target.std()) or 1.0 for target in targets]
    centres = [float(target.mean()) for target in targets]
    steps = Steps([log.learned for log in evidence.logs], evidence.rewards, batch_size(evidence.spec))
    critic = Critic(evidence.spec, evidence.inputs)
    own = stacked_on_device(
        [
            ((target - centre) / unit).astype(np.float32)
            for target, centre, unit in zip(targets, centres, units, strict=True)
        ]
    )
    title = f"Bellman errors of {len(learned)} policies"
    params = fitted(Backup(critic), steps, evidence.whose, own, updates, title)
    errors = np.full(len(held), np.nan)
    for number, log in enumerate(evidence.whose.tolist()):
        if known[number]:
            mine = jax.tree.map(lambda leaf, number=number: leaf[number], params)
            backup = centres[number] + units[number] * _backups(critic, mine, held_steps, log)
            errors[number] = root_mean_square(held[number].logged_value - backup) / scales[number]
    return errors


def root_mean_square(differences: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(differences, dtype=float))))


def _backups(critic: Critic, params: Any, steps: Steps, log: int) -> np.ndarray:
    """The fitted backup of every held-out step of a log."""
    parts = []
    for inside, place in steps.chunks(log):
        positions = jnp.asarray(steps.begins[log] + inside)
        found = _values(critic, params, steps.feed.minibatch, steps.feed.resident, positions)
        parts.append(np.asarray(found)[: place.stop - place.start])
    return np.concatenate(parts)


@partial(jax.jit, static_argnames=("critic", "minibatch"))
def _values(critic: Critic, params, minibatch, resident, positions):
    batch = minibatch(resident, positions)
    return jax.vmap(partial(critic, params))(batch.observation, batch.action)[:, 0]
