#!/usr/bin/env bash
# demo.sh PYTHON [ARGUMENTS...]: builds, then shows the main job: train_naive.py plain and under gpuboost, and
# train_tuned.py plain, on a real GPU when there is one and else on the simulated one. The arguments are those of
# "gpuboost demo", which does "gpuboost prove" and the runs, prints the table and writes build/demo.json.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${1:?usage: demo.sh PYTHON [ARGUMENTS...]}
shift
unset MAKEFLAGS MFLAGS MAKELEVEL
scripts/deps.sh "$python"
GPUBOOST_PYTHON=$python make --no-print-directory -j"$(nproc)" all sim
exec "$python" scripts/gpuboost demo "$@"
