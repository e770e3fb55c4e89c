"""The other side of `benchmarks/online.py`: Stable-Baselines3's DQN, run by the Python of OPTIMIST_PEERS.

Reads a JSON file of settings; prints one line of JSON: the steps at which episodes ended, their returns, and
the returns of the final policy.
"""

import json
import sys

import gymnasium
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor


def main(settings: dict) -> None:
    torch.set_num_threads(1)
    seed, given = settings["seed"], dict(settings["settings"])
    network = {"net_arch": given.pop("net_arch")} if "net_arch" in given else {}
    play = Monitor(gymnasium.make(settings["game"]))
    agent = DQN("MlpPolicy", play, seed=seed, device="cpu", policy_kwargs=network, **given)
    agent.learn(settings["steps"])
    returns, lengths = play.get_episode_rewards(), play.get_episode_lengths()
    ends = [sum(lengths[: number + 1]) for number in range(len(lengths))]
    fresh = Monitor(gymnasium.make(settings["game"]))
    fresh.reset(seed=1000)
    final, _ = evaluate_policy(
        agent, fresh, n_eval_episodes=settings["episodes"], return_episode_rewards=True
    )
    print(json.dumps({"ends": ends, "returns": returns, "final": final}))


if __name__ == "__main__":
    with open(sys.argv[1]) as stream:
        main(json.load(stream))
