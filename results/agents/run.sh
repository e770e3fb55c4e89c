#!/usr/bin/env bash
# Every discrete agent from one log of MinAtar Breakout, then the online agents; minutes on one H200.
#   JOBS=5 bash results/agents/run.sh FOLDER [STEPS OF THE LOG] [GRADIENT STEPS] [STEPS ONLINE]
out=${1:?usage: run.sh FOLDER}; log=${2:-300000}; offline=${3:-40000}; online=${4:-200000}
optimist="${PYTHON:-python3} -m optimist"
export XLA_PYTHON_CLIENT_PREALLOCATE=false  # several runs share the device
mkdir -p "$out"

beside() {  # run a command beside at most JOBS - 1 others
  while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-1}" ]; do wait -n; done
  "$@" &
}
train() {  # NAME AGENT [OPTIONS]
  $optimist train "$2" "$out/log" "${@:3}" --seeds 0,1,2 --steps "$offline" --episodes 30 \
    --evaluate-every $((offline / 10)) --out "$out/offline/$1"
}
play() {  # NAME AGENT [OPTIONS]
  $optimist collect minatar/breakout --agent "$2" "${@:3}" --steps "$online" \
    --epsilon-decay $((online / 4)) --out "$out/online/$1"
  $optimist evaluate "$out/online/$1/agent" --episodes 100
}

$optimist collect minatar/breakout --steps "$log" --out "$out/log"
$optimist data info "$out/log" --json > "$out/log.json"
beside train dqn-nature dqn
beside train dqn-adam dqn --preset adam
for agent in c51 qr_dqn ensemble_dqn averaged_ensemble_dqn minimum_ensemble_dqn rem qr_rem c51_rem \
  bootstrapped_dqn behaviour_cloning random; do beside train $agent $agent; done
beside train rem-networks-4 rem --preset networks-4
for seed in 0 1 2; do
  for agent in dqn c51 qr_dqn bootstrapped_dqn; do beside play $agent-$seed $agent --seeds $seed; done
  beside play rem-$seed rem --preset online --seeds $seed
done
wait
