"""Reads what Callgrind wrote and says whose instructions they were (Valgrind manual, "Callgrind Format Specification")."""

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
            elif line[:1] in "+-*0123456789" and line[:1]:
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

    def part(self, is_part, is_other):
        """Instructions of the objects for which is_part(object), with what they call, but not what is_other(object).

        What a called object calls back is counted twice; that is right for a bound from above.
        """
        own = sum(count for name, count in self.own.items() if is_part(name))
        return own + sum(below for (caller, _, callee, _), (_, below) in self.edges.items()
                         if is_part(caller) and not is_part(callee) and not is_other(callee))

    def calls_of(self, is_part, function):
        """How often a function of these objects was called, and the instructions below."""
        found = [edge for (_, _, callee, name), edge in self.edges.items() if is_part(callee) and name == function]
        return sum(calls for calls, _ in found), sum(below for _, below in found)
