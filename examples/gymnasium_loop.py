"""A Gymnasium loop is recorded; two agents learn; the log alone chooses: python gymnasium_loop.py [STEPS]"""

import sys

import gymnasium
import numpy as np

import optimist

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000

# Your own loop, with one line more: `optimist.record` keeps every step.
env = optimist.record(gymnasium.make("CartPole-v1"), "cart-pole")
random = np.random.default_rng(0)
observation, _ = env.reset(seed=0)
for _ in range(2 * steps):
    leaning = observation[2] + observation[3] > 0
    action = int(leaning) if random.random() < 0.5 else int(random.integers(2))  # half skilled, half random
    observation, _, terminal, truncated, _ = env.step(action)
    if terminal or truncated:
        observation, _ = env.reset()
env.close()

settings = {"steps": steps, "evaluate_every": max(1, steps // 5), "hold_out": 0.2}
settings |= {"environment": "", "restart": True}
runs = [optimist.train(agent, "cart-pole", out=f"runs/{agent}", **settings) for agent in ("dqn", "cql")]
selection = optimist.select(runs, updates=max(100, steps // 5), anyway=True)  # it is played below
print(selection.answer)
print(f"the log chooses {selection.chosen.agent}, step {selection.chosen.step}")

# Only now the environment is asked.
chosen = optimist.load(selection.chosen.run, step="chosen")
returns = []
env = gymnasium.make("CartPole-v1")
for episode in range(5):
    observation, _ = env.reset(seed=episode)
    total, over = 0.0, False
    while not over:
        observation, reward, terminal, truncated, _ = env.step(int(chosen.policy(observation)))
        total, over = total + float(reward), terminal or truncated
    returns.append(total)
print(
    f"its mean return in 5 episodes: {np.mean(returns):.0f}; the log's own: see optimist data info cart-pole"
)
