"""Recipes: the hyperparameters of a run by name, the paper's and smaller ones for small games.

`paper` has the hyperparameters of Agarwal et al. 2020 and their released code, with as many gradient steps as
the online agent took (the paper's 1X); `paper-5x` has five times as many. `small` and `mini` were found by
experiments on MinAtar. They keep the paper's batch, discount, clipping and update period, and shorten what is
proportional to the length of training. `mini` also keeps every optimiser's epsilon. It has one learning rate,
which is 5 times the paper's for Adam (5e-5) and equal to the paper's for RMSProp (2.5e-4), so a comparison of
the two optimisers by this recipe is not the paper's. `vectors` is for observations that are vectors,
`control` for actions that are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from optimist.agents._actor_critic import ActorAgent
from optimist.agents._agent import Agent
from optimist.data.transition import Spec
from optimist.equations.optimizers import Adam, RmsProp
from optimist.errors import UsageError, did_you_mean
from optimist.training.settings import AUTO, Collection, Training

LEFT_OPEN = {"target_rate": 1.0, "target_limit": None, "huber_limit": AUTO, "double": False}


@dataclass(frozen=True)
class Recipe:
    """The hyperparameters that depend on the length of an experiment; None keeps the agent's own value.
    `online` replaces some of them for an agent that plays."""

    collection: Collection
    training: Training
    learning_rate: float | None = None
    adam_epsilon: float | None = None
    target_period: int | None = None
    target_rate: float | None = None
    target_limit: float | str | None = None
    huber_limit: float | None = None
    double: bool | None = None
    preset: str | None = None  # of an agent that has it, where none is named
    online: Mapping[str, Any] = field(default_factory=dict)

    def playing(self) -> Self:
        """The recipe of an agent that plays."""
        return replace(self, **self.online, online={})

    def preset_of(self, presets: Mapping[str, Any]) -> str:
        """The preset of an agent with these presets, if none is named."""
        return self.preset if self.preset and self.preset in presets else next(iter(presets))

    def fitted(self, agent: Agent) -> Agent:
        """The agent with the values of this recipe. They are those of agents for discrete actions: an actor's
        target moves a little at every step, and would stand still if it did so every 250 steps."""
        if isinstance(agent, ActorAgent):
            return agent
        optimizer = agent.optimizer
        if self.learning_rate is not None and isinstance(optimizer, RmsProp | Adam):
            optimizer = replace(optimizer, learning_rate=self.learning_rate)
        if self.adam_epsilon is not None and isinstance(optimizer, Adam):
            optimizer = replace(optimizer, epsilon=self.adam_epsilon)
        # What an agent leaves as every agent has it.
        left_open = {
            name: getattr(self, name)
            for name, usual in LEFT_OPEN.items()
            if getattr(agent, name, ...) == usual and getattr(self, name) is not None
        }
        # The loss of a user's own class need not read the mask by which double targets come.
        ours = type(agent).__module__.startswith("optimist.")
        if not ours or not getattr(agent, "targets_a_maximum", False):
            left_open.pop("double", None)
        period = agent.target_period if self.target_period is None else self.target_period
        return replace(agent, optimizer=optimizer, target_period=period, **left_open)


def replaced(own: Agent, fitted: Agent, final: Agent) -> dict[str, tuple[float, float]]:
    """The numbers of a user's class or preset that a recipe replaced, and by which; none of the package's
    agents, nor numbers that the class inherits from them, nor those that options changed again. A preset
    may give the package's number where the class has another."""
    usual: Any = next(kind for kind in type(own).__mro__ if kind.__module__.startswith("optimist."))
    if usual is type(own):
        return {}
    before, after, at_last = (_numbers(**vars(agent)) for agent in (own, fitted, final))
    kinds: tuple[Any, ...] = (usual, type(own))
    fields = [kind.__dataclass_fields__ for kind in kinds]
    inherited, of_class = (
        _numbers(each["target_period"].default, each["optimizer"].default) for each in fields
    )
    return {
        name: (value, after[name])
        for name, value in before.items()
        if not value == inherited.get(name) == of_class.get(name)
        and value != after[name]
        and at_last.get(name) == after[name]
    }


