"""Which versions of a package the index has, as pip tells them."""

from __future__ import annotations

import re

from stackfix.abi.nvidia_versions import sorted_versions, version_key
from stackfix.almanac.fetch import no_answer, run_pip
from stackfix.almanac.nvidia_libraries import is_placeholder

ASKED = ("index", "versions", "--pre", "--no-input", "--disable-pip-version-check", "--no-color")
AVAILABLE = re.compile(r"^Available versions: (.*)$", re.MULTILINE)


def published(package: str) -> tuple[str, ...]:
    """All versions, pre-releases too, oldest first, without placeholders. Raises Unreachable.

    pip leaves out withdrawn ones and such as have no file for this platform, and has some that are source only.
    """
    status, told, faults = run_pip([*ASKED, "--", package], {})
    found = AVAILABLE.search(told)
    if status or found is None:
        raise no_answer(package, faults)
    versions = {each.strip() for each in found[1].split(",")}
    return sorted_versions(each for each in versions if version_key(each) and not is_placeholder(each))
