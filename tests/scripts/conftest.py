"""Signals as a person's shell leaves them: a job in the background, or under nohup, begins with some ignored, and every
program the tests start would inherit that."""

import signal

for number in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
