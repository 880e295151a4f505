"""gpuboost: run a program under libgpuboost.so and read what it recorded.

    gpuboost run [--policy P] [--out DIR] -- python train.py
    gpuboost report [RUN]
    gpuboost prove
    gpuboost demo

Works from a clone without installation: python3 scripts/gpuboost, or bin/gpuboost. Needs nothing but
Python 3.9.
"""

import argparse
import os
import signal
import sys

if sys.version_info < (3, 9):
    sys.exit("gpuboost: needs Python 3.9 or newer; this is " + sys.version.split()[0])
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from gpuboost import CommandError, demo, prove, report, run  # noqa: E402


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="gpuboost",
        description="Keep the GPU busy under an unmodified PyTorch program, and say which line stalls it.",
        epilog="GPUBOOST_* environment variables choose everything else; README.md lists them.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    run.add_arguments(commands.add_parser("run", help="run a command under the library"))
    report.add_arguments(commands.add_parser("report", help="what a run recorded"))
    prove.add_arguments(commands.add_parser("prove", help="try what elision stands on, on the GPU that is there"))
    demo.add_arguments(commands.add_parser("demo", help="the same training plain, under gpuboost and hand-tuned"))
    return parser.parse_args(arguments)


def main(arguments=None):
    sys.stdout.reconfigure(errors="backslashreplace")
    options = parse(arguments)
    try:
        status = options.function(options)
        sys.stdout.flush()
        return status
    except CommandError as error:
        print(f"gpuboost: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader has left (gpuboost report | head); Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return run.end_like(-signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main())
