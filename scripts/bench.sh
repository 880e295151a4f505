#!/usr/bin/env bash
# bench.sh PYTHON [ARGUMENTS...]: builds, then what gpuboost costs and gains, with and without it in the same run. The
# arguments are those of scripts/bench, which runs the benchmarks and writes build/bench.json.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${1:?usage: bench.sh PYTHON [ARGUMENTS...]}
shift
unset MAKEFLAGS MFLAGS MAKELEVEL
scripts/deps.sh "$python"
GPUBOOST_PYTHON=$python make --no-print-directory -j"$(nproc)" all sim
exec "$python" scripts/bench "$@"
