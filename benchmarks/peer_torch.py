"""PyTorch and d3rlpy at our sizes; run by the Python of the peers' environment, never imported by us.

`python peer_torch.py '{"form": "eager", "agent": "rem", "network": "minatar", "batch": 32}'` prints
{"form": ...} when it is ready, or {"problem": ...}. For each line on its input it makes some updates and
prints {"updates": ...}.

The forms: "eager" is PyTorch as most people write it, with the fastest number of threads. "tuned" has
channels-last images, a fused Adam and heads that are mixed before their product; on a GPU it is a CUDA graph.
"compiled" is the tuned form with losses and targets by torch.compile. "d3rlpy" is that library's own update.
"""

import copy
import json
import os
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

TRANSITIONS = {"minatar": 50_000, "nature": 5_000, "control": 50_000}
HEADS = {"rem": 200, "dqn": 1}
ACTIONS = {"minatar": 3, "nature": 18, "control": 6}
OBSERVATION = 17  # numbers in an observation of HalfCheetah
TRIAL = 0.5  # seconds for which each number of threads is tried
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def torso(network: str) -> nn.Sequential:
    """Our torsos in PyTorch, with the padding that TensorFlow calls SAME."""
    if network == "minatar":
        return nn.Sequential(
            nn.Conv2d(4, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 8 * 16, 128), nn.ReLU()
        )
    return nn.Sequential(
        *(nn.Conv2d(4, 32, 8, 4, padding=2), nn.ReLU()),
        *(nn.ZeroPad2d((1, 2, 1, 2)), nn.Conv2d(32, 64, 4, 2), nn.ReLU()),
        *(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(11 * 11 * 64, 512), nn.ReLU()),
    )


class Table(nn.Module):
    """A torso with (actions x heads) outputs, mixed by alpha: before the product if `folded`."""

    def __init__(self, network: str, heads: int, folded: bool):
        super().__init__()
        self.shape, self.folded = (ACTIONS[network], heads), folded
        self.torso = torso(network)
        self.heads = nn.Linear(128 if network == "minatar" else 512, ACTIONS[network] * heads)

    def forward(self, observation, alpha):
        features = self.torso(observation)
        if not self.folded:
            return self.heads(features).view(-1, *self.shape) @ alpha
        weight = torch.einsum("akf,k->af", self.heads.weight.view(*self.shape, -1), alpha)
        return functional.linear(features, weight, self.heads.bias.view(self.shape) @ alpha)


class TableUpdates:
    """DQN or REM with Adam; `step()` is one update."""

    period = 1

    def __init__(self, agent: str, network: str, batch: int, tuned: bool, compiled: bool = False):
        random, count = np.random.default_rng(0), TRANSITIONS[network]
        size = (10, 10) if network == "minatar" else (84, 84)
        frames = random.integers(0, 256, (count, 4, *size), np.uint8)
        self.scale = 1.0 if network == "minatar" else 1 / 255
        self.frames = torch.from_numpy(frames < 26 if network == "minatar" else frames).to(DEVICE)
        self.memory = torch.channels_last if tuned else torch.contiguous_format
        self.actions = torch.from_numpy(random.integers(0, ACTIONS[network], count)).to(DEVICE)
        self.rewards = torch.rand(count, device=DEVICE)
        self.discounts = 0.99 * (torch.rand(count, device=DEVICE) > 0.01)
        self.batch, self.heads, self.count = batch, HEADS[agent], count
        self.online = Table(network, self.heads, folded=tuned).to(DEVICE, memory_format=self.memory)
        self.target = copy.deepcopy(self.online)
        self.adam = adam(self.online.parameters(), tuned)
        self.loss = torch.compile(self._loss) if compiled else self._loss

    def observations(self, index):
        return (self.frames[index].float() * self.scale).contiguous(memory_format=self.memory)

    def step(self) -> None:
        index = torch.randint(0, self.count - 1, (self.batch,), device=DEVICE)
        alpha = torch.rand(self.heads, device=DEVICE)
        descend(self.loss(index, alpha / alpha.sum()), self.adam)

    def _loss(self, index, alpha):
        with torch.no_grad():
            best = self.target(self.observations(index + 1), alpha).max(dim=1).values
            target = self.rewards[index] + self.discounts[index] * best
        value = self.online(self.observations(index), alpha)
        chosen = value.gather(1, self.actions[index, None]).squeeze(1)
        return functional.smooth_l1_loss(chosen, target)


