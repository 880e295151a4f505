"""The gpuboost command: run a program under the library, read what it recorded, show the gain."""


class CommandError(Exception):
    """Something the user can put right; said in one line, exit status 2."""
