"""A program as an ONNX file, which runs wherever ONNX does.

The input is one observation, and `allowed`, a mask of the allowed actions, if the log has masks. The output
`action` is the number of the action or the action vector. If the observation holds NaN or infinity, or the
mask no true value, it is -1 or NaN, because ONNX cannot raise an error; if the actions have names, the output
`name` is the name, or -1 or "". If only some names are texts, it has all of them as texts.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from optimist.training.export.program import Operation, Program

OPSET, IR_VERSION = 18, 10  # read by every runtime since the end of 2023
NODES = {
    **{"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Max", "min": "Min", "pow": "Pow"},
    **{
        "lt": "Less",
        "le": "LessOrEqual",
        "gt": "Greater",
        "ge": "GreaterOrEqual",
        "eq": "Equal",
        "and": "And",
    },
    **{"or": "Or", "not": "Not", "exp": "Exp", "log": "Log", "tanh": "Tanh", "logistic": "Sigmoid"},
    **{"sqrt": "Sqrt", "abs": "Abs", "neg": "Neg", "sign": "Sign", "sin": "Sin", "cos": "Cos"},
    **{"matmul": "MatMul", "where": "Where"},
}
ARGUMENTS = ("observation", "allowed")
REDUCTIONS = {"reduce_sum": "ReduceSum", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin"}


class _Graph:
    def __init__(self, program: Program):
        self.program, self.nodes, self.constants = program, list[Any](), list[Any]()
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
            getattr(self, f"_{name}")(operands, into, numbers, **options)

    def _ne(self, operands: list[str], into: str, numbers: Any) -> None:
        self.node("Not", self.node("Equal", *operands), into=into)

    def _rsqrt(self, operands: list[str], into: str, numbers: Any) -> None:
        self.node("Reciprocal", self.node("Sqrt", *operands), into=into)

    def _is_finite(self, operands: list[str], into: str, numbers: Any) -> None:
        self.node("Not", self.bad(*operands), into=into)

    def bad(self, value: str) -> str:
        return self.node("Or", self.node("IsNaN", value), self.node("IsInf", value))

    def _einsum(self, operands: list[str], into: str, numbers: Any, sum: str) -> None:
        self.node("Einsum", *operands, into=into, equation=sum)

    def _cast(self, operands: list[str], into: str, numbers: Any, dtype: str) -> None:
        self.node("Cast", *operands, into=into, to=_type(dtype))

    def _reshape(self, operands: list[str], into: str, numbers: Any, shape: list[int]) -> None:
        self.node("Reshape", *operands, self.constant(shape), into=into)

    def _broadcast_in_dim(
        self, operands: list[str], into: str, numbers: Any, through: Any, shape: Any
    ) -> None:
        through = self.node("Reshape", *operands, self.constant(through))
        self.node("Expand", through, self.constant(shape), into=into)

    def _argmax(self, operands: list[str], into: str, numbers: Any, axis: int, dtype: str) -> None:
        if self.program.shapes[numbers[0]][1] == "bool":  # which ONNX does not compare
            operands = [self.node("Cast", *operands, to=TensorProto.INT32)]
        found = self.node("ArgMax", *operands, axis=axis, keepdims=0)
        self.node("Cast", found, into=into, to=_type(dtype))

    def _argmin(self, operands: list[str], into: str, numbers: Any, axis: int, dtype: str) -> None:
        found = self.node("ArgMin", *operands, axis=axis, keepdims=0)
        self.node("Cast", found, into=into, to=_type(dtype))

    def _take(self, operands: list[str], into: str, numbers: Any) -> None:
        table, rows = operands
        self.node("Gather", table, self.node("Reshape", rows, self.constant([-1])), into=into)

    def _transpose(self, operands: list[str], into: str, numbers: Any, order: list[int]) -> None:
        self.node("Transpose", *operands, into=into, perm=order)

    def _rev(self, operands: list[str], into: str, numbers: Any, axes: list[int]) -> None:
        backward = ([-1] * len(axes), [np.iinfo(np.int64).min] * len(axes), axes, [-1] * len(axes))
        self.node("Slice", *operands, *map(self.constant, backward), into=into)

    def _concatenate(self, operands: list[str], into: str, numbers: Any, axis: int) -> None:
        self.node("Concat", *operands, into=into, axis=axis)

    def _slice(self, operands: list[str], into: str, numbers: Any, start: Any, stop: Any, step: Any) -> None:
        axes = range(len(start))
        self.node("Slice", *operands, *map(self.constant, (start, stop, list(axes), step)), into=into)

    def _pad(self, operands: list[str], into: str, numbers: Any, sides: list[list[int]]) -> None:
        value, filler = operands
        before, after = zip(*sides, strict=True)
        self.node("Pad", value, self.constant([*before, *after]), filler, into=into)

    def _dynamic_slice(self, operands: list[str], into: str, numbers: Any, sizes: list[int]) -> None:
        value, *starts = operands
        shape, _ = self.program.shapes[numbers[0]]
        parts = [
            self.node("Reshape", self.node("Cast", start, to=TensorProto.INT64), self.constant([1]))
            for start in starts
        ]
        start = self.node("Concat", *parts, axis=0)
        last = [whole - size for whole, size in zip(shape, sizes, strict=True)]
        start = self.node(
            "Max", self.node("Min", start, self.constant(last)), self.constant([0] * len(sizes))
        )
        stop = self.node("Add", start, self.constant(sizes))
        self.node("Slice", value, start, stop, self.constant(list(range(len(sizes)))), into=into)


def content(program: Program, facts: dict[str, Any]) -> bytes:
    """The bytes of the file."""
    graph = _Graph(program)
    for operation in program.operations:
        graph.add(operation)
    made, kind = program.shapes[program.result]
    action = graph.name(program.result)
    for refused in _refusals(graph):
        instead = graph.constant(-1 if facts["actions"] else np.nan, kind)
        action = graph.node("Where", refused, instead, action)
    graph.node("Identity", action, into="action")
    outputs = [helper.make_tensor_value_info("action", _type(kind), made)]
    if names := facts["action_names"]:
        texts = any(isinstance(name, str) for name in names)
        known = [*map(str, names), ""] if texts else [*names, -1]  # action -1 is the last
        listed = graph.constant(known, object if texts else np.int64)
        graph.node("Gather", listed, "action", into="name")
        outputs.append(
            helper.make_tensor_value_info("name", TensorProto.STRING if texts else TensorProto.INT64, made)
        )
    return _model(graph, outputs, facts)


def _refusals(graph: _Graph) -> Iterator[str]:
    """For each argument that may hold nonsense, whether it does."""
    for value in range(graph.program.arguments):
        (shape, dtype), name = graph.program.shapes[value], graph.name(value)
        is_mask = value == ARGUMENTS.index("allowed")
        if is_mask or np.dtype(dtype).kind == "f":
            flags = graph.node("Cast", name if is_mask else graph.bad(name), to=TensorProto.INT32)
            some = graph.node("ReduceMax", flags, graph.constant(list(range(len(shape)))), keepdims=0)
            some = graph.node("Cast", some, to=TensorProto.BOOL)
            yield graph.node("Not", some) if is_mask else some


def _model(graph: _Graph, outputs: list[Any], facts: dict[str, Any]) -> bytes:
    inputs = [
        helper.make_tensor_value_info(graph.name(value), _type(dtype), shape)
        for value, (shape, dtype) in list(graph.program.shapes.items())[: graph.program.arguments]
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
