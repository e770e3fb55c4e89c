"""The options that every format of plain arrays has: facts that such files do not hold."""

from dataclasses import dataclass
from typing import Annotated

BOUND = "of every number of an action vector, or of each as in 0,-300; none: that of the log"


@dataclass(frozen=True)
class ArrayFacts:
    """Facts about arrays; a format adds its own options."""

    environment: Annotated[str | None, "the environment, such as gym/CartPole-v1"] = None
    channels: Annotated[str | None, "first or last: the axis of an image that counts its channels"] = None
    stack: Annotated[int, "frames in an observation"] = 1
    action_low: Annotated[tuple[float, ...] | float | None, BOUND] = None
    action_high: Annotated[tuple[float, ...] | float | None, BOUND] = None
