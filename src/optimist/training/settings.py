"""The settings of a run: how an agent learns from a dataset, or plays and learns.

"auto" is left in them; `training.resolve` replaces it.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

import numpy as np

from optimist.data.sampling import SAMPLERS
from optimist.data.transition import LARGEST
from optimist.errors import UsageError, did_you_mean, in_one_line
from optimist.networks.precision import PRECISION, check_precision
from optimist.training.loggers import USUAL

AUTO: Literal["auto"] = "auto"
SCALINGS = (AUTO, "standard", "range", "none")  # of observations
PLAYERS = ("whole", "own")
CONTINUE, STOP, FREEZE = RESPONSES = ("continue", "stop", "freeze")
MOST_STEPS_AHEAD = 1000  # largest n of an n-step return: each step takes a pass over all transitions
MOST_EVALUATION_STEPS = 100_000_000  # of one evaluation and seed; the paper has 125,000


@dataclass(frozen=True)
class Settings:
    """What both kinds of runs have."""

    steps: int
    batch: Annotated[int, "transitions in a minibatch"] = 32
    gamma: Annotated[float, "the discount of a step"] = 0.99
    clip_rewards: Annotated[
        float | Literal["auto"] | None,
        "rewards are clipped to +- this; none: as they are; auto: 1 for Atari and MinAtar, else none, except "
        "for single outliers of another's log",
    ] = AUTO
    reward_scale: Any = 1.0
    precision: Annotated[str, PRECISION] = "tf32"
    evaluate_every: Any = None
    episodes: Annotated[int, "full episodes per evaluation and seed"] = 20
    evaluation_steps: Annotated[int | None, "instead of episodes: full episodes until so many steps"] = None
    evaluation_epsilon: Annotated[float, "share of random actions in evaluation"] = 0.001
    checkpoint_seconds: Annotated[float, "seconds between checkpoints"] = 120.0
    keep_policies: Annotated[float, "GiB for the policies of the evaluations; 0: none is kept"] = 2.0
    loggers: Annotated[str, "of the figures: jsonl, tensorboard, wandb, module:Name"] = USUAL
    unit: ClassVar[str] = "step"

    def __post_init__(self):
        self._counts("steps", "batch", "evaluate_every", "episodes", "evaluation_steps")
        self._shares("gamma", "evaluation_epsilon")
        check_length(self.evaluation_steps)
        if self.clip_rewards == "none":  # the word, because a TOML file cannot hold None
            object.__setattr__(self, "clip_rewards", None)
        demand(self, ("clip_rewards",), is_scale, "it must be above 0, none, or auto")
        check_precision(self.precision)
        self._amounts("checkpoint_seconds", "keep_policies")

    def _counts(self, *names: str) -> None:
        demand(self, names, lambda n: isinstance(n, int) and n >= 1, "it must be a whole number above 0")

    def _shares(self, *names: str) -> None:
        demand(self, names, lambda x: 0 <= x <= 1, "it must be between 0 and 1")

    def _amounts(self, *names: str) -> None:
        demand(self, names, lambda x: x >= 0, "it must be at least 0")


@dataclass(frozen=True)
class Training(Settings):
    """How an agent is trained on a dataset; the defaults are the paper's."""

    steps: Annotated[int, "gradient steps"] = 12_500_000  # the paper's 1X
    evaluate_every: Annotated[int, "gradient steps between evaluations"] = 62_500
    reward_scale: Annotated[
        float | Literal["auto"],
        "rewards are multiplied by this before they are clipped; auto: in another's log what gives values "
        "the size at which the agent learns best, else 1",
    ] = AUTO
    n_step: Annotated[int, "rewards summed before the bootstrap"] = 1
    observations: Annotated[
        str,
        "scale vectors: standard (mean 0, deviation 1, up to 10), range (-1 to 1), none, or auto: standard "
        "unless the log is by optimist collect",
    ] = AUTO
    hold_out: Annotated[
        float | Literal["auto"],
        "share of the episodes to measure losses on, and not to learn from; auto: 0.1 without an environment "
        "to evaluate in, else 0",
    ] = AUTO
    hold_out_last: Annotated[float | None, "the same, but the last episodes by time and not random ones"] = (
        None
    )
    on_divergence: Annotated[
        str, "of a seed whose values exceed its log's returns: continue, stop the run, or freeze the seed"
    ] = CONTINUE
    sampling: Annotated[str, "uniform, or five-buffers as in the released code"] = "uniform"
    data_per_seed: Annotated[str, "whole, or own: the log of the seed's own player"] = "whole"
    feed: Annotated[str, "where the data is kept: device, packed (on it), memory, compressed, or auto"] = AUTO
    memory_gib: Annotated[float | None, "memory for decoded frames; none: half of what this run may use"] = (
        None
    )
    unit: ClassVar[str] = "gradient step"

    def __post_init__(self):
        super().__post_init__()
        self._counts("n_step")
        demand(self, ("n_step",), lambda n: n <= MOST_STEPS_AHEAD, f"it must be at most {MOST_STEPS_AHEAD}")
        demand(self, ("memory_gib",), lambda x: 0 < x < math.inf, "it must be above 0")
        demand(self, ("reward_scale",), is_scale, "it must be above 0, or auto")
        demand(self, ("hold_out",), lambda x: x == AUTO or 0 <= x < 1, "it must be at least 0 and below 1")
        demand(self, ("hold_out_last",), lambda x: 0 < x < 1, "it must be above 0 and below 1")
        if self.hold_out_last and self.hold_out not in (AUTO, 0):
            raise UsageError("hold_out is of random episodes and hold_out_last of the last: choose one")
        self._one_of("observations", SCALINGS)
        self._one_of("sampling", SAMPLERS)
        self._one_of("data_per_seed", PLAYERS)
        self._one_of("on_divergence", RESPONSES)

    def _one_of(self, name: str, known: Iterable[str]) -> None:
        if (value := getattr(self, name)) not in known:
            raise UsageError(f'no {name} "{value}": {did_you_mean(str(value), known)}')

    def evaluates(self, step: int) -> bool:
        """Is an evaluation due at this gradient step?"""
        return is_due(step, every=self.evaluate_every, steps=self.steps)


