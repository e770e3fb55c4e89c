"""Runs a policy that Optimist exported as policy.npz. It needs only NumPy: copy both files to where you act.

    policy = NumpyPolicy("policy.npz")
    action = policy(observation)        # as logged

If the observation is a stack of frames, they are on its last axis, the oldest first. Or frame by frame:

    policy.reset()                      # a new episode begins
    action = policy.see(frame)
"""

import json

import numpy as np

OPERATIONS: dict = {
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power},
    **{"max": np.maximum, "min": np.minimum, "lt": np.less, "le": np.less_equal, "gt": np.greater},
    **{
        "ge": np.greater_equal,
        "eq": np.equal,
        "ne": np.not_equal,
        "and": np.logical_and,
        "or": np.logical_or,
    },
    **{"not": np.logical_not, "exp": np.exp, "log": np.log, "tanh": np.tanh, "sqrt": np.sqrt, "abs": np.abs},
    **{"neg": np.negative, "sign": np.sign, "sin": np.sin, "cos": np.cos, "is_finite": np.isfinite},
    **{"matmul": np.matmul, "where": np.where},
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "einsum": lambda *arrays, sum: np.einsum(sum, *arrays),
    "cast": lambda x, dtype: np.asarray(x).astype(dtype),
    "reshape": lambda x, shape: np.reshape(x, shape),
    "broadcast_in_dim": lambda x, through, shape: np.broadcast_to(np.reshape(x, through), shape),
    "reduce_sum": lambda x, axes: np.sum(x, axis=tuple(axes), dtype=x.dtype),
    "reduce_max": lambda x, axes: np.max(x, axis=tuple(axes)),
    "reduce_min": lambda x, axes: np.min(x, axis=tuple(axes)),
    "argmax": lambda x, axis, dtype: np.argmax(x, axis=axis).astype(dtype),
    "argmin": lambda x, axis, dtype: np.argmin(x, axis=axis).astype(dtype),
    "rev": lambda x, axes: np.flip(x, axes),
    "transpose": lambda x, order: np.transpose(x, order),
    "concatenate": lambda *arrays, axis: np.concatenate(arrays, axis=axis),
    "slice": lambda x, start, stop, step: x[tuple(map(slice, start, stop, step))],
    "pad": lambda x, filler, sides: np.pad(x, sides, constant_values=filler),
    "dynamic_slice": lambda x, *start, sizes: x[
        tuple(
            slice(at, at + size)
            for at, size in zip(
                (int(np.clip(a, 0, n - s)) for a, n, s in zip(start, x.shape, sizes, strict=True)),
                sizes,
                strict=True,
            )
        )
    ],
}


class NumpyPolicy:
    """A function of one observation; `facts` says what it was trained on."""

    def __init__(self, path):
        with np.load(path, allow_pickle=False) as file:
            record = json.loads(str(file["program"]))
            self._constants = {int(name[1:]): file[name] for name in file.files if name[0] == "c"}
        self.facts, self._result = record["facts"], record["result"]
        self._steps = [
            (OPERATIONS[name], operands, result, options)
            for name, operands, result, options in record["operations"]
        ]
        self.reset()

    def reset(self):
        """A new episode begins: there are no earlier frames."""
        self._seen = np.zeros(self.facts["observation_shape"], self.facts["dtype"])

    def see(self, frame):
        """The action after this frame and the earlier ones of the episode."""
        frame = self._checked(frame, self.facts["frame_shape"])
        self._seen = np.concatenate([self._seen[..., frame.shape[-1] :], frame], axis=-1)
        return self(self._seen)

    def __call__(self, observation):
        values = {**self._constants, 0: self._checked(observation, self.facts["observation_shape"])}
        with np.errstate(all="ignore"):  # a mask may divide or take a logarithm of zero, as in training
            for operation, operands, result, options in self._steps:
                values[result] = operation(*(values[number] for number in operands), **options)
        action = values[self._result]
        names = self.facts["action_names"]
        return (names[int(action)] if names else int(action)) if self.facts["actions"] else np.asarray(action)

    def _checked(self, observation, shape):
        found = np.asarray(observation)
        if list(found.shape) != list(shape):
            raise ValueError(f"an observation of shape {found.shape}: this policy takes {tuple(shape)}")
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise ValueError("the observation holds NaN or infinity: this policy takes finite numbers")
        return found.astype(self.facts["dtype"])
