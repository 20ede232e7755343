"""What projects document of their torch where their wheels' metadata require none, by release."""

from __future__ import annotations

import re

NAMED = re.compile(r"nvfuser-cu\d+-torch(\d)(\d+)")      # the project's own name tells: nvfuser-cu121-torch24

# package: (where it is written, {first numbers of the release: what it says of torch})
DOCUMENTED: dict[str, tuple[str, dict[str, str]]] = {
    "torchcodec": ("the table of releases in its own METADATA (0.17.0)", {
        "0.1": "==2.5.*", "0.2": "==2.6.*", "0.4": "==2.7.*", "0.7": "==2.8.*", "0.8": "==2.9.*", "0.10": "==2.10.*",
        "0.13": ">=2.11"}),
    "fbgemm-gpu": ("the compatibility table of its documentation", {
        "0.5": "==2.1.*", "0.7": "==2.3.*", "1.0": "==2.5.*", "1.2": "==2.7.*", "1.4": "==2.9.*"}),
}


def documented_torch(package: str, version: str) -> str | None:
    """What is documented of torch for a release; None where nothing is."""
    named = NAMED.fullmatch(package)
    if named:
        return f"=={named[1]}.{named[2]}.*"
    _, releases = DOCUMENTED.get(package, ("", {}))
    return releases.get(".".join(version.split(".")[:2]))
