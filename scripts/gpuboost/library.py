"""Where the library is, the environment it needs, and why a program may not have loaded it."""

import os
import shutil
import stat
import struct

from gpuboost import CommandError

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
POLICIES = ("observe", "safe", "max")


def path():
    """The library: GPUBOOST_LIBRARY, else the one built in this clone."""
    named = os.environ.get("GPUBOOST_LIBRARY")
    library = os.path.abspath(named or os.path.join(ROOT, "build", "libgpuboost.so"))
    if not os.path.isfile(library):
        hint = "GPUBOOST_LIBRARY names it" if named else "build it with: make"
        raise CommandError(f"{library} is not there; {hint}")
    if any(c in library for c in ": \t"):
        raise CommandError(f"{library}: LD_PRELOAD cannot express a path with a blank or a colon; move or link it")
    return library


def environment(policy=None, out=None):
    """os.environ for a program under the library; what LD_PRELOAD holds already is kept behind it."""
    env = dict(os.environ)
    before = env.get("LD_PRELOAD", "").replace(":", " ").split()
    library = path()
    env["LD_PRELOAD"] = ":".join([library] + [entry for entry in before if entry != library])
    if policy:
        env["GPUBOOST_POLICY"] = policy
    if out:
        env["GPUBOOST_OUT"] = out
    return env


def runs_folder(env):
    """The folder in which the runs of a process with this environment appear; None: no record."""
    out = env.get("GPUBOOST_OUT", "")
    if out == "none":
        return None
    if out:
        fixed = out.split("%", 1)[0] if "%" in out else out
        return os.path.dirname(os.path.abspath(fixed))
    state = env.get("XDG_STATE_HOME") or os.path.join(env.get("HOME", ""), ".local", "state")
    return os.path.join(state, "gpuboost")


def _is_static(program):
    """An ELF file without a program interpreter: the dynamic linker never sees it."""
    with open(program, "rb") as file:
        head = file.read(64)
        if head[:4] != b"\x7fELF" or head[4] != 2:
            return False
        offset, = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        for i in range(count):
            file.seek(offset + i * size)
            if struct.unpack("<I", file.read(4))[0] == 3:  # PT_INTERP
                return False
    return True


def why_not_loaded(command, env):
    """The most likely reason why a command left no record."""
    for name in ("GPUBOOST_DISABLE", "GPUBOOST_ONLY", "GPUBOOST_NOT"):
        if env.get(name):
            return f"{name}={env[name]} may keep the library out"
    program = shutil.which(command[0])
    try:
        if program and os.stat(program).st_mode & (stat.S_ISUID | stat.S_ISGID):
            return f"{program} is set-user-ID or set-group-ID: the loader ignores LD_PRELOAD for it"
        if program and _is_static(program):
            return f"{program} is statically linked: nothing can be preloaded into it"
    except OSError:
        pass
    return "no process of it made a CUDA call that needs a GPU"
