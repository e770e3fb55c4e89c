#!/usr/bin/env bash
# Online DQN (Nature) plays and is logged; four agents then learn from the log alone, two at a time.
# usage: run.sh FOLDER [GAME] [STEPS] [UPDATES]; interrupted, the same command goes on.
set -e
out=$1 game=${2:-Pong} steps=${3:-5000000} updates=${4:-1250000}
export XLA_PYTHON_CLIENT_PREALLOCATE=false  # two programs share the device

optimist collect "atari/$game" --preset dqn-nature --steps "$steps" --lanes 64 --out "$out/data"
optimist data info "$out/data" --json > "$out/log.json"

learn() {  # NAME AGENT PRESET
  optimist train "$2" "$out/data" --preset "$3" --seeds 0,1 --steps "$updates" \
    --evaluate-every 125000 --evaluation-steps 25000 --out "$out/runs/$1" > "$out/$1.txt" 2>&1
}

learn dqn_nature dqn nature & learn rem rem paper & wait
learn dqn_adam dqn adam & learn qr_dqn qr_dqn paper & wait
