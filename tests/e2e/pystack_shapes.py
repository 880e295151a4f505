"""Stack shapes: ordinary Python code, each case with comparisons inside. See pystack_cases.py."""
import ctypes
import sys
import traceback
import weakref

from pystack_check import MAX_FRAMES, cap, cap_held, check, checked, frames_of, here, wrong


def case_nested():
    def inner():
        check(cap(), here())
        check(cap_held(), here())
    def outer():
        inner()
    class Thing:
        def method(self):
            outer()
        @staticmethod
        def static():
            outer()
        @classmethod
        def klass(cls):
            outer()
        @property
        def prop(self):
            outer()
        def __call__(self):
            outer()
        def __getattr__(self, name):
            outer()
            return name
        def __add__(self, other):
            outer()
        def __enter__(self):
            outer()
        def __exit__(self, *error):
            outer()
    thing = Thing()
    inner()
    outer()
    thing.method(), Thing.static(), Thing.klass(), thing.prop, thing(), thing.missing, thing + 1
    with thing:
        check(cap(), here())
    (lambda: check(cap(), here()))()
    try:
        raise ValueError
    except ValueError:
        check(cap(), here())
    finally:
        check(cap(), here())


def case_extract_stack():
    """The standard library's own extraction, which `here` is a stand-in for."""
    def inner():
        return cap(), traceback.extract_stack()
    stack_id, summary = inner()
    got = [(f, line) for f, _, line in frames_of(stack_id)]
    want = [(f.filename, f.lineno) for f in reversed(summary)]
    checked.append(1)
    if got != want:
        wrong.append((got, want))


def case_closures():
    cell = []
    def make(n):
        local = [n]
        def closure(x):
            cell.append(local[0] + x)
            check(cap(), here())
            return closure if x else None
        return closure
    for n in range(3):
        make(n)(1)(0)


def case_generators():
    def gen(n):
        for i in range(n):
            check(cap(), here())
            yield i
            check(cap(), here())
    def delegating(n):
        result = yield from gen(n)
        check(cap(), here())
        return result
    assert list(gen(3)) == [0, 1, 2]
    assert list(delegating(2)) == [0, 1]
    assert sum(x for x in gen(2) if check(cap(), here()) is None) == 1


def case_throw_close():
    def gen():
        while True:
            try:
                yield check(cap(), here())
            except KeyError:
                check(cap(), here())
            finally:
                check(cap(), here())
    def outer():
        yield from gen()
    for make in (gen, outer):
        g = make()
        next(g)
        g.throw(KeyError("x"))
        g.send(None)
        g.close()
    g = gen()
    next(g)
    del g


def case_async():
    import asyncio

    class Context:
        async def __aenter__(self):
            check(cap(), here())
        async def __aexit__(self, *error):
            check(cap(), here())

    async def agen():
        for i in range(2):
            check(cap(), here())
            yield i
            await asyncio.sleep(0)

    async def leaf():
        await asyncio.sleep(0)
        check(cap(), here())

    async def main():
        async with Context():
            async for _ in agen():
                await leaf()
        await asyncio.gather(leaf(), leaf())
        return [x async for x in agen()]

    assert asyncio.run(main()) == [0, 1]


def case_comprehensions():
    _ = [check(cap(), here()) for _ in range(2)]
    _ = {check(cap(), here()) for _ in range(2)}
    _ = {i: check(cap(), here()) for i in range(2)}
    _ = list(check(cap(), here()) for _ in range(2))
    _ = [[check(cap(), here()) for _ in range(2)] for _ in range(2)]
    x = 5
    _ = [(lambda: (x, check(cap(), here())))() for _ in range(2)]


def case_decorators():
    import functools

    def decorator(f):
        check(cap(), here())
        @functools.wraps(f)
        def wrapper(*args):
            check(cap(), here())
            return f(*args)
        return wrapper

    @decorator
    @functools.lru_cache(None)
    @decorator
    def target(n):
        check(cap(), here())
        return n

    target(1)
    functools.partial(target, 2)()
    functools.singledispatch(target)(3)


