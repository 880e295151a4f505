"""gpuboost run: a command under the library. Signals and the exit status go through, stdout is the command's."""

import os
import resource
import signal
import subprocess
import sys
import time

from gpuboost import CommandError, library, record

FORWARDED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
SENT_BY_KERNEL = 0x80  # SI_KERNEL in siginfo.h: the terminal sends ^C, ^\ and its hang-up to the command as well


def add_arguments(parser):
    parser.usage = "gpuboost run [-h] [--policy {observe,safe,max}] [--out DIR] -- CMD [ARGUMENT ...]"
    parser.description = "Run a command under the library; its output, signals and exit status stay its own."
    parser.epilog = "Example: gpuboost run --policy observe -- python train.py --epochs 3"
    parser.add_argument("--policy", choices=library.POLICIES,
                        help="GPUBOOST_POLICY for this run (default: that of the environment, else safe)")
    parser.add_argument("--out", metavar="DIR", help="GPUBOOST_OUT for this run: the directory of the record")
    parser.add_argument("program", nargs="...", metavar="CMD", help="the command and its arguments")
    parser.set_defaults(function=main)


def start(command, env, mask, on_child_end):
    """The command with the signal mask and the dispositions that we were started with (nohup ignores SIGHUP)."""
    def restore():
        signal.signal(signal.SIGCHLD, on_child_end)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    try:
        return subprocess.Popen(command, env=env, preexec_fn=restore)
    except FileNotFoundError:
        print(f"gpuboost: {command[0]}: command not found", file=sys.stderr)
        sys.exit(127)
    except OSError as error:
        print(f"gpuboost: {command[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(126)


def wait_for(command, env):
    """Runs the command and passes on what somebody sends to us; its status, negative for the signal that killed it.

    The signals are blocked, not handled: none is lost before the command is there, and the command
    inherits what was ignored."""
    on_child_end = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    awaited = FORWARDED | {signal.SIGCHLD}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    child = start(command, env, mask, on_child_end)
    while child.poll() is None:
        info = signal.sigwaitinfo(awaited)
        if info.si_signo in FORWARDED and info.si_code != SENT_BY_KERNEL:
            child.send_signal(info.si_signo)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # one more ^C must not take the command's status away
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return child.returncode


def end_like(status):
    """The shell must see what it would have seen: a killed child is a killed command."""
    if status >= 0:
        return status
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if -status not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    return 128 - status


def main(options):
    command = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not command:
        raise CommandError("run: no command; as in: gpuboost run -- python train.py")
    env = library.environment(os.environ, options.policy, options.out)
    started_ns = time.time_ns()
    status = wait_for(command, env)
    pattern = library.place_of_runs(env)
    if pattern and not record.begun_since(pattern, started_ns):
        print(f"gpuboost: {command[0]} left no record: {library.why_no_record(command, env)}", file=sys.stderr)
    return end_like(status)
