#!/usr/bin/env bash
# deps.sh PYTHON: installs what is missing to build, test and show gpuboost; silent when nothing is.
#
#   Debian packages   asked of dpkg-query; installed only as root, else the apt-get line is printed
#   .venv             made from requirements.txt (about 4 GB once: torch brings the CUDA libraries)
#   build/deps.mk     the stamp: for which interpreter this was done, and where its CUDA headers are
#
# PYTHON is .venv/bin/python or an existing interpreter with torch (GPUBOOST_PYTHON): nothing is
# ever installed into that one. Interrupted at any point, the next run takes up again: pip keeps
# finished downloads, and an environment that was left half-made is made anew.
# Exit status 1: something is missing still. The stamp is written as soon as the library can be built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${1:?usage: deps.sh PYTHON}
own=$PWD/.venv/bin/python
requirements=scripts/requirements.txt
stamp=build/deps.mk
status=0

say() { printf '  %-6s %s\n' DEPS "$*"; }
complain() { echo "deps: $*" >&2; status=1; }
is_own() { [[ $python == "$own" ]]; }

# --- Debian packages ---
install_packages() {
    local wanted=(build-essential libcmocka-dev libunwind8 valgrind) missing=() package
    ! is_own || wanted+=(python3-venv)
    if ! command -v dpkg-query >/dev/null; then
        say "not a Debian system: taking it that these are there: ${wanted[*]}"
        return
    fi
    for package in "${wanted[@]}"; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            missing+=("$package")
    done
    ((${#missing[@]})) || return 0
    if (($(id -u) != 0)); then
        complain "missing Debian packages; as root: apt-get install -y ${missing[*]}"
        return
    fi
    say "apt-get install ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq -o DPkg::Lock::Timeout=300 update >&2
    apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 install -y --no-install-recommends \
        "${missing[@]}" >build/apt.log 2>&1 ||
        { tail -n 20 build/apt.log >&2; complain "apt-get failed; all it said is in build/apt.log"; }
}

# --- Python ---
# Prints the requirements that an interpreter lacks; "exact" also wants the version of the list. A
# distribution without its RECORD was not installed to the end.
lacking() {
    "$python" - "$requirements" "$1" <<'EOF'
import importlib.metadata
import sys

for line in open(sys.argv[1]):
    name, _, version = line.partition("#")[0].strip().partition("==")
    if not name:
        continue
    try:
        found = importlib.metadata.distribution(name)
        if found.files is None or sys.argv[2] == "exact" and found.version.split("+")[0] != version:
            print(line.strip())
    except importlib.metadata.PackageNotFoundError:
        print(line.strip())
EOF
}

# torch 2.9.1 is there for CPython 3.10 to 3.14; Debian's own first, a pyenv shim may be any version.
base_python() {
    local candidate
    for candidate in /usr/bin/python3 python3 python3.{14,13,12,11,10}; do
        if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info < (3, 15))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

# Downloads by name and size are the progress; the rest of pip's talk only matters when it fails.
pip_install() {
    if [[ -t 1 ]]; then
        "$own" -m pip install --disable-pip-version-check --no-input -r "$requirements"
    else
        "$own" -m pip install --disable-pip-version-check --no-input --progress-bar off \
            -r "$requirements" | tee build/pip.log |
            sed -un 's/^ *Downloading \(.*\)$/  DEPS   downloading \1/p; s/^Installing collected.*/  DEPS   unpacking/p'
    fi
}

make_environment() {
    if [[ -x $own && ! -e .venv/installing ]] && [[ -z $(lacking exact) ]]; then
        return
    fi
    local base
    base=$(base_python) || { complain "no CPython 3.10 to 3.14 with venv and ensurepip found"; return; }
    [[ ! -e .venv/installing ]] || rm -rf .venv
    if [[ ! -x $own ]] || ! "$own" -m pip --version >/dev/null 2>&1; then
        say "creating .venv with $base"
        "$base" -m venv .venv
    fi
    touch .venv/installing
    say "pip install -r $requirements (the first time about 4 GB)"
    pip_install || { complain "pip failed; run make deps again: finished downloads are kept"; return; }
    rm .venv/installing
}

look_at_existing() {
    command -v "$python" >/dev/null || { complain "GPUBOOST_PYTHON=$python cannot be run"; return; }
    local missing
    missing=$(lacking any | sed 's/==.*//' | paste -sd' ')
    [[ -z $missing ]] || complain "$python lacks $missing (nothing is installed into an interpreter named" \
        "by GPUBOOST_PYTHON): make test and make demo need it"
}

# Where the nvidia wheels of the interpreter lie: the folder that holds cuda_runtime, cublas, cudnn.
wheels() {
    "$python" -c '
import importlib.util, os
spec = importlib.util.find_spec("nvidia")
for place in spec.submodule_search_locations if spec else ():
    if os.path.exists(os.path.join(place, "cuda_runtime/include/cuda.h")):
        print(place)
        break'
}

write_stamp() {
    local found=
    [[ ! -x $(command -v "$python") ]] || found=$(wheels) || found=
    if [[ ! -e ${CUDA_INCLUDE:-$found/cuda_runtime/include}/cuda.h ]]; then
        rm -f $stamp
        complain "no CUDA headers: $python has no nvidia-cuda-runtime-cu12 wheel; CUDA_INCLUDE=directory names others"
        return
    fi
    printf '# Written by deps.sh for the Makefile.\nDEPS_PYTHON := %s\nWHEELS := %s\n' "$python" "$found" >$stamp.new
    mv $stamp.new $stamp
}

mkdir -p build
exec 9>build/deps.lock
flock 9 # two makes at once: the second waits and then finds everything
install_packages
if is_own; then make_environment; else look_at_existing; fi
write_stamp
exit $status