def perceptron(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, 400), nn.ReLU(), nn.Linear(400, 300), nn.ReLU(), nn.Linear(300, outputs)
    )


class Td3Updates:
    """TD3 with Adam; `step()` is one update, the actor's every other time."""

    period = 2

    def __init__(self, batch: int, tuned: bool, compiled: bool):
        count, width = TRANSITIONS["control"], ACTIONS["control"]
        self.observations = torch.randn(count, OBSERVATION, device=DEVICE)
        self.actions = 2 * torch.rand(count, width, device=DEVICE) - 1
        self.rewards = torch.rand(count, device=DEVICE)
        self.discounts = 0.99 * (torch.rand(count, device=DEVICE) > 0.001)
        self.actor = nn.Sequential(perceptron(OBSERVATION, width), nn.Tanh()).to(DEVICE)
        self.critics = nn.ModuleList(perceptron(OBSERVATION + width, 1) for _ in range(2)).to(DEVICE)
        self.target_actor, self.target_critics = copy.deepcopy(self.actor), copy.deepcopy(self.critics)
        self.adams = [adam(net.parameters(), tuned) for net in (self.actor, self.critics)]
        self.batch, self.count, self.done = batch, count, 0
        self.critic_loss = torch.compile(self._critic_loss) if compiled else self._critic_loss
        self.actor_loss = torch.compile(self._actor_loss) if compiled else self._actor_loss

    def step(self) -> None:
        index = torch.randint(0, self.count - 1, (self.batch,), device=DEVICE)
        descend(self.critic_loss(index), self.adams[1])
        if self.done % 2 == 0:
            descend(self.actor_loss(index), self.adams[0])
            self._follow()
        self.done += 1

    def _critic_loss(self, index):
        target, both = self._target(index), torch.cat([self.observations[index], self.actions[index]], dim=1)
        losses = [functional.mse_loss(critic(both).squeeze(1), target) for critic in self.critics]
        return losses[0] + losses[1]

    def _actor_loss(self, index):
        observation = self.observations[index]
        acted = torch.cat([observation, self.actor(observation)], dim=1)
        return -self.critics[0](acted).mean()

    @torch.no_grad()
    def _target(self, index):
        following = self.observations[index + 1]
        noise = (0.2 * torch.randn_like(self.actions[index])).clamp(-0.5, 0.5)
        acted = torch.cat([following, (self.target_actor(following) + noise).clamp(-1, 1)], dim=1)
        least = torch.min(*(critic(acted).squeeze(1) for critic in self.target_critics))
        return self.rewards[index] + self.discounts[index] * least

    @torch.no_grad()
    def _follow(self) -> None:
        pairs = ((self.actor, self.target_actor), (self.critics, self.target_critics))
        for net, target in pairs:
            torch._foreach_lerp_(list(target.parameters()), list(net.parameters()), 0.005)


def adam(parameters, tuned: bool):
    return torch.optim.Adam(
        parameters, lr=5e-5, eps=0.01 / 32, fused=tuned or None, capturable=tuned and DEVICE == "cuda"
    )


def descend(loss, adam) -> None:
    adam.zero_grad()
    loss.backward()
    adam.step()