def _numbers(target_period: int, optimizer: RmsProp | Adam, **others: object) -> dict[str, float]:
    """The numbers of an agent that a recipe may replace."""
    found: dict[str, float] = {"target_period": target_period}
    if isinstance(optimizer, RmsProp | Adam):
        found["optimizer.learning_rate"] = optimizer.learning_rate
        found["optimizer.epsilon"] = optimizer.epsilon
    return found


# The paper's online value, a tenth of its offline one. Within the 100,000 updates of `small`, REM learns more
# with it: an IQM of 0.79 against 0.45 over five games and five logs. No difference is shown for DQN (Adam)
# and QR-DQN (results/small-scale).
SMALL_EPSILON = 0.001 / 32
PLAYED_SMALL = Collection(steps=500_000, window=100_000, warm_up=5_000, epsilon_decay=100_000)
PAPER = Recipe(Collection(evaluation_steps=125_000), Training(evaluation_steps=125_000), target_period=2_000)
RECIPES = {
    "paper": PAPER,
    "paper-5x": replace(PAPER, training=replace(PAPER.training, steps=62_500_000)),
    "small": Recipe(
        PLAYED_SMALL,
        Training(steps=100_000, evaluate_every=5_000),
        learning_rate=5e-4,
        adam_epsilon=SMALL_EPSILON,
        target_period=250,
    ),
    # For 100,000 updates and more, with the paper's epsilons.
    "mini": Recipe(
        PLAYED_SMALL,
        Training(steps=125_000, evaluate_every=5_000),  # as many gradient steps as the online agent took
        learning_rate=2.5e-4,
        target_period=250,
    ),
    # Chosen by CartPole and Acrobot in 50,000 steps, `python -m benchmarks online`. With the paper's Huber
    # limit of 1 a fall, which is a rare and large error, counts too little: CartPole stays at 44, not 399.
    "vectors": Recipe(
        Collection(
            steps=50_000,
            window=100_000,
            warm_up=1_000,
            epsilon=0.05,  # 399 on CartPole, with 0.01 310
            epsilon_decay=12_500,
            update_period=2,
            batch=64,
        ),
        # Chosen by the worst of small logs, `python -m benchmarks defaults` (docs/guide.md). Returns of three
        # steps lift DQN and REM most: one-step targets hardly reach the start of a long episode.
        Training(steps=50_000, evaluate_every=2_500, n_step=3),
        learning_rate=5e-4,
        adam_epsilon=SMALL_EPSILON,
        target_period=1,
        target_rate=0.005,
        target_limit=AUTO,
        huber_limit=100.0,
        double=True,
        preset="adam",
        online={
            "target_rate": None,
            "target_limit": None,
            "double": None,
            "learning_rate": 2e-3,
            "adam_epsilon": 1e-8,
            "target_period": 50,
            "huber_limit": 100.0,
        },
    ),
    "control": Recipe(
        Collection(
            steps=1_000_000,
            lanes=1,
            warm_up=25_000,  # of random actions
            epsilon=0.0,  # after the warm-up the agent's own noise explores
            epsilon_decay=0,
            update_period=1,
            batch=100,
            clip_rewards=None,
            episodes=10,
            evaluation_epsilon=0.0,
        ),
        Training(
            steps=1_000_000,
            evaluate_every=5_000,
            episodes=10,
            evaluation_epsilon=0.0,
            batch=100,
            clip_rewards=None,
        ),
    ),
}


def recipe_for(spec: Spec | None, name: str = "auto") -> Recipe:
    """The named recipe; "auto" is "control" for vector actions, "vectors" for vector observations, "paper"
    for large images, else "small"."""
    if name == "auto":
        if spec is None:
            raise UsageError(
                'the recipe "auto" follows the data, which a study knows only when it runs: name one of '
                f"{', '.join(RECIPES)}"
            )
        shape = spec.observation_shape
        large = len(shape) == 3 and min(shape[:2]) >= 36
        name = "vectors" if len(shape) == 1 else "paper" if large else "small"
        name = name if spec.discrete else "control"
    if name not in RECIPES:
        raise UsageError(f'there is no recipe "{name}": {did_you_mean(name, [*RECIPES, "auto"])}')
    return RECIPES[name]
