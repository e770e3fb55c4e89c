"""A policy as a short list of array operations.

JAX traces the policy with its parameters. Everything that does not depend on the observation is computed
beforehand: the mean over 200 heads becomes one weight matrix, and the random draws of a policy that samples
become constants. A few operations remain, which NumPy and ONNX both have.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal

from optimist.errors import UsageError
from optimist.networks.convolutions import JOINED_PRODUCT

CALLS = ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call")
SAME = ("stop_gradient", "copy", "copy_p", "optimization_barrier", "reduce_precision")
# Operations that mean the same in JAX, in NumPy and in ONNX; the operands have equal shapes or are scalars.
PLAIN = {
    *("add", "sub", "mul", "div", "max", "min", "pow"),
    *("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"),
    *("exp", "log", "tanh", "logistic", "sqrt", "rsqrt", "abs", "neg", "sign", "sin", "cos", "is_finite"),
}

RENAMED = {"squeeze": "reshape", "expand_dims": "reshape", "convert_element_type": "cast"}
OPTIONS: dict[str, Callable[[Any, Any], dict[str, Any]]] = {  # from JAX's parameters and what is made
    "reshape": lambda given, made: {"shape": made.shape},
    "cast": lambda given, made: {"dtype": np.dtype(given["new_dtype"]).name},
    "slice": lambda given, made: {
        "start": given["start_indices"],
        "stop": given["limit_indices"],
        "step": given["strides"] or (1,) * len(made.shape),
    },
    "dynamic_slice": lambda given, made: {"sizes": given["slice_sizes"]},
    "transpose": lambda given, made: {"order": given["permutation"]},
    "rev": lambda given, made: {"axes": given["dimensions"]},
    "concatenate": lambda given, made: {"axis": given["dimension"]},
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min"), lambda given, made: {"axes": given["axes"]}),
    **dict.fromkeys(
        ("argmax", "argmin"),
        lambda given, made: {"axis": given["axes"][0], "dtype": np.dtype(given["index_dtype"]).name},
    ),
}


class Operation(NamedTuple):
    """One operation: the numbers of its operands, its options, and the number of its result."""

    name: str
    operands: tuple[int, ...]
    result: int
    options: dict[str, Any]


@dataclass
class Program:
    """The operations that lead from value 0, an observation, and value 1, if it takes a mask of the allowed
    actions, to the action."""

    constants: dict[int, np.ndarray] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    shapes: dict[int, tuple[tuple[int, ...], str]] = field(default_factory=dict)  # of every value, with types
    result: int = 0
    arguments: int = 1

    def used(self) -> "Program":
        """The program without values that nothing needs."""
        needed, kept = {self.result}, list[Operation]()
        for operation in reversed(self.operations):
            if operation.result in needed:
                needed.update(operation.operands)
                kept.append(operation)
        constants = {number: array for number, array in self.constants.items() if number in needed}
        return replace(self, constants=constants, operations=kept[::-1])


class Known(NamedTuple):
    """A value that does not depend on the observation."""

    value: Any


def trace(action: Callable[..., Any], types: Sequence[tuple[tuple[int, ...], str]]) -> Program:
    """The program of this function of one observation, and of a mask if there are two types."""
    traced = jax.make_jaxpr(action)(*(jax.ShapeDtypeStruct(*each) for each in types))
    writer = _Writer()
    (result,) = writer.run(traced, [writer.new(*each) for each in types])
    writer.program.result, writer.program.arguments = writer.number(result), len(types)
    return writer.program.used()


class _Writer:
    def __init__(self) -> None:
        self.program, self._values = Program(), 0
        self._constants: dict[tuple[str, tuple[int, ...], bytes], int] = {}

    def new(self, shape: tuple[int, ...], dtype: Any) -> int:
        self._values += 1
        self.program.shapes[self._values - 1] = (tuple(shape), np.dtype(dtype).name)
        return self._values - 1

    def number(self, operand: "Known | int") -> int:
        """The number of a value; a known one becomes a constant of the program."""
        if not isinstance(operand, Known):
            return operand
        array = np.asarray(operand.value)
        same = (array.dtype.name, array.shape, array.tobytes())
        if same not in self._constants:
            self._constants[same] = self.new(array.shape, array.dtype)
            self.program.constants[self._constants[same]] = array
        return self._constants[same]

    def run(self, traced: ClosedJaxpr, arguments: list["Known | int"]) -> list["Known | int"]:
        jaxpr: Any = traced.jaxpr
        values: dict[Any, Known | int] = dict(zip(jaxpr.invars, arguments, strict=True))
        values |= {var: Known(value) for var, value in zip(jaxpr.constvars, traced.consts, strict=True)}

        def value(var: Any) -> Any:
            # A literal is a plain number, whose type is beside it.
            is_literal: bool = isinstance(var, Literal)
            return Known(jnp.asarray(var.val, var.aval.dtype)) if is_literal else values[var]

        for equation in jaxpr.eqns:
            operands = [value(var) for var in equation.invars]
            values |= dict(zip(equation.outvars, self._results(equation, operands), strict=True))
        return [value(var) for var in jaxpr.outvars]

    def _results(self, equation: JaxprEqn, operands: list[Any]) -> list["Known | int"]:
        name = equation.primitive.name
        if name in CALLS:  # of a function
            inner: Any = equation.params["jaxpr" if "jaxpr" in equation.params else "call_jaxpr"]
            return self.run(inner if hasattr(inner, "jaxpr") else ClosedJaxpr(inner, []), operands)
        if all(isinstance(operand, Known) for operand in operands):
            found = equation.primitive.bind(*(operand.value for operand in operands), **equation.params)
            return [Known(each) for each in (found if equation.primitive.multiple_results else [found])]
        if name in SAME:
            return operands
        if name == "unstack":  # of JAX 0.11
            return self._unstacked(
                operands[0], equation.params["axis"], [var.aval for var in equation.outvars]
            )
        if len(equation.outvars) > 1:
            raise _unknown(name)
        return [self._written(equation, operands, equation.outvars[0].aval)]

    def _written(self, equation: JaxprEqn, operands: list[Any], made: Any) -> int:
        name, given, options = equation.primitive.name, equation.params, dict[str, Any]()
        name = RENAMED.get(name, name)
        if name in OPTIONS:
            options = OPTIONS[name](given, made)
        elif name == "broadcast_in_dim":
            places = dict(zip(given["broadcast_dimensions"], self._shape(operands[0]), strict=True))
            options = {"through": [places.get(axis, 1) for axis in range(len(made.shape))]}
            options["shape"] = made.shape
            operands = operands[:1]
        elif name == "gather" and _takes_rows(given, *map(self._shape, operands)):
            name = "take"
        elif name == "pad":
            return self._padded(operands, given["padding_config"], made)
        elif name == "select_n" and len(operands) == 3:
            name, operands = "where", [operands[0], operands[2], operands[1]]
        elif name == "integer_pow":
            name, operands = "pow", [operands[0], Known(np.asarray(given["y"], made.dtype))]
        elif name == "square":
            name, operands = "mul", [operands[0], operands[0]]
        elif name == "clamp":
            lowest, value, highest = operands
            return self._add("min", [self._add("max", [value, lowest], made), highest], made)
        elif name == "dot_general":
            name, options = _product(given["dimension_numbers"], *map(self._shape, operands))
        elif name == JOINED_PRODUCT:
            rows, weight = operands  # the weights of a policy are known
            name, operands = "matmul", [rows, Known(weight.value.T)]
        elif name not in PLAIN:
            raise _unknown(name)
        return self._add(name, operands, made, **options)

    def _unstacked(self, operand: Any, axis: int, parts: list[Any]) -> list["Known | int"]:
        """Each part is a slice without its axis."""
        shape, found = self._shape(operand), list[Known | int]()
        for place, part in enumerate(parts):
            start, stop = [0] * len(shape), list(shape)
            start[axis], stop[axis] = place, place + 1
            thick = jax.ShapeDtypeStruct([b - a for a, b in zip(start, stop, strict=True)], part.dtype)
            piece = self._add("slice", [operand], thick, start=start, stop=stop, step=[1] * len(shape))
            found.append(self._add("reshape", [piece], part, shape=part.shape))
        return found

    def _padded(self, operands: list[Any], margins: Any, made: Any) -> int:
        """A negative margin removes; the program has a slice and a pad for the two."""
        value, filler = operands
        if any(between for *_, between in margins):
            raise UsageError("the policy pads between cells, which these files cannot hold: use .stablehlo")
        shape = self._shape(value)
        start = [max(-before, 0) for before, _, _ in margins]
        stop = [size - max(-after, 0) for size, (_, after, _) in zip(shape, margins, strict=True)]
        if start != [0] * len(shape) or tuple(stop) != shape:
            less = jax.ShapeDtypeStruct([b - a for a, b in zip(start, stop, strict=True)], made.dtype)
            value = self._add("slice", [value], less, start=start, stop=stop, step=[1] * len(shape))
        sides = [(max(before, 0), max(after, 0)) for before, after, _ in margins]
        return self._add("pad", [value, filler], made, sides=sides)

    def _shape(self, operand: Any) -> tuple[int, ...]:
        return np.shape(operand.value) if isinstance(operand, Known) else self.program.shapes[operand][0]

    def _add(self, name: str, operands: list[Any], made: Any, **options: Any) -> int:
        numbers, result = tuple(map(self.number, operands)), self.new(made.shape, made.dtype)
        self.program.operations.append(Operation(name, numbers, result, _plain(options)))
        return result


def _unknown(name: str) -> UsageError:
    return UsageError(f"the policy uses {name}, which these files cannot hold: export it as policy.stablehlo")


def _takes_rows(given: Any, table: tuple[int, ...], rows: tuple[int, ...]) -> bool:
    """Is it table[rows], of whole rows?"""
    numbers = given["dimension_numbers"]
    return (
        rows[1:] == (1,)
        and tuple(given["slice_sizes"]) == (1, *table[1:])
        and (numbers.collapsed_slice_dims, numbers.start_index_map) == ((0,), (0,))
        and numbers.offset_dims == tuple(range(1, len(table)))
    )


def _product(numbers: Any, left: tuple[int, ...], right: tuple[int, ...]) -> tuple[str, dict[str, Any]]:
    """A matrix product where it is one; otherwise an Einstein sum."""
    (left_sum, right_sum), (left_batch, right_batch) = numbers
    if (
        not left_batch
        and len(right) == 2
        and tuple(right_sum) == (0,)
        and tuple(left_sum) == (len(left) - 1,)
    ):
        return "matmul", {}
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    one = [next(letters) for _ in left]
    other = [next(letters) for _ in right]
    for here, there in zip((*left_sum, *left_batch), (*right_sum, *right_batch), strict=True):
        other[there] = one[here]
    free = [letter for axis, letter in enumerate(one) if axis not in (*left_sum, *left_batch)]
    free += [letter for axis, letter in enumerate(other) if axis not in (*right_sum, *right_batch)]
    batch = [one[axis] for axis in left_batch]
    return "einsum", {"sum": f"{''.join(one)},{''.join(other)}->{''.join([*batch, *free])}"}


def _plain(value: Any) -> Any:
    """Tuples and NumPy numbers as JSON has them."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, (int, np.integer)) else value


def size_in_words(program: Program) -> str:
    count = sum(math.prod(array.shape) for array in program.constants.values())
    return f"{len(program.operations)} operations, {count:,} numbers"
