"""An online DQN plays a game, REM learns from its log, a GIF shows it: python game.py [STEPS]"""

import sys

import optimist
from optimist.cli.main import main

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000

log = optimist.collect("minatar_jax/breakout", steps=steps, out="breakout")
print(f"{len(log):,} steps are recorded")
run = optimist.train(
    "rem", log, seeds=(0, 1), steps=steps // 10, evaluate_every=steps // 20, out="runs/rem", episodes=10
)
main(["play", "runs/rem", "--out", "rem.gif"])
