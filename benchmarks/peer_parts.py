"""For comparison: the parts of an update in compiled PyTorch. Run by a Python that has torch; prints JSON.

The names of the parts and the timing, which do not need torch, serve both sides.
"""

import json
import os
import sys
import time
from pathlib import Path

BATCH, UPDATES, ROUNDS = int(os.environ.get("BATCH", "32")), int(os.environ.get("UPDATES", "10")), 4
TIMED = slice(-1, None) if "WHOLE" in os.environ else slice(None)  # of the programs
HEADS, ACTIONS = 200, 18
PARTS = (
    "the minibatch",
    "forward, convolution 1, both networks",
    "forward, convolution 2",
    "forward, convolution 3",
    "forward, dense layer",
    "heads and loss",
    "backward, heads",
    "backward, weights of the dense layer",
    "backward, its inputs, weights of convolution 3",
    "backward, its inputs, weights of convolution 2",
    "backward, its inputs, weights of convolution 1",
    "Adam",
)


def least(program) -> float:
    """Milliseconds of processor time of one update, the least of some rounds."""
    program()
    found = []
    for _ in range(ROUNDS):
        start = time.process_time()
        program()
        found.append((time.process_time() - start) / UPDATES * 1000)
    return min(found)


def programs() -> list:
    """One function for each part, which makes UPDATES updates up to this part."""
    import torch
    from torch.nn import functional

    sys.path.insert(0, str(Path(__file__).parents[1] / "src" / "optimist" / "studies" / "bench"))
    import peer_program

    peer_program.TRANSITIONS["nature"] = 1000
    torch.set_num_threads(1)
    updates = peer_program.TableUpdates("rem", "nature", BATCH, tuned=True, compiled=True)
    layers, starts = (
        list(updates.online.torso),
        (0, 2, 5, 7),
    )  # of convolutions 1 to 3, and of the dense layer
    ends = (2, 5, 7, 10)
    alpha = torch.full((HEADS,), 1 / HEADS)

    def read(index):
        return updates.observations(index).mean() + updates.observations(index + 1).mean()

    def forward(end):
        def both(index):
            x, y = updates.observations(index), updates.observations(index + 1)
            for mine, target in zip(layers[:end], list(updates.target.torso)[:end], strict=True):
                x, y = mine(x), target(y)
            return x, y

        return torch.no_grad()(both)

    def loss(index, start):
        x = updates.observations(index)
        for place, layer in enumerate(layers):
            x = layer(x.detach() if place == start else x)
        x = x.detach() if start == len(layers) else x
        table = updates.online
        weight = torch.einsum("akf,k->af", table.heads.weight.view(*table.shape, -1), alpha)
        value = functional.linear(x, weight, table.heads.bias.view(table.shape) @ alpha)
        with torch.no_grad():
            best = updates.target(updates.observations(index + 1), alpha).max(dim=1).values
            goal = updates.rewards[index] + updates.discounts[index] * best
        return functional.smooth_l1_loss(value.gather(1, updates.actions[index, None]).squeeze(1), goal)

    def repeated(part, start=None):
        compiled = torch.compile(part)

        def every():
            for place, layer in enumerate(layers):
                layer.requires_grad_(start is not None and place >= start)
            for _ in range(UPDATES):
                found = compiled(torch.randint(0, updates.count - 1, (BATCH,)))
                if start is not None:
                    updates.adam.zero_grad()
                    found.backward()

        return every

    def value(index):
        with torch.no_grad():
            return loss(index, None)

    def backward(start):
        return repeated(lambda index: loss(index, start), start)

    def whole():
        updates.online.requires_grad_(True)
        for _ in range(UPDATES):
            updates.step()

    below = [len(layers), *reversed(starts)]
    return [*map(repeated, (read, *map(forward, ends), value)), *map(backward, below), whole]


if __name__ == "__main__":
    import torch

    torch._dynamo.config.cache_size_limit = 64
    print(json.dumps([least(program) for program in programs()[TIMED]]))
