"""Arrays of your own become a log, an agent learns from it, its policy acts: python arrays.py [STEPS]"""

import sys

import numpy as np

import optimist

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000

# A thermostat's log: the room's and the outdoor temperature; heat or not; comfort minus what the heat costs.
random = np.random.default_rng(0)
rows = 2_000
observations = np.empty((rows, 2), np.float32)
actions = random.integers(2, size=rows)
rewards = np.empty(rows, np.float32)
ends = np.arange(1, rows + 1) % 50 == 0  # a day of 50 decisions, cut at midnight
room = 15.0
for row in range(rows):
    outdoors = 8 + 6 * np.sin(row / 8)
    observations[row] = room, outdoors
    room += 0.2 * (outdoors - room) + 3 * actions[row] + 0.1 * random.normal()
    rewards[row] = -abs(room - 20) - 0.5 * actions[row]

data = optimist.Dataset.from_arrays(observations, actions, rewards, np.zeros(rows, bool), ends)
run = optimist.train("cql", data, steps=steps, out="runs/thermostat")
for temperature in (12.0, 26.0):
    action = run.policy(np.array([temperature, 8.0], np.float32))
    print(f"at {temperature:.0f} degrees: {'heat' if action else 'do not heat'}")
