"""The options that every format of plain arrays has: facts that such files do not hold."""

from dataclasses import dataclass
from typing import Annotated

from optimist.data.rules.log import Asked

BOUND = "of every number of an action vector, or of each as in 0,-300; none: that of the log"


@dataclass(frozen=True)
class ArrayFacts:
    """Facts about arrays; a format adds its own options."""

    environment: Annotated[str | None, "the environment, such as gym/CartPole-v1"] = None
    channels: Annotated[str | None, "first or last: the axis of an image that counts its channels"] = None
    stack: Annotated[int, "frames in an observation"] = 1
    action_low: Annotated[tuple[float, ...] | float | None, BOUND] = None
    action_high: Annotated[tuple[float, ...] | float | None, BOUND] = None
    actions_count: Annotated[int | None, "number of discrete actions; none: those of the log"] = None
    action_names: Annotated[
        str | None, "all actions in the order of their numbers: a,b,c; none: those of the log, sorted"
    ] = None

    def asked(self, environment: str | None, *, every_end_is_terminal: bool = False) -> Asked:
        """What the user says about the log; `environment` is the one in the file."""
        return Asked(
            environment=self.environment or environment,
            actions_count=self.actions_count,
            action_names=tuple(self.action_names.split(",")) if self.action_names else None,
            stack=self.stack,
            channels=self.channels,
            every_end_is_terminal=every_end_is_terminal,
            action_low=self.action_low,
            action_high=self.action_high,
            names_are_words=True,
        )