@dataclass(frozen=True)
class Collection(Settings):
    """How an online agent plays and learns; all defaults but the number of lanes are the paper's."""

    steps: Annotated[int, "agent steps of each seed, over all its lanes"] = 50_000_000
    evaluate_every: Annotated[int | None, "agent steps between evaluations; none: no evaluation"] = None
    reward_scale: Annotated[float, "rewards are multiplied by this before they are clipped"] = 1.0
    lanes: Annotated[int, "parallel environments for each seed; the paper has one"] = 16
    window: Annotated[int, "newest transitions, from which the agent learns"] = 1_000_000
    warm_up: Annotated[int, "steps in the window before it learns"] = 20_000
    epsilon_start: Annotated[float, "share of random actions in the warm-up (0 with --from)"] = 1.0
    epsilon: Annotated[float, "share of random actions after the decay (0.01 with --from)"] = 0.01
    epsilon_decay: Annotated[int, "steps from epsilon_start to epsilon (0 with --from)"] = 250_000
    update_period: Annotated[int, "agent steps per gradient step"] = 4
    mix: Annotated[float, "share of each minibatch from the log of the run of --from (then 0.5)"] = 0.0

    def __post_init__(self):
        super().__post_init__()
        self._counts("lanes", "window", "update_period")
        self._shares("epsilon_start", "epsilon")
        self._amounts("warm_up", "epsilon_decay")
        demand(self, ("reward_scale",), lambda x: 0 < x < math.inf, "it must be above 0")
        demand(self, ("mix",), lambda x: 0 <= x < 1, "it must be at least 0 and below 1")
        if self.mix and not self.mixed:
            raise UsageError(
                f"mix is {self.mix}, which is none of {self.batch} transitions: choose a larger mix or batch"
            )

    @property
    def mixed(self) -> int:
        """The transitions of a minibatch that are from the older log; at least one is not."""
        return min(round(self.mix * self.batch), self.batch - 1)

    def evaluates(self, step: int) -> bool:
        """Is an evaluation due at this agent step?"""
        every = self.evaluate_every
        return every is not None and is_due(step, every=every, steps=self.steps, lanes=self.lanes)

    def rows_to_look(self, step: int) -> int:
        """Vector steps from this agent step to the next evaluation, or to the end."""
        every = self.evaluate_every or self.steps
        return -(-(min(self.steps, (step // every + 1) * every) - step) // self.lanes)

    def exploration(self, step: int) -> float:
        """Epsilon at this agent step: `epsilon_start` during the warm-up, then a linear decay; without both,
        epsilon."""
        if not self.warm_up and not self.epsilon_decay:
            return self.epsilon
        left = min(max(1 - (step - self.warm_up) / max(self.epsilon_decay, 1), 0.0), 1.0)
        return self.epsilon + max(0, self.epsilon_start - self.epsilon) * left


def is_scale(value: Any) -> bool:
    """Is it a number above 0, or "auto"?"""
    return value == AUTO or (isinstance(value, (int, float)) and 0 < value < math.inf)


def check_length(steps: int | None) -> None:
    """Raise UsageError for an evaluation that would not end."""
    if steps is not None and steps > MOST_EVALUATION_STEPS:
        raise UsageError(f"{steps:,} steps of an evaluation: choose at most {MOST_EVALUATION_STEPS:,}")


def is_due(step: int, *, every: int, steps: int, lanes: int = 1) -> bool:
    """Is an evaluation due at this step of a run of so many steps? Lanes step together, so a vector step may
    jump over the exact number."""
    return step > 0 and (step // every > (step - lanes) // every or step >= steps)


WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "none"}
LISTS = ("hidden", "vae_hidden", "loggers")  # may be a list instead of text with commas
PLURALS = {int: "whole numbers", float: "numbers", bool: "truth values", str: "texts"}


def fits(value: Any, kind: Any) -> bool:
    """Is the value of this kind? Whole numbers are numbers, and truth values are neither. Every value fits a
    kind that files cannot hold."""
    kind = _plain(kind)
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if origin in (list, tuple):
        return isinstance(value, (list, tuple)) and all(fits(each, parts[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(each, parts[1]) for each in value.values())
    if isinstance(value, int) and kind in (int, float):
        return not isinstance(value, bool) and abs(value) < LARGEST
    if is_dataclass(kind) and isinstance(value, str):
        return fits(value, fields(kind)[0].type)  # network = "mlp" is its torso
    return kind is Any or not isinstance(kind, type) or isinstance(value, kind)


def in_words(kind: Any) -> str:
    """The kind for a message: "a number or none"."""
    kind = _plain(kind)
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(map(in_words, parts))
    if origin is Literal:
        return " or ".join(map(str, parts))
    if origin in (list, tuple):
        return f"a list of {PLURALS.get(parts[0], 'tables')}"
    if origin is dict:
        return f"a table of {PLURALS.get(parts[1], 'tables')}"
    return WORDS.get(kind, "a table")


def may_be_none(kind: Any) -> bool:
    """May the setting be none, which a file writes as text? Not if all text has a meaning of its own."""
    return fits(None, kind) and not fits("none", kind)


def takes_fractions(kind: Any) -> bool:
    """Is it a number, and not a kind that every value fits?"""
    return fits(0.5, kind) and not fits(object(), kind)


def demand(record, names: tuple[str, ...], holds: Callable[[Any], bool], rule: str) -> None:
    """Raise UsageError for the first of these fields that is not None and breaks the rule."""
    for name in names:
        value = getattr(record, name)
        if value is not None and not holds(value):
            raise UsageError(f"{name} is {value}: {rule}")


def _plain(kind: Any) -> Any:
    """The kind without its help."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def names_of(record: Any) -> list[str]:
    return [field.name for field in fields(record)]


def field_names(record: Any, prefix: str = "") -> list[str]:
    """Every field; a field of a nested record has a dot: "optimizer.epsilon"."""
    found = []
    for name in names_of(record):
        value = getattr(record, name)
        inside = field_names(value, f"{prefix}{name}.") if is_dataclass(value) else [f"{prefix}{name}"]
        found += inside
    return found


def with_values(record: Any, values: Mapping[str, Any], place: str) -> Any:
    """The record with some fields changed; a dot or a table reaches a field of a nested record."""
    changes: dict[str, Any] = {}
    inside: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        first, dot, rest = name.partition(".")
        if first not in (known := names_of(record)):
            raise UsageError(f'{place}: there is no setting "{name}": {did_you_mean(first, known)}')
        if dot:
            inside.setdefault(first, {})[rest] = value
        elif isinstance(value, Mapping):  # a table of a TOML file: network = { torso = "mlp" }
            inside.setdefault(first, {}).update(value)
        else:
            changes[first] = _fitting(record, first, value, place)
    for first, within in inside.items():
        if not is_dataclass(changes.get(first, getattr(record, first))):
            raise UsageError(f'{place}: "{first}" is a single value: there are no settings inside it')
        changes[first] = with_values(changes.get(first, getattr(record, first)), within, place)
    return replace(record, **changes)  # all at once: 16 columns on 16 networks are valid only together


def _fitting(record: Any, name: str, value: Any, place: str) -> Any:
    """The value of a field, None for "none", 2.0 for 2 and 1000 for 1e3 as on the command line; UsageError if
    a number, a text or a list cannot be its value."""
    value = value.item() if isinstance(value, np.generic) else value
    field = type(record).__dataclass_fields__[name]
    if name in LISTS and isinstance(value, (list, tuple)):
        return value
    if value == "none" and may_be_none(field.type):
        return None
    if name in LISTS and type(value) is int:  # one width, as in --network.hidden 8
        return str(value)
    if type(value) is float and value.is_integer() and not fits(value, field.type):
        value = int(value)
    plain = value is None or isinstance(value, (bool, int, float, str, list, tuple))
    if plain and not fits(value, field.type):
        raise UsageError(f"{place}: {name} is {in_one_line(repr(value))}, not {in_words(field.type)}")
    return float(value) if type(value) is int and takes_fractions(field.type) else value
