#!/bin/sh
# Prints the linker version script for the hooked names of $1 (hooks.def). The node is anonymous:
# a named node would silently stop interposition (measured; see docs/design.md).
set -eu
echo "{ global:"
sed -n 's/^HOOK_DRIVER(\([A-Za-z0-9_]*\),.*/  \1;/p; s/^HOOK_RUNTIME(\([A-Za-z0-9]*\), \(_[a-z]*\)\{0,1\} *,.*/  \1\2;/p' "$1" | sort -u
echo "  dlsym;"
echo "local: *; };"
