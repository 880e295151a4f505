#!/usr/bin/env python3
"""Flags every conflicting pair of memory accesses that nothing orders, in a call log of the simulated GPU.

    happens_before.py LOG [--json] [--as-seen] [--threads] [--refilled]

LOG is written by GPUSIM_LOG=LOG GPUSIM_LOG_ADDRESSES=1 (call_log.py says what stands in it). One line for each
pair: the two lines of the log, the bytes, the conflict, and the order that is missing. Exit status 1 when there
is one, 2 when the log cannot be used. No time is looked at: a pair is found whether or not it went wrong in
that run. The rules (rules.py: copies, frees, kernels; ordering.py: streams, events, waits) are NVIDIA's text,
written without a look at how the simulator orders its work or what the library does.

What the log does not show is given the benefit of the doubt: a kernel whose operands are not known accesses
nothing, a graph launch is one operation, and what the program's threads tell each other is known to all of them.
"""

import argparse
import json
import sys

from ordering import Unknown
from rules import Checker


def text(pair):
    size = pair["end"] - pair["start"]
    return (f"line {pair['line_a']} {pair['call_a']} ({pair['by_a']}) and line {pair['line_b']} {pair['call_b']} "
            f"({pair['by_b']}): {pair['space']}+{pair['start']}, {size} bytes: {pair['conflict']}; {pair['missing']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log")
    parser.add_argument("--json", action="store_true", help="one JSON list instead of lines")
    parser.add_argument("--as-seen", action="store_true",
                        help="what drivers are seen to do counts too: pageable copies to the host and those of more "
                             "than 64 KB to the device are done when they return, and freeing waits for the device")
    parser.add_argument("--threads", action="store_true",
                        help="threads of the program never tell each other anything")
    parser.add_argument("--refilled", action="store_true",
                        help="the host writes the page-locked source of each copy just before it")
    args = parser.parse_args()
    checker = Checker(args.as_seen, args.threads, args.refilled)
    try:
        with open(args.log, errors="backslashreplace") as lines:
            checker.run(lines)
    except (OSError, Unknown) as problem:
        print(f"happens_before: {problem}", file=sys.stderr)
        return 2
    found = checker.found()
    if args.json:
        print(json.dumps(found, indent=1))
    else:
        for pair in found:
            print(text(pair))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
