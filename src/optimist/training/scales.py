"""The sizes of experiments: the paper's own numbers, and those that learn small games in minutes.

Sources: `paper` is the hyperparameter table of Agarwal et al. 2020 and its released code, with as many
gradient steps as the online agent took (the paper's 1X); `paper-5x` takes five times as many. `small` was
found by trying on MinAtar; it keeps the paper's batch, discount, clipping and update period, and shortens
what is proportional to the length of training.
"""

from dataclasses import dataclass, replace

from optimist.agent import Agent
from optimist.data.transition import Spec
from optimist.errors import UsageError, did_you_mean
from optimist.optimizers import Adam


@dataclass(frozen=True)
class Scale:
    """Everything whose value depends on how long an experiment is."""

    learning_rate: float | None  # None: the agent's own
    adam_epsilon: float | None  # likewise, for agents that use Adam
    target_period: int  # gradient steps
    offline_steps: int  # gradient steps
    evaluate_every: int  # gradient steps: an iteration of the paper
    evaluation_steps: int | None  # the length of an evaluation; None: counted in episodes
    online_steps: int  # agent steps
    lanes: int
    window: int  # transitions of the online agent's replay
    warm_up: int  # steps before it learns
    epsilon_decay: int  # steps over which exploration falls, after the warm-up

    def fitted(self, agent: Agent) -> Agent:
        """The agent at this scale."""
        optimizer = agent.optimizer
        if self.learning_rate is not None:
            optimizer = replace(optimizer, learning_rate=self.learning_rate)
        if self.adam_epsilon is not None and isinstance(optimizer, Adam):
            optimizer = replace(optimizer, epsilon=self.adam_epsilon)
        return replace(agent, optimizer=optimizer, target_period=self.target_period)


SCALES = {
    "paper": Scale(
        learning_rate=None,
        adam_epsilon=None,
        target_period=2_000,
        offline_steps=12_500_000,
        evaluate_every=62_500,
        evaluation_steps=125_000,
        online_steps=50_000_000,
        lanes=16,
        window=1_000_000,
        warm_up=20_000,
        epsilon_decay=250_000,
    ),
    "small": Scale(
        learning_rate=5e-4,
        # The paper's online value. Its offline 0.01/32 is larger than the gradients of 200 heads on a small
        # network, and REM then stood still for the first 6,000 steps on MinAtar Breakout.
        adam_epsilon=0.001 / 32,
        target_period=250,
        offline_steps=100_000,
        evaluate_every=5_000,
        evaluation_steps=None,
        online_steps=500_000,
        lanes=16,
        window=100_000,
        warm_up=5_000,
        epsilon_decay=100_000,
    ),
}
SCALES["paper-5x"] = replace(SCALES["paper"], offline_steps=62_500_000)


def scale_for(spec: Spec, name: str = "auto") -> Scale:
    """The named scale, or the one that suits the observations: large images take the paper's."""
    if name == "auto":
        shape = spec.observation_shape
        name = "paper" if len(shape) == 3 and min(shape[:2]) >= 36 else "small"
    if name not in SCALES:
        raise UsageError(f'unknown scale "{name}": {did_you_mean(name, [*SCALES, "auto"])}')
    return SCALES[name]
