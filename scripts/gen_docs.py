#!/usr/bin/env python3
"""Writes the options table of README.md from preload/options/options.def.

The table stands between <!-- options:begin --> and <!-- options:end -->. With --check nothing is
written; the exit status is 1 when the table is not up to date (for lint and CI).
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- options:begin -->", "<!-- options:end -->"
OPTION = re.compile(r"^GB_OPTION_(BOOL|ENUM|SIZE|TIME|SHARE|TEXT)\((.*)\)$", re.MULTILINE)


def split_arguments(text):
    """The arguments of a macro call; commas inside quotes do not part them."""
    return [a.strip() for a in re.findall(r'(?:"(?:\\.|[^"])*"|[^,"])+', text)]


def number(expression):
    """The value of a C constant such as 64ull << 20."""
    match = re.fullmatch(r"(\d+)(?:u?l{0,2})?(?:\s*<<\s*(\d+))?", expression)
    if not match:
        sys.exit(f"gen_docs: not a constant: {expression}")
    return int(match[1]) << int(match[2] or 0)


def scaled(value, units):
    """As the library prints it: the largest unit that divides the value."""
    for factor, unit in units:
        if value and value % factor == 0:
            return f"{value // factor}{unit}"
    return f"{value}{units[-1][1]}"


def size(expression):
    units = [(1 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K"), (1, "")]
    return scaled(number(expression), units)


def time(expression):
    return scaled(number(expression), [(10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns")])


def enumerators():
    """Value of each enumerator of config.h: its place in its enum."""
    text = (ROOT / "preload/options/config.h").read_text()
    values = {}
    for body in re.findall(r"enum \w+ \{([^}]*)\}", text):
        values.update({name.strip(): i for i, name in enumerate(body.split(","))})
    return values


def row(kind, arguments, enums):
    """(name, values, default, help) of one option."""
    name, default, text = arguments[1].strip('"'), arguments[2], arguments[-1].strip('"')
    if kind == "BOOL":
        return name, "`on`, `off`", "on" if default == "true" else "off", text
    if kind == "ENUM":
        choices = arguments[3].strip('"').split(",")
        index = int(default) if default.isdigit() else enums[default]
        return name, ", ".join(f"`{c}`" for c in choices), choices[index], text
    if kind == "SHARE":
        return name, "`1/n`, `off`", f"1/{default}" if default != "0" else "off", text
    if kind == "TEXT":
        return name, "text", default.strip('"'), text
    show = size if kind == "SIZE" else time
    return name, f"{show(arguments[3])} … {show(arguments[4])}", show(default), text


def table():
    source = (ROOT / "preload/options/options.def").read_text()
    # The comment at the top explains the macros with calls of the same shape.
    source = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
    enums = enumerators()
    lines = ["| variable | values | default | meaning |", "|---|---|---|---|"]
    for kind, text in OPTION.findall(source):
        name, values, default, meaning = row(kind, split_arguments(text), enums)
        shown = f"`{default}`" if default else ""
        lines.append(f"| `{name}` | {values} | {shown} | {meaning.replace('|', chr(92) + '|')} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail when out of date")
    parser.add_argument("--readme", type=pathlib.Path, default=ROOT / "README.md",
                        help="file with the markers")
    options = parser.parse_args()
    old = options.readme.read_text(encoding="utf-8")
    if old.count(BEGIN) != 1 or old.count(END) != 1 or old.index(BEGIN) > old.index(END):
        sys.exit(f"gen_docs: {options.readme} needs one {BEGIN} and one {END} after it")
    head, rest = old.split(BEGIN)
    new = f"{head}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"
    if new == old:
        return 0
    if options.check:
        print(f"gen_docs: the options table of {options.readme} is out of date; run make docs",
              file=sys.stderr)
        return 1
    options.readme.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
