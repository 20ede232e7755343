"""Selectors of an environment.yml (`# [linux]`), read by conda-lock, whose notation they are."""

from __future__ import annotations

import importlib.util
import re

from stackfix.errors import BadInput

SELECTOR = re.compile(r"(?m)^\s*[^\s#].*#.*\[[^\[\]]+\][^()\n]*$")


def has_selectors(text: str) -> bool:
    """Whether a line ends with a selector."""
    return SELECTOR.search(text) is not None


def for_platform(text: str, platform: str, shown: str) -> str:
    """The lines for one platform; those for others are empty, so that numbers of lines stay.

    Raises BadInput where conda-lock is not installed, or does not know the platform.
    """
    if importlib.util.find_spec("conda_lock") is None:
        raise BadInput(f"{shown} line {first_selector(text)}", "has a selector, which conda-lock reads",
                       "install it with `pip install 'stackfix[conda-lock]'`, or take the selectors out")
    import logging
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")     # of what conda-lock brings with it
        filter_lines = importlib.import_module("conda_lock.src_parser.selectors").filter_platform_selectors
    logger = logging.getLogger("conda_lock.src_parser.selectors")
    before = logger.disabled
    logger.disabled = True              # it warns of each line that it leaves out
    try:
        return "\n".join("".join(filter_lines(line, platform)) for line in text.split("\n"))
    except KeyError:
        raise BadInput(f"{shown} line {first_selector(text)}",
                       f"has a selector, which conda-lock cannot read for {platform}") from None
    finally:
        logger.disabled = before


def first_selector(text: str) -> int:
    """The number of the first line with one."""
    found = SELECTOR.search(text)
    return text.count("\n", 0, found.start() + len(found[0]) - len(found[0].lstrip())) + 1 if found else 1
