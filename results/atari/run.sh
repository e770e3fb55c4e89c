#!/usr/bin/env bash
# Online DQN (Nature) plays and is logged; four agents then learn from the log alone, all at the same time.
# usage: run.sh FOLDER [GAME] [STEPS] [UPDATES]; interrupted, the same command goes on.
set -e
out=$1 game=${2:-Pong} steps=${3:-3000000} updates=${4:-1250000}

optimist collect "atari/$game" --preset dqn-nature --steps "$steps" --lanes 64 --out "$out/data"
optimist data info "$out/data" --json > "$out/log.json"

# Four programs share the device: a quarter of its memory each, and their kernels side by side where MPS is there.
export XLA_PYTHON_CLIENT_MEM_FRACTION=.235
command -v nvidia-cuda-mps-control > /dev/null && nvidia-cuda-mps-control -d

learn() {  # NAME AGENT PRESET
  optimist train "$2" "$out/data" --preset "$3" --seeds 0 --home device --steps "$updates" \
    --evaluate-every 62500 --evaluation-steps 15000 --out "$out/runs/$1" > "$out/$1.txt" 2>&1
}

learn dqn_nature dqn nature & learn rem rem paper & learn dqn_adam dqn adam & learn qr_dqn qr_dqn paper & wait
