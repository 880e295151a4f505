"""counted_step.py LIBRARY [ARGUMENTS...]: train_naive.py as it is, counted by callgrind in its timed steps only.

Start-up and warm-up run under valgrind without counting, which makes them affordable. LIBRARY is counting.c, built.
"""

import ctypes
import os
import sys

WORKLOADS = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "tests", "workloads")


def main():
    counting = ctypes.CDLL(sys.argv.pop(1))
    sys.path.insert(0, WORKLOADS)
    import common
    import train_naive

    class CountingClock(common.Clock):
        def start(self):
            super().start()
            counting.counting_on()

        def stop(self):
            counting.counting_off()
            super().stop()

    common.Clock = CountingClock
    train_naive.main()


if __name__ == "__main__":
    main()
