"""The losses of a run on episodes that it does not learn from."""

from collections.abc import Sequence
from functools import partial

import jax
import numpy as np

from optimist.data.sampling import Sampler, transitions
from optimist.training.learner import Learner, TrainState

KEY = 1  # of the random draws in the losses, the same at every log
STEP = 2**40  # a step that no training reaches; the batch is the one of this step


class HeldOut:
    """A fixed batch of held-back transitions for each seed. Computing its losses changes nothing else."""

    def __init__(self, learner: Learner, samplers: Sequence[Sampler]):
        self._learner = learner
        batches = [
            transitions(each, each.positions(STEP, 1)[0], each.dataset.timeline.frames) for each in samplers
        ]
        self._batch = jax.tree.map(lambda *columns: np.stack(columns), *batches)
        self._seeds = len(samplers)

    def rows(self, state: TrainState) -> list[dict[str, float]]:
        """The loss of each objective, by its name in the logs, for each seed."""
        found = _losses(self._learner, self._seeds, state.params, state.targets, self._batch)
        columns = {f"held_out_loss_{name}": np.asarray(values) for name, values in found.items()}
        return [{name: float(values[i]) for name, values in columns.items()} for i in range(self._seeds)]


@partial(jax.jit, static_argnames=("learner", "seeds"))
def _losses(learner: Learner, seeds: int, params: dict, targets: dict, batch) -> dict:
    """(S,) for each objective."""
    key = jax.random.PRNGKey(KEY)

    def of_seed(params, targets, batch):
        return learner.losses(params, targets, batch, key)

    return jax.vmap(of_seed, axis_size=seeds)(params, targets, batch)
