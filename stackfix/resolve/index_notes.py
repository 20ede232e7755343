"""Notes on packages that do not come from where the matrix knows them.

An additional index stands before the default one, so whoever runs it decides what torch is: that may be meant (own
builds) or not (a name that somebody else took), and only the user can tell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from stackfix.resolve.nightly_ask import LIBRARIES
from stackfix.resolve.records import TargetLock

KNOWN = frozenset({"torch", "torchvision", "torchaudio", "triton", "xformers", "flash-attn"})


def index_notes(targets: Collection[TargetLock], *, default: str, pinned: Collection[str]) -> Iterator[str]:
    """A note for each additional index that a package of torch's stack comes from. `pinned`: what the user put there.

    `default`: the default index's address, without credentials.
    """
    found: dict[str, list[str]] = {}
    for package in (package for target in targets for package in target.packages):
        file = package.files[0]
        own = package.direct or file.torch_path is not None or package.name in pinned
        if own or file.index == default or not (package.name in KNOWN or package.name.startswith(LIBRARIES)):
            continue
        listed = found.setdefault(file.index, [])
        label = f"{package.name} {package.version}"
        if label not in listed:
            listed.append(label)
    for index, labels in found.items():
        verb, their = ("comes", "its") if len(labels) == 1 else ("come", "their")
        yield (f"{', '.join(labels)} {verb} from the additional index {index}, which stands before the default one:"
               f" what the matrix knows of {their} wheels may not hold there; if that is not meant, pin your own"
               " projects to that index in [tool.uv.sources], or leave it out")
