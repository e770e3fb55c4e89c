"""Turns names and options into an agent and settings: the only place where "auto" becomes a value.

The Python interface, the command line, the jobs of a study and the demo all use these functions, so that the
same options give the same run.

A recipe has the hyperparameters of a run, the paper's and smaller ones for small games. `paper` has those of
Agarwal et al. 2020 and their released code, with as many gradient steps as the online agent took (the paper's
1X); `paper-5x` has five times as many. `small` and `mini` were found by experiments on MinAtar. They keep the
paper's batch, discount, clipping and update period, and shorten what is proportional to the length of
training. `mini` also keeps every optimiser's epsilon. It has one learning rate, which is 5 times the paper's
for Adam (5e-5) and equal to the paper's for RMSProp (2.5e-4), so a comparison of the two optimisers by this
recipe is not the paper's. `vectors` is for observations that are vectors, `control` for actions that are.
"""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar

from optimist import agents, envs
from optimist.agents._actor_critic import ActorAgent
from optimist.agents._agent import Agent
from optimist.data.dataset import Dataset
from optimist.data.transition import Spec
from optimist.equations.optimizers import Adam, RmsProp
from optimist.errors import UsageError, closest, did_you_mean, in_one_line
from optimist.training.scaling import outlier, suggested_limit, suggested_scale, takes_scaling
from optimist.training.seed_logs import FEWEST, USUAL_SHARE, SeedLogs, parts, whole
from optimist.training.settings import AUTO, Collection, Training, field_names, names_of, with_values

if TYPE_CHECKING:
    from optimist.training.beginning import Beginning

PLAYER = "dqn"  # the default agent of a collection
PAPERS = ("atari", "minatar", "minatar_jax")  # families of environments whose rewards the paper clips
IMPORTED = "dqn-replay"  # the format of the paper's own logs
FOLLOWING = ("clip_rewards", "reward_scale", "observations", "huber_limit", "target_limit", "hold_out")
Kind = TypeVar("Kind", Training, Collection)
LEFT_OPEN = {"target_rate": 1.0, "target_limit": None, "huber_limit": AUTO, "double": False}
log = logging.getLogger("optimist")


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


class Resolved(NamedTuple, Generic[Kind]):
    """An agent and its settings, every value as it will be used."""

    agent: Agent
    settings: Kind


