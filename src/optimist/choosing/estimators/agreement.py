"""Agreement: how often the seeds of a run choose the same action at the same step."""

from collections.abc import Sequence

import numpy as np

from optimist.choosing.analysis import Analysis
from optimist.data.transition import Spec


class Agreement:
    about = "how often the seeds of a run choose the same action"
    needs = "several seeds on one log"

    def scores(self, analysis: Analysis) -> np.ndarray:
        groups = [(each.source, each.step, each.log) for each in analysis.candidates]
        return agreement([said.action for said in analysis.held], groups, _reach(analysis.evidence.spec))


def _reach(spec: Spec) -> np.ndarray | None:
    """Half the width of the box of action vectors."""
    if spec.discrete:
        return None
    return np.maximum((np.array(spec.action_high) - np.array(spec.action_low)) / 2, 1e-9)


def agreement(
    actions: Sequence[np.ndarray], groups: Sequence[object], reach: np.ndarray | None
) -> np.ndarray:
    """For each candidate the mean over the other candidates of its group, (C,): the share of equal discrete
    actions, or one minus the mean distance of vectors in units of `reach`. NaN for a group of one."""
    shares = np.full(len(actions), np.nan)
    members = dict[object, list[int]]()
    for number, group in enumerate(groups):
        members.setdefault(group, []).append(number)
    for mine in members.values():
        for one in mine:
            others = [_alike(actions[one], actions[other], reach) for other in mine if other != one]
            shares[one] = np.mean(others) if others else np.nan
    return shares


def _alike(one: np.ndarray, other: np.ndarray, reach: np.ndarray | None) -> float:
    if reach is None:
        return float(np.mean(one == other))
    return float(1 - np.mean(np.abs(one - other) / reach))
