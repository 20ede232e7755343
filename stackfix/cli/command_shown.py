"""Commands of ours as they are printed: typed as they stand, in the same shell, they are about the same environment."""

from __future__ import annotations

import os
import shlex
import sys

from stackfix.errors import StackfixError
from stackfix.inspect.environment_find import find_environment
from stackfix.inspect.places import Root


def command_for(prefix: str, *words: str) -> str:
    """`stackfix WORDS`, with --prefix where `prefix` is not what is meant without it."""
    try:
        active = find_environment(Root(), os.environ, prefix=None, python=None, running=sys.prefix).prefix
    except StackfixError:
        active = None
    return shlex.join(["stackfix", *words, *(() if active == prefix else ("--prefix", prefix))])
