"""gpuboost run: a command under the library. Signals and the exit status go through, stdout is the command's."""

import os
import resource
import signal
import subprocess
import sys
import time

from gpuboost import CommandError, library, record

FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def add_arguments(parser):
    parser.add_argument("--policy", choices=library.POLICIES, help="GPUBOOST_POLICY for this run (default: safe)")
    parser.add_argument("--out", metavar="DIR", help="GPUBOOST_OUT for this run: the directory of the record")
    parser.add_argument("program", nargs="...", metavar="-- CMD", help="the command and its arguments")
    parser.set_defaults(function=main)


class Forwarder:
    """Passes signals on to the child, those that come before it is there as well. The terminal sends
    SIGINT to the child itself. Handlers, not SIG_IGN, which the child would inherit."""

    def __init__(self):
        self.child, self.early = None, []
        signal.signal(signal.SIGINT, lambda number, frame: None)
        for number in FORWARDED:
            signal.signal(number, self.take)

    def take(self, number, frame):
        if self.child:
            self.child.send_signal(number)
        else:
            self.early.append(number)

    def wait_for(self, child):
        self.child = child
        for number in self.early:
            child.send_signal(number)
        return child.wait()


def start(command, env):
    try:
        return subprocess.Popen(command, env=env)
    except FileNotFoundError:
        print(f"gpuboost: {command[0]}: command not found", file=sys.stderr)
        sys.exit(127)
    except OSError as error:
        print(f"gpuboost: {command[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(126)


def end_like(status):
    """The shell must see what it would have seen: a killed child is a killed command."""
    if status >= 0:
        return status
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if -status != signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    return 128 - status


def main(options):
    command = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not command:
        raise CommandError("run: no command; as in: gpuboost run -- python train.py")
    env = library.environment(options.policy, options.out)
    started = time.time()
    forwarder = Forwarder()
    status = forwarder.wait_for(start(command, env))
    folder = library.runs_folder(env)
    if folder and not record.runs_since(folder, started):
        print(f"gpuboost: {command[0]} left no record: {library.why_not_loaded(command, env)}", file=sys.stderr)
    return end_like(status)