def resolve_training(
    spec: Spec | None,
    agent: Agent | str,
    *,
    preset: str | None = None,
    recipe: str = "auto",
    options: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Resolved[Training]:
    """An agent that learns from data of this spec, and its training.

    An agent given by name gets the recipe's settings; an agent object keeps its own. The recipe "auto" is
    chosen by the spec. `options` are fields of the agent, `settings` fields of the training; a dot reaches
    a field of a nested record, as in "optimizer.epsilon".
    """
    chosen = recipe_for(spec, recipe)
    found = _agent(chosen, agent, preset, options)
    return Resolved(found, _settings(chosen.training, settings, "training", found))


def resolve_collection(
    spec: Spec | None,
    agent: Agent | str | None = None,
    *,
    preset: str | None = None,
    recipe: str = "auto",
    options: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    start: "Beginning | None" = None,
) -> Resolved[Collection]:
    """The same for an agent that plays an environment of this spec; the default is DQN. A preset without an
    agent may name both: "rem-online". With a `start` the agent is that of the run."""
    if start is not None:
        if agent is not None or preset is not None:
            raise UsageError(f"the agent is that of {start.run.path}: leave the agent and the preset out")
        agent, settings = start.run.learner.agent, {**start.settings, **(settings or {})}
    if agent is None:
        agent = PLAYER
        if preset is not None and preset not in agents.presets(PLAYER):
            agent, preset = agents.from_preset(preset)
    chosen = recipe_for(spec, recipe).playing()
    found = _agent(chosen, agent, preset, options)
    if getattr(found, "target_limit", None) == AUTO:
        raise UsageError("target_limit is auto, which follows from a log: give a number to learn online")
    return Resolved(found, _settings(chosen.collection, settings, "collection", found))


def _agent(
    recipe: Recipe, agent: Agent | str, preset: str | None, options: Mapping[str, Any] | None
) -> Agent:
    own = None
    if isinstance(agent, str):
        own = agents.preset(agent, preset or recipe.preset_of(agents.presets(agent)))
        agent = recipe.fitted(own)
    elif preset is not None:
        raise UsageError(f'preset "{preset}" needs an agent given by name: pass a name, or no preset')
    if not isinstance(agent, Agent):
        raise UsageError(f'{agent!r} is not an agent: pass a name such as "rem", or optimist.agents.Rem()')
    if not isinstance(options or {}, Mapping):
        raise UsageError(f'options is {in_one_line(options)}: name each, as in options={{"columns": 3}}')
    for name, value in (options or {}).items():
        if name not in names_of(agent) and name in names_of(recipe.training):
            whose = agents.name_of(agent)
            raise UsageError(f'"{name}" is no option of {whose}: outside options, pass {name}={value!r}')
    found = with_values(agent, options or {}, agents.name_of(agent))
    for name, (before, now) in (replaced(own, agent, found) if own else {}).items():
        _tell(
            f"{agents.name_of(found)}: the recipe has {name} {now:g} in place of {before:g}; to keep yours, "
            "give it as an option"
        )
    return found


@cache
def _tell(line: str) -> None:
    """Warn once: the jobs of a study are resolved many times."""
    log.warning("%s", line)


def _settings(record: Any, settings: Mapping[str, Any] | None, place: str, agent: Agent) -> Any:
    """The record with these fields; the error for a field of the agent says that it is an option."""
    for name, value in (settings or {}).items():
        if name in names_of(record):
            continue
        if name in names_of(agent) or name in field_names(agent):
            whose, where = agents.name_of(agent), f'options={{"{name}": {value!r}}}'
            raise UsageError(f'"{name}" is an option of {whose}, not a setting of the {place}: pass {where}')
        meant = closest(name, field_names(agent))
        if meant and closest(name, field_names(record)) is None:
            where = f'options={{"{meant}": {value!r}}}'
            raise UsageError(f'{place}: there is no setting "{name}"; for the agent, pass {where}')
    # A recipe that evaluates by steps would go before the episodes that were asked for.
    by_episodes = {"evaluation_steps": None} if "episodes" in (settings or {}) else {}
    return with_values(record, {**by_episodes, **(settings or {})}, place)


def following(agent: Agent, training: Training) -> list[str]:
    """The settings that follow from the log: those that are "auto"."""
    return [name for name in FOLLOWING if AUTO in (getattr(agent, name, None), getattr(training, name, None))]


class ForLog(NamedTuple):
    """An agent and its training on one log, without "auto", and what each seed learns from."""

    agent: Agent
    training: Training
    data: SeedLogs


def resolve_for_log(
    agent: Agent,
    training: Training,
    dataset: Dataset,
    seeds: tuple[int, ...],
    part: Callable[[Dataset], Dataset] = whole,
    environment: str | None = None,
) -> ForLog:
    """What "auto" becomes for this dataset, of which `part` selects what is learned from."""
    if training.hold_out == AUTO:  # where nothing is played, the held-out episodes show when to stop
        enough = min(len(log.starts) for log in parts(dataset, training, seeds, part)) >= FEWEST
        holds = enough and not environment and training.hold_out_last is None
        training = replace(training, hold_out=USUAL_SHARE if holds else 0.0)
    data = SeedLogs(dataset, training, seeds, part)
    clip, scale, kind = training.clip_rewards, training.reward_scale, training.observations
    if clip == AUTO:
        clip = clipping(dataset.provenance, environment)
    foreign = clip is None and not is_own(dataset.provenance)
    odd = outlier(data.logs) if foreign and training.clip_rewards == AUTO else None
    limit = odd.limit if odd else math.inf
    if scale == AUTO:
        scale = suggested_scale(data.logs, training.gamma, agent, limit)[0] if foreign else 1.0
    if odd:
        clip = float(f"{limit * float(scale):.6g}")
    if kind == AUTO:
        kind = observation_scaling(dataset.spec, dataset.provenance)
    training = replace(training, clip_rewards=clip, reward_scale=scale, observations=kind)
    changes: dict[str, Any] = {}
    if getattr(agent, "huber_limit", None) == AUTO:
        changes["huber_limit"] = suggested_limit(data.logs, float(scale), limit) if foreign else 1.0
    if getattr(agent, "target_limit", None) == AUTO:
        largest = max(each.largest for each in data.logged_values(training))
        changes["target_limit"] = largest or None  # a log without rewards has none
    return ForLog(replace(agent, **changes), training, data)


def resolve_for_environment(collection: Collection, environment: str) -> Collection:
    """What "auto" becomes for an agent that plays this environment."""
    if collection.clip_rewards != AUTO:
        return collection
    return replace(collection, clip_rewards=clipping({}, environment))


def is_own(provenance: Mapping[str, Any]) -> bool:
    """Was this log recorded by `optimist collect`, or imported from the DQN Replay Dataset?"""
    return "collection" in provenance or provenance.get("format") == IMPORTED


def clipping(provenance: Mapping[str, Any], environment: str | None = None) -> float | None:
    """The limit of rewards: 1 for the paper's environments, none for all others."""
    known = provenance.get("environment") or environment
    if not known:
        return 1.0 if provenance.get("format") == IMPORTED else None
    return 1.0 if envs.base_name(str(known)).partition("/")[0] in PAPERS else None


def observation_scaling(spec: Spec, provenance: Mapping[str, Any]) -> str:
    """How observations are scaled: vectors of somebody else's log are standardised, others are not."""
    return "standard" if takes_scaling(spec) and not is_own(provenance) else "none"
