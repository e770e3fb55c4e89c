"""The policies that a run keeps: the parameters of every seed at its evaluations.

Checkpoints are for continuing, and only the newest are kept. Policies are for choosing: the last one is
often not the best.
"""

import logging
import math
from pathlib import Path
from typing import Any

import jax

from optimist.data.disk.files import remove
from optimist.errors import RunError, did_you_mean
from optimist.training.storage import checkpoint

NAME = "policies"  # the folder in a run's folder
MOST = 1000  # policies of a run, however small they are
AT_MOST = f"at most {MOST:,} policies are kept"
log = logging.getLogger("optimist")


class Policies:
    """Keeps the policies of one run. If those of all evaluations need more than `keep_policies` GiB, every
    n-th is kept, for the smallest n that fits, and the last. So an interrupted run keeps the same ones."""

    def __init__(self, run: Path, settings: Any, params: Any, fingerprint: str = ""):
        self._folder, self._settings, self._fingerprint = run / NAME, settings, fingerprint
        size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(params))
        evaluations = math.ceil(settings.steps / settings.evaluate_every) if settings.evaluate_every else 0
        room = min(MOST, int(settings.keep_policies * 2**30 / max(size, 1)))
        self._nth = math.ceil(evaluations / (room - 1)) if room > 1 else 0  # one place is for the last
        if settings.keep_policies and evaluations and self._nth != 1:
            kept = f"one of {self._nth} evaluations" if self._nth else "no evaluation"
            taken = (
                f"a policy takes {size / 2**20:.1f} MiB and {settings.keep_policies:g} GiB are for policies"
            )
            limit, remedy = (taken, "; for more: --keep-policies GIB") if room < MOST else (AT_MOST, "")
            log.warning("%s: that of %s is kept%s", limit, kept, remedy)

    def _wanted(self, step: int) -> bool:
        number = step // self._settings.evaluate_every
        return number % self._nth == 0 or step >= self._settings.steps

    def keep(self, step: int, params: Any) -> None:
        """Write the policy of this evaluation if it is one of those to keep."""
        if self._nth and self._wanted(step):
            checkpoint.write(self._folder, step, params, self._fingerprint)

    def rewind(self, step: int) -> None:
        """Remove the policies after this step, which come again, and those that no longer fit because the run
        was made longer."""
        if self._nth:
            paths = {path: checkpoint.step_of(path) for path in checkpoint.newest_first(self._folder)}
            remove(*(path for path, at in paths.items() if at > step or not self._wanted(at)))


def kept_steps(run: Path) -> list[int]:
    """The steps whose policies are kept, in order."""
    return sorted({checkpoint.step_of(path) for path in checkpoint.newest_first(run / NAME)} - {-1})


def load_policy(run: Path, step: int, like: Any, fingerprint: str = "") -> Any:
    """The parameters of every seed at this step."""
    paths = [path for path in checkpoint.newest_first(run / NAME) if checkpoint.step_of(path) == step]
    found = checkpoint.load_first(paths, like, fingerprint)
    if found is None:
        known = [str(each) for each in kept_steps(run)]
        raise RunError(f"{run} keeps no policy of step {step:,}: {did_you_mean(str(step), known)}")
    return found[1]
