"""For comparison: d3rlpy's conservative agents, trained on the same logs with the same settings.

Run by the Python of an environment that has d3rlpy: `python peer_d3rlpy.py settings.json`. It prints one line
of JSON for each seed. `returns` and what it needs do not import d3rlpy: both sides evaluate with it.
"""

import json
import sys
from pathlib import Path

import gymnasium
import numpy as np

EPISODES = 20


def returns(act, game: str) -> list[float]:
    """The returns of episodes that begin in the same states for every policy."""
    play, found = gymnasium.make(game), []
    for episode in range(EPISODES):
        observation, _ = play.reset(seed=1000 + episode)
        total, over = 0.0, False
        while not over:
            observation, reward, terminal, truncated, _ = play.step(act(np.asarray(observation, np.float32)))
            total, over = total + float(reward), terminal or truncated
        found.append(total)
    return found


def algorithm(name: str, settings: dict):
    from d3rlpy.algos import (
        CQLConfig,
        DiscreteBCQConfig,
        DiscreteCQLConfig,
        IQLConfig,
        ReBRACConfig,
        TD3PlusBCConfig,
    )
    from d3rlpy.models.encoders import VectorEncoderFactory
    from d3rlpy.preprocessing import MinMaxActionScaler

    hidden, rate = settings["hidden"], settings["rate"]
    plain, normed = VectorEncoderFactory(hidden), VectorEncoderFactory(hidden, use_layer_norm=True)
    common = {"batch_size": settings["batch"], "gamma": settings["gamma"]}
    if name in ("cql", "discrete_bcq"):
        kinds = {"cql": DiscreteCQLConfig, "discrete_bcq": DiscreteBCQConfig}
        own = {"cql": {"alpha": 1.0}, "discrete_bcq": {"action_flexibility": 0.3, "beta": 0.01}}
        period = {"target_update_interval": settings["target_period"]}
        return kinds[name](
            learning_rate=rate, encoder_factory=plain, **common, **period, **own[name]
        ).create()
    bound = settings["bound"]
    box = {"action_scaler": MinMaxActionScaler(minimum=np.array([-bound]), maximum=np.array([bound]))}
    rates = {"actor_learning_rate": rate, "critic_learning_rate": rate}
    critic = normed if name == "rebrac" else plain
    common = {**common, **box, **rates, "actor_encoder_factory": plain, "critic_encoder_factory": critic}
    if name == "td3_bc":
        return TD3PlusBCConfig(alpha=2.5, **common).create()
    if name == "rebrac":
        return ReBRACConfig(actor_beta=0.1, critic_beta=0.01, **common).create()
    if name == "iql":
        return IQLConfig(value_encoder_factory=plain, **common).create()
    assert name == "sac_cql", name
    weight = {"alpha_learning_rate": 0.0, "conservative_weight": 1.0, "n_action_samples": 4}
    return CQLConfig(temp_learning_rate=rate, **weight, **common).create()


def minibatches(log, size: int, count: int, seed: int):
    """Uniform minibatches of all transitions; d3rlpy's own sampler leaves out the last step of a truncated
    episode."""
    from d3rlpy.dataset import TransitionMiniBatch

    columns, random = {name: log[name] for name in log.files}, np.random.default_rng(seed)
    for _ in range(count):
        rows = random.integers(len(columns["rewards"]), size=size)
        drawn = {name: column[rows] for name, column in columns.items()}
        yield TransitionMiniBatch(**drawn, intervals=np.ones((size, 1), np.float32), transitions=[])


def main(settings: dict) -> None:
    import d3rlpy
    import torch

    torch.set_num_threads(1)
    for seed, path in enumerate(settings["logs"]):
        d3rlpy.seed(seed)
        log, agent = np.load(path), algorithm(settings["agent"], settings)
        agent.create_impl(log["observations"].shape[1:], settings["actions"])
        for batch in minibatches(log, settings["batch"], settings["steps"], seed):
            agent.update(batch)
        found = returns(lambda x, agent=agent: agent.predict(x[None])[0], settings["game"])
        print(json.dumps({"seed": seed, "returns": found}), flush=True)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