def case_callbacks():
    import functools
    import re

    def key(x):
        check(cap(), here())
        return x
    sorted([3, 1, 2], key=key)
    list(map(key, [1, 2]))
    list(filter(key, [1, 2]))
    max([1, 2], key=key)
    functools.reduce(lambda a, b: key(a + b), [1, 2, 3])
    re.sub("a", lambda m: key("b"), "aXa")
    [3, 1].sort(key=functools.cmp_to_key(lambda a, b: key(a - b)))
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    kind(key)(7)
    sys.excepthook, old = (lambda *a: key(1)), sys.excepthook
    sys.excepthook(None, None, None)
    sys.excepthook = old


def case_metaclass():
    class Meta(type):
        def __new__(mcs, name, bases, space):
            check(cap(), here())
            return super().__new__(mcs, name, bases, space)
        def __call__(cls, *args):
            check(cap(), here())
            return super().__call__(*args)
        def __instancecheck__(cls, thing):
            check(cap(), here())
            return True

    class Described:
        def __set_name__(self, owner, name):
            check(cap(), here())
        def __get__(self, thing, owner):
            check(cap(), here())

    class Made(metaclass=Meta):
        check(cap(), here())
        field = Described()
        def __init_subclass__(cls):
            check(cap(), here())
        def __init__(self):
            check(cap(), here())

    class Sub(Made):
        pass
    _ = isinstance(3, Made), Sub().field


def case_weakref_and_del():
    import gc

    class Thing:
        def __del__(self):
            check(cap(), here())
    def gone(ref):
        check(cap(), here())
    thing = Thing()
    ref = weakref.ref(thing, gone)
    del thing
    a, b = Thing(), Thing()
    a.b, b.a = b, a
    del a, b
    gc.collect()
    assert ref() is None
    before = len(checked)
    def allocate():  # collection in the middle of ordinary work
        for _ in range(2000):
            x, y = Thing(), []
            x.self, x.y = x, y
    threshold = gc.get_threshold()
    gc.set_threshold(50)
    allocate()
    gc.set_threshold(*threshold)
    gc.collect()
    assert len(checked) - before >= 2000


def case_exec_and_lines():
    space = {"check": check, "cap": cap, "here": here}
    exec("check(cap(), here())", space)
    eval("check(cap(), here())", space)
    for gap in (1, 126, 127, 128, 129, 254, 255, 256, 300, 5000, 40000):
        exec("def f():" + "\n" * gap + "    check(cap(), here())" + "\n" * gap
             + "    x = (1,\n" + "\n" * gap + "      check(cap(), here()))\n"
             + "    check(cap(), here())\nf()\n", space)
        exec(compile("\n" * gap + "check(cap(), here())", f"<gap {gap}>", "exec"), space)
    long = ["def g(n):", " y = 0", " for i in range(2):"]
    long += [f"  y = (y + {i}) % 7 if n else y" for i in range(3000)]
    long += ["  check(cap(), here())", "g(1)"]
    exec(compile("\n".join(long), "<long>", "exec"), space)


def case_unicode():
    space = {"check": check, "cap": cap, "here": here}
    names = ["ascii", "é", "ßäö", "Ω", "\u4e2d\u6587", "\U0001d4d0bc", "x" * 255, "\u4e2d" * 300]
    for name in names:
        name = name if name.isidentifier() else "f"
        source = f"def {name}():\n  check(cap(), here())\n{name}()\n"
        for file in ("<a>", "caf\xe9.py", "\u4e2d.py", "\U0001f600.py", "lone\udc80.py"):
            exec(compile(source, file, "exec"), space)


def case_short_file_names():
    """Code objects that differ in nothing but a short file name, at one address after the other."""
    space = {"check": check, "cap": cap, "here": here}
    for first in "abcdefgh\xe9\u4e2d\U0001f600":
        for second in "xyz":
            exec(compile("check(cap(), here())", first + second, "exec"), space)


def case_recursion():
    sys.setrecursionlimit(5000)
    def down(n):
        if n:
            return down(n - 1)
        check(cap(), here())
        assert len(frames_of(cap())) == MAX_FRAMES
    down(1000)
    for n in (0, 1, 125, 126, 127, 128):
        (lambda: down_to(n))()


def down_to(n):
    if n:
        return down_to(n - 1)
    check(cap(), here())
