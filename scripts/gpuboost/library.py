"""Where the library is, the environment it needs, where it leaves a record, and why it may have left none."""

import glob
import os
import re
import shutil
import stat
import struct

from gpuboost import CommandError

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
POLICIES = ("observe", "safe", "max")
FALSE_WORDS = ("", "0", "off", "no", "false")


def path():
    """The library: GPUBOOST_LIBRARY, else the one built in this clone."""
    named = os.environ.get("GPUBOOST_LIBRARY")
    library = os.path.abspath(named or os.path.join(ROOT, "build", "libgpuboost.so"))
    if not os.path.isfile(library):
        hint = "GPUBOOST_LIBRARY names it" if named else f"build it with: make -C {ROOT}"
        raise CommandError(f"{library} is not there; {hint}")
    if any(c in library for c in ": \t\n"):
        raise CommandError(f"{library}: LD_PRELOAD cannot express a path with a blank or a colon; move or link it")
    return library


def preloads(env):
    """The entries of LD_PRELOAD; blanks separate them as well as colons do (ld.so(8))."""
    return env.get("LD_PRELOAD", "").replace(":", " ").split()


def environment(env, policy=None, out=None):
    """That environment for a program under the library; what LD_PRELOAD holds already is kept behind it."""
    library = path()
    env = {**env, "LD_PRELOAD": ":".join([library] + [entry for entry in preloads(env) if entry != library])}
    if policy:
        env["GPUBOOST_POLICY"] = policy
    if out:
        env["GPUBOOST_OUT"] = out
    return env


def _out_setting(env):
    """GPUBOOST_OUT: of the environment, else of the file that GPUBOOST_CONFIG names."""
    if env.get("GPUBOOST_OUT") or not env.get("GPUBOOST_CONFIG"):
        return env.get("GPUBOOST_OUT", "")
    try:
        with open(env["GPUBOOST_CONFIG"], errors="surrogateescape") as file:
            found = re.findall(r"^[ \t\r]*GPUBOOST_OUT[ \t]*=[ \t]*(.*?)[ \t\r]*$", file.read(), re.MULTILINE)
    except OSError:
        return ""
    return found[0] if found else ""


def state_folder(env):
    """Where the library and the command keep what outlives a run; None: nowhere."""
    # Relative values are to be ignored (XDG base directory specification); without a home the library says so.
    state, home = env.get("XDG_STATE_HOME", ""), env.get("HOME", "")
    if not state.startswith("/"):
        state = os.path.join(home, ".local", "state")
    return os.path.join(state, "gpuboost") if state.startswith("/") else None


def place_of_runs(env):
    """What a process with this environment calls its run directory, with * for what only it knows; None: it has none."""
    out = _out_setting(env)
    if out == "none":
        return None
    if out:
        parts = re.split("(%.)", os.path.abspath(out))
        return "".join({"%%": "%"}.get(part, "*") if part[:1] == "%" else glob.escape(part) for part in parts)
    state = state_folder(env)
    return os.path.join(glob.escape(state), "*") if state else None


def _loader_ignores(program):
    """Why the dynamic linker preloads nothing into an executable file, or None."""
    if os.stat(program).st_mode & (stat.S_ISUID | stat.S_ISGID):
        return f"{program} is set-user-ID or set-group-ID: the loader ignores LD_PRELOAD for it"
    with open(program, "rb") as file:
        head = file.read(64)
        if head[:5] != b"\x7fELF\x02":
            return None
        offset, = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        file.seek(offset)
        headers = file.read(size * count)
    kinds = {struct.unpack_from("<I", headers, size * i)[0] for i in range(count)}
    return None if 3 in kinds else f"{program} is statically linked: nothing can be preloaded into it"  # PT_INTERP


def _cannot_be_made(pattern):
    """Why no run directory can be made there, as far as can be seen from here, or None."""
    folder = os.path.dirname(pattern.split("*", 1)[0])
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        return f"{folder} is not a directory"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"{folder} cannot be written to"
    return None if os.statvfs(folder).f_bavail else f"no space is left for {folder}"


def why_no_record(command, env):
    """The most likely reason why a command left no record."""
    if env.get("GPUBOOST_DISABLE", "").lower() not in FALSE_WORDS:
        return f"GPUBOOST_DISABLE={env['GPUBOOST_DISABLE']} switches the library off"
    for name in ("GPUBOOST_ONLY", "GPUBOOST_NOT"):
        if env.get(name):
            return f"{name}={env[name]} may keep the library out"
    program = shutil.which(command[0], path=env.get("PATH"))
    try:
        why = (_loader_ignores(program) if program else None) or _cannot_be_made(place_of_runs(env))
    except (OSError, struct.error):
        why = None
    return why or ("no process of it made a CUDA call that needs a GPU with the library loaded, "
                   "or the library said above why the record is off")
