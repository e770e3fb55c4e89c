"""Objects in slots that swim along their rows, and their order by age."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from optimist.envs._games.board import LAST, ahead, cells, first


class Shoal(NamedTuple):
    """Enemies, or divers."""

    there: Any
    x: Any
    y: Any
    right: Any
    wait: Any
    born: Any


def nobody(slots: int, kind: Any = Shoal) -> Any:
    """Empty slots."""
    booleans = {"there", "right"}
    return kind(*(jnp.zeros(slots, bool if field in booleans else jnp.int32) for field in kind._fields))


def joined(shoal: Shoal, due, y, right, wait, born) -> tuple[Shoal, Any]:
    """The shoal with one more in a free slot, and which one that is."""
    new = first(~shoal.there) & due
    one = Shoal(True, jnp.where(right, 0, LAST), y, right, wait, born)
    return Shoal(*(jnp.where(new, now, before) for now, before in zip(one, shoal, strict=True))), new


def trails(shoal: Shoal) -> Any:
    return cells(shoal.x - ahead(shoal.right), shoal.y, shoal.there)


def oldest(marked, born) -> Any:
    """Only the mark that was born first."""
    return marked & (born == jnp.where(marked, born, jnp.iinfo(jnp.int32).max).min())


def youngest(marked, born) -> Any:
    return oldest(marked, -born)
