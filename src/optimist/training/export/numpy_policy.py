"""Runs a policy that Optimist exported as policy.npz. It needs only NumPy: copy both files to where you act.

    policy = NumpyPolicy("policy.npz")
    action = policy(observation)        # as logged
    action = policy(observation, allowed)   # if the log has masks of allowed actions

If the observation is a stack of frames, their channels follow each other, oldest first. Or frame by frame:

    policy.reset()                      # a new episode begins
    action = policy.see(frame)
"""

import json

import numpy as np

OPERATIONS: dict = {
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power},
    **{"max": np.maximum, "min": np.minimum, "lt": np.less, "le": np.less_equal, "gt": np.greater},
    **{"ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal},
    **{"and": np.logical_and, "or": np.logical_or},
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
    "take": lambda table, rows: np.take(table, rows.reshape(-1), axis=0),
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

    def see(self, frame, allowed=None):
        """The action after this frame and the earlier ones of the episode."""
        frame, axis = self._checked(frame, self.facts["frame_shape"]), self.facts["frames_axis"]
        older = np.split(self._seen, [frame.shape[axis]], axis)[1]
        self._seen = np.concatenate([older, frame], axis)
        return self(self._seen, allowed)

    def __call__(self, observation, allowed=None):
        """The action. `allowed` is true for each action that can be chosen, in the order of their names; it
        is needed if the log has masks."""
        values = {**self._constants, 0: self._checked(observation, self.facts["observation_shape"])}
        if self.facts.get("takes_mask"):
            values[1] = self._mask(allowed)
        elif allowed is not None:
            raise ValueError("this policy takes no mask: its log had none")
        with np.errstate(all="ignore"):  # a mask may divide or take a logarithm of zero, as in training
            for operation, operands, result, options in self._steps:
                values[result] = operation(*(values[number] for number in operands), **options)
        action = values[self._result]
        names = self.facts["action_names"]
        return (names[int(action)] if names else int(action)) if self.facts["actions"] else np.asarray(action)

    def _mask(self, allowed):
        if allowed is None:
            raise ValueError("the log has masks of allowed actions: give policy(observation, allowed)")
        mask = np.asarray(allowed)
        if mask.dtype != bool or mask.shape != (self.facts["actions"],) or not mask.any():
            raise ValueError(f"allowed is not {self.facts['actions']} values of which one at least is true")
        return mask

    def _checked(self, observation, shape):
        found = np.asarray(observation)
        if len(shape) == 3 and list(found.shape) == shape[:2] and shape[2] == 1:
            found = found[..., None]  # the log may have had images without channels
        if list(found.shape) != list(shape):
            raise ValueError(f"an observation of shape {found.shape}: this policy takes {tuple(shape)}")
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise ValueError("the observation holds NaN or infinity: this policy takes finite numbers")
        dtype = np.dtype(self.facts["dtype"])
        if dtype.kind == "f" and found.dtype == np.uint8 and len(shape) == 3:
            raise ValueError(
                "the observation is uint8, and the log's images are floats: make it one like them"
            )
        with np.errstate(all="ignore"):
            taken = found.astype(dtype)
        if dtype.kind != "f" and not (taken == found).all():
            known = "0 or 1" if dtype.kind == "b" else "a whole number from 0 to 255"
            wrong = found[taken != found][0]
            raise ValueError(f"the observation holds {wrong:g}, and in the log each number is {known}")
        return taken
