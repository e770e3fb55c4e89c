"""For comparison: REM in eager PyTorch with the same network, batch, optimiser and data."""

import torch
from torch import nn
from torch.nn import functional


class Network(nn.Module):
    def __init__(self, channels: int, actions: int, heads: int):
        super().__init__()
        self.shape = (actions, heads)
        self.convolution = nn.Conv2d(channels, 16, 3)
        self.hidden = nn.Linear(8 * 8 * 16, 128)
        self.heads = nn.Linear(128, actions * heads)

    def forward(self, observation):
        features = functional.relu(self.convolution(observation)).flatten(1)
        return self.heads(functional.relu(self.hidden(features))).view(-1, *self.shape)


class EagerRem:
    """Samples, computes the loss and steps Adam; `step()` is one update."""

    def __init__(
        self, frames, actions, rewards, discounts, action_count: int, heads: int = 200, batch: int = 32
    ):
        self.frames = torch.from_numpy(frames).permute(0, 3, 1, 2).contiguous()
        self.actions, self.rewards = torch.from_numpy(actions).long(), torch.from_numpy(rewards)
        self.discounts, self.heads, self.batch = torch.from_numpy(discounts), heads, batch
        self.online, self.target = (Network(frames.shape[-1], action_count, heads) for _ in range(2))
        self.target.load_state_dict(self.online.state_dict())
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=5e-5, eps=0.01 / 32)

    def step(self) -> None:
        index = torch.randint(0, len(self.actions), (self.batch,))
        observation, following = self.frames[index].float(), self.frames[index + 1].float()
        alpha = torch.rand(self.heads)
        alpha = alpha / alpha.sum()
        with torch.no_grad():
            best = (self.target(following) @ alpha).max(dim=1).values
            target = self.rewards[index] + self.discounts[index] * best
        value = (self.online(observation) @ alpha).gather(1, self.actions[index, None]).squeeze(1)
        loss = functional.smooth_l1_loss(value, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
