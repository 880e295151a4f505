"""Reads what Callgrind wrote (Valgrind manual, "Callgrind Format Specification")."""

import collections
import re

NAME = re.compile(r"\((\d+)\)(?: (.*))?")
KINDS = {"ob": "ob", "cob": "ob", "fn": "fn", "cfn": "fn"}  # fl=, fi=, fe=, cfi=, cfl= do not matter here


class Profile:
    """Instructions by object file (`own`), and those below each call from one function to another (`edges`)."""

    def __init__(self, lines):
        self.own = collections.Counter()
        self.edges = collections.defaultdict(lambda: [0, 0])  # (object, function, object, function): calls, below
        names, at, call = {}, {"ob": "", "fn": ""}, None
        for line in lines:
            key, equals, value = line.rstrip("\n").partition("=")
            if equals and key in KINDS:
                number, name = NAME.fullmatch(value).groups()
                if name is not None:
                    names[KINDS[key], number] = name
                at[key] = names[KINDS[key], number]
            elif equals and key == "calls":
                call = int(value.split()[0])
            elif line[0] in "+-*0123456789":
                cost = int((line.split() + ["0"])[1])
                if call is None:
                    self.own[at["ob"]] += cost
                    continue
                edge = self.edges[at["ob"], at["fn"], at.pop("cob", at["ob"]), at.pop("cfn")]
                edge[0] += call
                edge[1] += cost
                call = None

    @property
    def total(self):
        return sum(self.own.values())

    def under(self, is_meant):
        """Instructions below the calls for which is_meant(object, function, called object, called function)."""
        return sum(below for edge, (_, below) in self.edges.items() if is_meant(*edge))

    def with_callees(self, is_part, is_other):
        """Instructions of the objects for which is_part(object), with what they call, but not what is_other."""
        own = sum(count for name, count in self.own.items() if is_part(name))
        return own + self.under(lambda a, _, b, __: is_part(a) and not is_part(b) and not is_other(b))

    def calls_of(self, function):
        """How often a function was called, and the instructions below."""
        found = [edge for (_, _, _, name), edge in self.edges.items() if name == function]
        return sum(calls for calls, _ in found), sum(below for _, below in found)