class D3rlpyUpdates:
    """An update of d3rlpy: DQN or TD3 on a minibatch of the same size, drawn uniformly."""

    period = 1

    def __init__(self, agent: str, network: str, batch: int):
        from d3rlpy.algos import DQNConfig, TD3Config
        from d3rlpy.models.encoders import PixelEncoderFactory, VectorEncoderFactory

        random, count = np.random.default_rng(0), TRANSITIONS[network]
        frames: np.ndarray
        actions: np.ndarray
        if agent == "td3":
            encoder = VectorEncoderFactory([400, 300])
            config = TD3Config(
                batch_size=batch, actor_encoder_factory=encoder, critic_encoder_factory=encoder
            )
            frames = random.normal(size=(count, OBSERVATION)).astype(np.float32)
            actions = random.uniform(-1, 1, (count, ACTIONS[network])).astype(np.float32)
        else:
            encoder = (
                PixelEncoderFactory(filters=[[16, 3, 1]], feature_size=128)
                if network == "minatar"
                else PixelEncoderFactory(feature_size=512)  # 3,136 features before the dense layer, not 7,744
            )
            config = DQNConfig(batch_size=batch, encoder_factory=encoder)
            size = (10, 10) if network == "minatar" else (84, 84)
            frames = random.integers(0, 256, (count, 4, *size), np.uint8)
            actions = random.integers(0, ACTIONS[network], (count, 1))
        self.agent = config.create(device="cuda:0" if DEVICE == "cuda" else "cpu:0")
        self.agent.create_impl(frames.shape[1:], ACTIONS[network])
        self.frames, self.actions, self.batch, self.random = frames, actions, batch, random

    def step(self) -> None:
        from d3rlpy.dataset import TransitionMiniBatch

        rows = self.random.integers(len(self.frames) - 1, size=self.batch)
        ones = np.ones((self.batch, 1), np.float32)
        self.agent.update(
            TransitionMiniBatch(
                observations=self.frames[rows].astype(np.float32),
                actions=self.actions[rows].astype(np.float32),
                rewards=ones,
                next_observations=self.frames[rows + 1].astype(np.float32),
                next_actions=self.actions[rows + 1].astype(np.float32),
                terminals=0 * ones,
                intervals=ones,
                transitions=[],
            )
        )


def waited(step, times: int) -> float:
    """The seconds that this many steps take."""
    start = time.perf_counter()
    for _ in range(times):
        step()
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def fastest_threads(step, cores: int) -> int:
    """The number of threads with the shortest step; threads that share a core wait for each other."""
    found = {}
    for threads in range(1, cores + 1):
        torch.set_num_threads(threads)
        step()
        found[threads] = min(waited(step, 3) for _ in range(3))
    best = min(found, key=lambda threads: found[threads])
    torch.set_num_threads(best)
    return best


def graphed(updates):
    """The steps of one period, recorded as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        waited(updates.step, 4 * updates.period)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(updates.period):
            updates.step()
    return graph.replay


def prepared(form: str, agent: str, network: str, batch: int):
    """A function that makes some updates, their number, and a description."""
    updates: D3rlpyUpdates | Td3Updates | TableUpdates
    how = {"tuned": form in ("tuned", "compiled"), "compiled": form == "compiled"}
    if form == "d3rlpy":
        updates = D3rlpyUpdates(agent, network, batch)
    elif network == "control":
        updates = Td3Updates(batch, **how)
    else:
        updates = TableUpdates(agent, network, batch, **how)
    words = {"tuned": "channels-last, fused Adam", "compiled": "torch.compile, channels-last, fused Adam"}
    said = words.get(form, form)
    if how["tuned"] and DEVICE == "cuda":
        return graphed(updates), updates.period, f"CUDA graph, {said}"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = fastest_threads(updates.step, cores) if DEVICE == "cpu" else torch.get_num_threads()
    return updates.step, 1, f"{said}, {threads} thread{'s' if threads > 1 else ''}"


def main(settings: dict) -> None:
    answers = sys.stdout
    sys.stdout = sys.stderr  # libraries may print too: their lines are not answers
    try:
        step, updates, form = prepared(**settings)
        enough = max(1, int(TRIAL / 5 / (waited(step, 3) / 3)))
    except Exception as problem:
        print(json.dumps({"problem": f"{type(problem).__name__}: {problem}"}), file=answers, flush=True)
        return
    version = f"torch {torch.__version__}"
    print(json.dumps({"form": form, "version": version}), file=answers, flush=True)
    for _ in sys.stdin:
        waited(step, enough)
        print(json.dumps({"updates": enough * updates}), file=answers, flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
