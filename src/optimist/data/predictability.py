"""How well the logged action is predicted from the observation: a measure of how narrow a log is."""

import numpy as np

from optimist.data.transition import Spec

FEWEST_STEPS, FEWEST_EPISODES = 200, 5  # with fewer there is no honest held-out figure
HELD_OUT = 5  # every fifth episode
RAW, RANDOM = 256, 256  # the most features as they are, and random ones of them
PROJECTED = 4096  # the most inputs of a random feature
MOST_CLASSES = 64  # the most frequent actions; any other counts as not predicted
PENALTIES = (1e-3, 1e-1)  # of the ridge, per row


def predictability(
    observations: np.ndarray, actions: np.ndarray, episodes: np.ndarray, spec: Spec
) -> float | None:
    """The share of held-out actions that a ridge classifier predicts, or for action vectors the share of
    their variance that a ridge regression explains. The regressors are the observation and random ReLU
    features of it. Whole episodes are held out. None if there is too little to tell."""
    _, number = np.unique(episodes, return_inverse=True)
    if len(number) < FEWEST_STEPS or number.max() + 1 < FEWEST_EPISODES:
        return None
    held = np.random.default_rng(0).permutation(number.max() + 1)[number] % HELD_OUT == 0
    inputs = _features(observations.reshape(len(observations), -1), ~held)
    if not spec.discrete:
        return _explained(inputs, actions, held)
    kinds, counts = np.unique(actions[~held], return_counts=True)
    frequent = kinds[np.argsort(-counts, kind="stable")[:MOST_CLASSES]]
    targets = (actions[:, None] == frequent).astype(np.float32)
    guesses = [frequent[each.argmax(axis=1)] for each in _fitted(inputs, targets, held)]
    return max(float((guess == actions[held]).mean()) for guess in guesses)


def _explained(inputs: np.ndarray, actions: np.ndarray, held: np.ndarray) -> float | None:
    """The mean over the dimensions that vary of the explained share of the variance, at least 0."""
    error_of_mean = ((actions[held] - actions[~held].mean(axis=0)) ** 2).mean(axis=0)
    varies = error_of_mean > 0
    if not varies.any():
        return None
    fits = _fitted(inputs, actions, held)
    errors = [((fit - actions[held]) ** 2).mean(axis=0)[varies] for fit in fits]
    return max(float(np.clip(1 - error / error_of_mean[varies], 0, 1).mean()) for error in errors)


def _features(rows: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Standardised observations and random ReLU features of them, (n, d), with a column of ones."""
    random = np.random.default_rng(0)
    varying = np.flatnonzero((rows[kept] != rows[kept][0]).any(axis=0))
    if len(varying) > PROJECTED:
        varying = np.sort(random.choice(varying, PROJECTED, replace=False))
    chosen = rows[:, varying].astype(np.float32)
    spread = chosen[kept].std(axis=0)
    scaled = np.clip((chosen - chosen[kept].mean(axis=0)) / np.where(spread > 0, spread, 1), -10, 10)
    width = min(RANDOM, len(rows) // 8)
    weights = random.normal(size=(len(varying), width)).astype(np.float32) / max(1, len(varying)) ** 0.5
    hidden = np.maximum(scaled @ weights + random.uniform(-1, 1, width).astype(np.float32), 0)
    shown = random.permutation(len(varying))[:RAW]
    return np.concatenate([np.ones((len(rows), 1), np.float32), scaled[:, shown], hidden], axis=1)


def _fitted(inputs: np.ndarray, targets: np.ndarray, held: np.ndarray) -> list[np.ndarray]:
    """The held-out predictions of a ridge regression for each penalty."""
    known = inputs[~held]
    gram, moment = known.T @ known, known.T @ targets[~held]
    gram, ridge = gram.astype(np.float64), len(known) * np.eye(len(gram))
    return [inputs[held] @ np.linalg.solve(gram + penalty * ridge, moment) for penalty in PENALTIES]
