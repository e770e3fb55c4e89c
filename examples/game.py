"""An online DQN plays a game, REM learns from its log, a GIF shows it: python game.py [STEPS]"""

import sys

import optimist
from optimist.cli.main import main

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000

quick = {"optimizer.learning_rate": 1e-3, "target_period": 100}  # few steps, so large ones

game = "minatar_jax/breakout"
log = optimist.collect(game, steps=steps, epsilon_decay=steps // 3, options=quick, out="breakout")
print(log)
run = optimist.train(
    "rem",
    log,
    options=quick,
    seeds=(0, 1),
    steps=steps // 10,
    evaluate_every=steps // 20,
    episodes=10,
    out="runs/rem",
)
print(run)
main(["play", "runs/rem", "--out", "rem.gif"])
