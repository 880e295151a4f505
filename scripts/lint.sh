#!/usr/bin/env bash
# lint.sh PYTHON: everything about the source that a machine can say without running it.
#
#   build     library and simulator by gcc and by clang with -Werror, each in build/lint/<compiler>
#   format    clang-format on every tracked C file          cppcheck  library and policies
#   files     at most 500 lines each                        calls     what the library must not call
#   docs      README's options table is that of options.def shell     shellcheck on the scripts
# cppcheck does not see that a snapshot is taken whenever the GPU is known: ctuuninitvar is left out there.
# A tool that is not installed is said in one line and passed over; LINT_STRICT=1 makes that a failure.
# Every check runs; the last line says which failed, and the exit status is then 1.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

python=${1:?usage: lint.sh PYTHON}
longest=500
failed=()
unset MAKEFLAGS MFLAGS MAKELEVEL
scripts/deps.sh "$python" || exit 1
mkdir -p build/lint
mapfile -t sources < <(git ls-files -- '*.c' '*.h')

has() {
    command -v "$1" >/dev/null && return
    echo "  LINT   $2: $1 is not installed, passed over (apt-get install $1)"
    [[ ${LINT_STRICT:-0} == 0 ]] || failed+=("$2")
    return 1
}

# check NAME COMMAND...: what the command says is shown only when it fails.
check() {
    local name=$1 log=build/lint/$1.log
    shift
    if "$@" >"$log" 2>&1; then
        echo "  LINT   $name: ok"
    else
        echo "  LINT   $name: FAILED"
        grep -vE "^  (CC|LINK|AR|GEN) " "$log" | tail -n 60
        failed+=("$name")
    fi
}

build_with() {
    GPUBOOST_PYTHON=$python make -k -j"$(nproc)" --no-print-directory CC="$1" O="build/lint/$1" all sim unit
}

file_lengths() {
    git ls-files -z -- preload policies scripts tests docs Makefile README.md | xargs -0 wc -l | grep -v ' total$' |
        awk -v most=$longest '$1 > most { print $2 ": " $1 " lines, at most " most; bad = 1 } END { exit bad }'
}

# The library never ends the program it sits in, never writes to its stdout and never takes the GIL.
forbidden_calls() {
    ! grep -nE '(^|[^_[:alnum:].>])(exit|_exit|_Exit|abort|assert|printf|puts|putchar|PyGILState_Ensure|PyEval_[A-Za-z]*Thread)[[:space:]]*\(|(^|[^_[:alnum:]])stdout([^_[:alnum:]]|$)' \
        preload/*/*.[ch] policies/*.[ch] | grep -vE '^[^:]+:[0-9]+: *(/?\*|//)'
}

for compiler in gcc clang; do
    ! has $compiler "$compiler" || check $compiler build_with $compiler
done
! has clang-format format || check format clang-format --dry-run -Werror "${sources[@]}"
! has cppcheck cppcheck || check cppcheck cppcheck --quiet --std=c11 --enable=warning,portability \
    --inline-suppr --error-exitcode=1 --suppress=missingInclude --suppress=missingIncludeSystem \
    --suppress=unknownMacro --suppress=ctuuninitvar:preload/gpu/inflight.c -D_GNU_SOURCE -D__x86_64__ -Ipreload -I. preload policies
! has shellcheck shell || check shell shellcheck -x scripts/*.sh scripts/gpusim .ci/run
check files file_lengths
check calls forbidden_calls
check docs "$python" scripts/gen_docs.py --check

if ((${#failed[@]})); then
    echo "lint: ${failed[*]} failed"
    exit 1
fi
echo "lint: nothing to complain about"
