"""What the cases of pystack_cases.py share: the probe, and the comparison with Python's own answer.

The two calls of a comparison, `check(cap(), here())`, stand on one line, so that the line of the
calling frame is the same for both.
"""
import ctypes
import sys

MAX_FRAMES = 128
OVERFLOW = 0xffffffff


class Frame(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("func", ctypes.c_char_p), ("line", ctypes.c_int)]


def load(loader):
    library = loader(sys.argv[1])
    library.probe_capture.restype = ctypes.c_uint32
    library.probe_capture_many.restype = ctypes.c_uint32
    library.probe_capture_locked.restype = ctypes.c_uint32
    library.probe_foreign_thread.restype = ctypes.c_uint32
    library.probe_frames.argtypes = [ctypes.c_uint32, ctypes.POINTER(Frame), ctypes.c_int]
    library.probe_status.restype = ctypes.c_char_p
    library.probe_mutated_proof.restype = ctypes.c_char_p
    library.probe_native_status.restype = ctypes.c_char_p
    library.probe_symbol_module.restype = ctypes.c_char_p
    return library


released = load(ctypes.CDLL)   # the GIL is released around calls
held = load(ctypes.PyDLL)      # the GIL is held
cap = released.probe_capture
cap_held = held.probe_capture
wrong = []      # pairs that differ
checked = []    # one entry a comparison


def frames_of(stack_id, most=MAX_FRAMES):
    out = (Frame * MAX_FRAMES)()
    n = released.probe_frames(stack_id, out, most)
    return [(f.file.decode(), f.func.decode(), f.line) for f in out[:n]]


def here():
    """The caller's stack as the interpreter tells it, innermost first, as the library gives it."""
    out = []
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        line = -1 if frame.f_lineno is None else frame.f_lineno
        out.append((plain(code.co_filename), plain(name), line))
        frame = frame.f_back
    return out[:MAX_FRAMES]


def plain(text):
    return "".join("\ufffd" if 0xd800 <= ord(c) < 0xe000 else c for c in text)


def check(stack_id, expected):
    checked.append(1)
    got = frames_of(stack_id) if stack_id not in (0, OVERFLOW) else stack_id
    if got != expected:
        wrong.append((got, expected))
