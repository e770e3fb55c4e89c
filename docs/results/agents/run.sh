#!/usr/bin/env bash
# Every discrete agent from one log of MinAtar Breakout, then the online agents; about 15 minutes on one H200.
#   bash docs/results/agents/run.sh FOLDER [STEPS OF THE LOG] [GRADIENT STEPS] [STEPS ONLINE]
set -e
out=${1:?usage: run.sh FOLDER}; log=${2:-300000}; offline=${3:-40000}; online=${4:-200000}
optimist="${PYTHON:-python3} -m optimist"
mkdir -p "$out"

[ -e "$out/log/agent/DONE" ] || $optimist collect minatar/breakout --steps "$log" --out "$out/log"
$optimist data info "$out/log" --json > "$out/log.json"

train() {  # NAME AGENT [OPTIONS]
  name=$1; shift
  $optimist train "$1" "$out/log" "${@:2}" --seeds 0,1,2 --steps "$offline" --evaluate-every $((offline / 10)) \
    --episodes 30 --out "$out/offline/$name"
}
train dqn-nature dqn
train dqn-adam dqn --preset adam
for agent in c51 qr_dqn ensemble_dqn averaged_ensemble_dqn minimum_ensemble_dqn rem qr_rem c51_rem \
  bootstrapped_dqn behaviour_cloning random; do train $agent $agent; done
train rem-networks-4 rem --preset networks-4

play() {  # NAME AGENT [OPTIONS]
  name=$1; shift
  $optimist collect minatar/breakout --agent "$1" "${@:2}" --steps "$online" \
    --epsilon-decay $((online / 4)) --out "$out/online/$name"
  $optimist evaluate "$out/online/$name/agent" --episodes 100
}
play dqn dqn
play c51 c51
play qr_dqn qr_dqn
play rem rem --preset online
play bootstrapped_dqn bootstrapped_dqn
