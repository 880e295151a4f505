#!/usr/bin/env bash
# test.sh PYTHON [SELECTION...]: builds everything and runs the tests; no GPU is needed.
#
# The last line is "N passed, N failed, N skipped" over the unit tests and pytest together, whatever
# happens; the exit status is not 0 when something failed or nothing ran. The selection is that of
# run_tests.py: make test TESTS="tests/unit/test_ring.c tests/e2e -k bugs".
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

python=${1:?usage: test.sh PYTHON [SELECTION...]}
shift

not_run() {
    echo "test: $*" >&2
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}

# An outer make's job server is not ours to use; its variables (CC, O, DEBUG) are in the environment.
unset MAKEFLAGS MFLAGS MAKELEVEL
scripts/deps.sh "$python" || not_run "something is missing, see above"
GPUBOOST_PYTHON=$python make --no-print-directory -j"$(nproc)" all sim unit || not_run "the build failed"
export GPUBOOST_LIBRARY=${O:-build}/libgpuboost.so GPUSIM_BUILD=${O:-build}/sim
exec "$python" scripts/run_tests.py "$@"
