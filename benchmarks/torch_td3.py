"""For comparison: TD3 in eager PyTorch with the same networks, batch, optimiser and data."""

import copy

import torch
from torch import nn
from torch.nn import functional


def perceptron(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, 400), nn.ReLU(), nn.Linear(400, 300), nn.ReLU(), nn.Linear(300, outputs)
    )


class Critics(nn.Module):
    def __init__(self, inputs: int):
        super().__init__()
        self.first, self.second = perceptron(inputs, 1), perceptron(inputs, 1)

    def forward(self, observation, action):
        both = torch.cat([observation, action], dim=1)
        return self.first(both).squeeze(1), self.second(both).squeeze(1)


class EagerTd3:
    """Samples, computes the losses and steps Adam; `step()` is one update, the actor's every other time."""

    def __init__(self, observations, actions, rewards, discounts, batch: int = 100):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        columns = (observations, actions, rewards, discounts)
        self.observations, self.actions, self.rewards, self.discounts = (
            torch.from_numpy(column).to(self.device) for column in columns
        )
        size, width = observations.shape[1], actions.shape[1]
        self.actor = nn.Sequential(perceptron(size, width), nn.Tanh()).to(self.device)
        self.critics = Critics(size + width).to(self.device)
        self.targets = copy.deepcopy((self.actor, self.critics))
        self.adams = [torch.optim.Adam(net.parameters(), lr=5e-4) for net in (self.actor, self.critics)]
        self.batch, self.updates = batch, 0

    def step(self) -> None:
        index = torch.randint(0, len(self.actions), (self.batch,), device=self.device)
        observation, action = self.observations[index], self.actions[index]
        target = self._target(index)
        first, second = self.critics(observation, action)
        self._descend(functional.mse_loss(first, target) + functional.mse_loss(second, target), self.adams[1])
        if self.updates % 2 == 0:
            self._descend(-self.critics.first(self._joined(observation)).mean(), self.adams[0])
            self._follow()
        self.updates += 1

    @torch.no_grad()
    def _target(self, index):
        following = self.observations[index + 1]
        actor, critics = self.targets
        noise = (0.2 * torch.randn_like(self.actions[index])).clamp(-0.5, 0.5)
        action = (actor(following) + noise).clamp(-1, 1)
        return self.rewards[index] + self.discounts[index] * torch.min(*critics(following, action))

    def _joined(self, observation):
        return torch.cat([observation, self.actor(observation)], dim=1)

    def _descend(self, loss, adam) -> None:
        adam.zero_grad()
        loss.backward()
        adam.step()

    @torch.no_grad()
    def _follow(self) -> None:
        for net, target in zip((self.actor, self.critics), self.targets, strict=True):
            for new, old in zip(net.parameters(), target.parameters(), strict=True):
                old.lerp_(new, 0.005)
