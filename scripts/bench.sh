#!/usr/bin/env bash
# bench.sh PYTHON [NAME...]: what gpuboost itself costs, with and without it in the same run.
#
# Every benchmark is a scripts/bench/NAME.py with the option --json FILE; without names all of them run. Their
# figures come together in build/bench.json under those names. Other load on the machine disturbs them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${1:?usage: bench.sh PYTHON [NAME...]}
shift
unset MAKEFLAGS MFLAGS MAKELEVEL
scripts/deps.sh "$python"
GPUBOOST_PYTHON=$python make --no-print-directory -j"$(nproc)" all sim

names=("$@")
if ((${#names[@]} == 0)); then
    mapfile -t names < <(grep -l -- '"--json"' scripts/bench/*.py | xargs -n 1 basename -s .py)
fi
rm -rf build/bench && mkdir -p build/bench
status=0
for name in "${names[@]}"; do
    echo "  BENCH  $name"
    "$python" "scripts/bench/$name.py" --json "build/bench/$name.json" || status=1
done
"$python" -c '
import json, pathlib
parts = sorted(pathlib.Path("build/bench").glob("*.json"))
pathlib.Path("build/bench.json").write_text(json.dumps({p.stem: json.loads(p.read_text()) for p in parts}, indent=1) + "\n")'
echo "  BENCH  figures in build/bench.json"
exit $status
