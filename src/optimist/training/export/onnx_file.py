"""A program as an ONNX file, which runs wherever ONNX does.

The input is one observation, and `allowed`, a mask of the allowed actions, if the log has masks. The output
`action` is the number of the action or the action vector. If the observation holds NaN or infinity, or the
mask no true value, it is -1 or NaN, because ONNX cannot raise an error; if the actions have names, the output
`name` is the name, or -1 or "". If only some names are texts, it has all of them as texts.
"""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from optimist.training.export.program import Operation, Program

OPSET, IR_VERSION = 18, 10  # read by every runtime since the end of 2023
NODES = {
    **{"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Max", "min": "Min", "pow": "Pow"},
    **{"lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual", "eq": "Equal"},
    **{"and": "And", "or": "Or", "not": "Not", "exp": "Exp", "log": "Log", "tanh": "Tanh"},
    **{"sqrt": "Sqrt", "abs": "Abs", "neg": "Neg", "sign": "Sign", "sin": "Sin", "cos": "Cos"},
    **{"logistic": "Sigmoid", "matmul": "MatMul", "where": "Where"},
}
ARGUMENTS = ("observation", "allowed")
REDUCTIONS = {"reduce_sum": "ReduceSum", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin"}


class _Graph:
    def __init__(self, program: Program):
        self.program, self.nodes, self.constants = program, list[Any](), list[Any]()
        self.truths = {self.name(value) for value, (_, dtype) in program.shapes.items() if dtype == "bool"}
        for number, array in program.constants.items():
            self.constants.append(numpy_helper.from_array(array, self.name(number)))

    def name(self, value: int) -> str:
        return ARGUMENTS[value] if value < self.program.arguments else f"v{value}"

    def node(self, kind: str, *operands: str, into: str | None = None, **options: Any) -> str:
        result = into or f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, operands, [result], **options))
        return result

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        name = f"k{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def add(self, operation: Operation) -> None:
        name, numbers, result, options = operation
        operands, into = [self.name(number) for number in numbers], self.name(result)
        if name in NODES:
            self.node(NODES[name], *operands, into=into)
        elif name in REDUCTIONS:
            self.node(REDUCTIONS[name], *operands, self.constant(options["axes"]), into=into, keepdims=0)
        else:
            getattr(self, f"_{name}")(into, *operands, **options)

    def _ne(self, into: str, one: str, other: str) -> None:
        self.node("Not", self.node("Equal", one, other), into=into)

    def _rsqrt(self, into: str, value: str) -> None:
        self.node("Reciprocal", self.node("Sqrt", value), into=into)

    def _is_finite(self, into: str, value: str) -> None:
        self.node("Not", self.bad(value), into=into)

    def bad(self, value: str) -> str:
        return self.node("Or", self.node("IsNaN", value), self.node("IsInf", value))

    def _einsum(self, into: str, *values: str, sum: str) -> None:
        self.node("Einsum", *values, into=into, equation=sum)

    def _cast(self, into: str, value: str, dtype: str) -> None:
        self.node("Cast", value, into=into, to=_type(dtype))

    def _reshape(self, into: str, value: str, shape: list[int]) -> None:
        self.node("Reshape", value, self.constant(shape), into=into)

    def _broadcast_in_dim(self, into: str, value: str, through: Any, shape: Any) -> None:
        self.node(
            "Expand", self.node("Reshape", value, self.constant(through)), self.constant(shape), into=into
        )

    def _argmax(self, into: str, value: str, axis: int, dtype: str, kind: str = "ArgMax") -> None:
        if value in self.truths:  # which ONNX does not compare
            value = self.node("Cast", value, to=TensorProto.INT32)
        self._cast(into, self.node(kind, value, axis=axis, keepdims=0), dtype)

    _argmin = functools.partialmethod(_argmax, kind="ArgMin")

    def _take(self, into: str, table: str, rows: str) -> None:
        self.node("Gather", table, self.node("Reshape", rows, self.constant([-1])), into=into)

    def _transpose(self, into: str, value: str, order: list[int]) -> None:
        self.node("Transpose", value, into=into, perm=order)

    def _rev(self, into: str, value: str, axes: list[int]) -> None:
        backward = [-1] * len(axes)
        self._slice(into, value, backward, [np.iinfo(np.int64).min] * len(axes), backward, axes)

    def _concatenate(self, into: str, *values: str, axis: int) -> None:
        self.node("Concat", *values, into=into, axis=axis)

    def _slice(self, into: str, value: str, start: Any, stop: Any, step: Any, axes: Any = None) -> None:
        axes = list(range(len(start))) if axes is None else axes
        self.node("Slice", value, *map(self.constant, (start, stop, axes, step)), into=into)

    def _pad(self, into: str, value: str, filler: str, sides: list[list[int]]) -> None:
        before, after = zip(*sides, strict=True)
        self.node("Pad", value, self.constant([*before, *after]), filler, into=into)

    def _dynamic_slice(self, into: str, value: str, *starts: str, sizes: list[int]) -> None:
        parts = [
            self.node("Reshape", self.node("Cast", start, to=TensorProto.INT64), self.constant([1]))
            for start in starts
        ]
        last = self.node("Sub", self.node("Shape", value), self.constant(sizes))
        start = self.node("Min", self.node("Concat", *parts, axis=0), last)
        start = self.node("Max", start, self.constant([0] * len(sizes)))
        stop = self.node("Add", start, self.constant(sizes))
        self.node("Slice", value, start, stop, self.constant(list(range(len(sizes)))), into=into)


def content(program: Program, facts: dict[str, Any]) -> bytes:
    """The bytes of the file."""
    graph = _Graph(program)
    for operation in program.operations:
        graph.add(operation)
    made, kind = program.shapes[program.result]
    action = graph.name(program.result)
    for value in range(program.arguments):
        (shape, dtype), name, is_mask = program.shapes[value], graph.name(value), value == 1
        if is_mask or np.dtype(dtype).kind == "f":  # it may hold nonsense
            flags = graph.node("Cast", name if is_mask else graph.bad(name), to=TensorProto.INT32)
            some = graph.node("ReduceMax", flags, graph.constant(list(range(len(shape)))), keepdims=0)
            some = graph.node("Cast", some, to=TensorProto.BOOL)
            instead = graph.constant(-1 if facts["actions"] else np.nan, kind)
            action = graph.node("Where", graph.node("Not", some) if is_mask else some, instead, action)
    graph.node("Identity", action, into="action")
    outputs = [helper.make_tensor_value_info("action", _type(kind), made)]
    if names := facts["action_names"]:
        texts = any(isinstance(name, str) for name in names)
        known = [*map(str, names), ""] if texts else [*names, -1]  # action -1 is the last
        listed = graph.constant(known, object if texts else np.int64)
        graph.node("Gather", listed, "action", into="name")
        name_type = TensorProto.STRING if texts else TensorProto.INT64
        outputs.append(helper.make_tensor_value_info("name", name_type, made))
    inputs = [
        helper.make_tensor_value_info(
            graph.name(value), _type(program.shapes[value][1]), program.shapes[value][0]
        )
        for value in range(program.arguments)
    ]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "policy", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="optimist",
    )
    helper.set_model_props(model, {name: json.dumps(value) for name, value in facts.items()})
    onnx.checker.check_model(model)
    return model.SerializeToString()


def _type(dtype: str) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def runner(path: Path) -> Callable[..., Any]:
    """The file as a function of its arguments; ImportError without onnxruntime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda *given: session.run(["action"], dict(zip(ARGUMENTS, given, strict=False)))[0]
