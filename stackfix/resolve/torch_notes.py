"""Notes on what comes from the torch index: what stood in for it, and which requirements nobody read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stackfix.matrix import query
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.needs import Candidate
from stackfix.resolve.solve import Solved
from stackfix.resolve.torch_family import FAMILY, TorchWheels, build_of
from stackfix.sources.errors import SdistNeedsBuild

PLACES = {"high": "independent public locks", "medium": "one public lock"}


def torch_index_notes(evidence: Evidence, solved: Solved) -> Iterator[str]:
    """All of them; none for a stack of the default index alone."""
    wheels = evidence.torch_wheels
    found: dict[str, Candidate] = {}
    for _, closure in sorted(solved.closures.items(), key=lambda pair: pair[0]):
        found.update((each.files[0].url, each) for _, each in sorted(closure.chosen.items())
                     if each.files[0].torch_path is not None)
    if wheels is None or not found:
        return
    if wheels.away is not None:
        verb = "is" if len({each.label for each in found.values()}) == 1 else "are"
        yield (f"the torch index could not be reached ({wheels.away.reason}): {_labels(found.values())} {verb} locked"
               " from what the matrix knows of its files")
    yield from _hash_notes(wheels, found.values())
    yield from _requires_notes(evidence, wheels, found.values())
    yield from _unnamed_notes(found.values())


def _hash_notes(wheels: TorchWheels, found: Iterable[Candidate]) -> Iterator[str]:
    """Hashes that no page of the index states, by how many places do."""
    by: dict[str, list[Candidate]] = {}
    for candidate in found:
        row = wheels.row(candidate.files[0])
        if row is not None and not wheels.states_hash(candidate.files[0]):
            by.setdefault(row.confidence, []).append(candidate)
    for confidence, candidates in sorted(by.items()):
        why = "" if wheels.away is not None else "its page states none: "
        yield (f"the sha256 of {_labels(candidates)} is the matrix's ({why}{PLACES.get(confidence, 'unknown places')}"
               f" state{'s' if confidence == 'medium' else ''} it, {confidence} confidence)")


def _requires_notes(evidence: Evidence, wheels: TorchWheels, found: Iterable[Candidate]) -> Iterator[str]:
    """Requirements that were read of no wheel of the index."""
    others: list[Candidate] = []
    for candidate in found:
        metadata, row = evidence.metadata(candidate), wheels.row(candidate.files[0])
        if isinstance(metadata, SdistNeedsBuild) or metadata.basis != "matrix":
            continue
        build = build_of(evidence.matrix, candidate.files[0]) if candidate.name == "torch" else None
        if build is not None:
            source = f"{build.confidence} confidence: {build.source.partition(';')[0]}"
            libraries = ("that it needs no CUDA libraries is said by the matrix" if build.cuda == query.CPU
                         else "its CUDA libraries are those of the matrix" if build.cudnn is not None
                         else "that it carries its CUDA libraries is said by the matrix")
            yield (f"what {candidate.label} requires was not read of its wheel: {libraries} ({source}), the rest is"
                   " that of the default index's wheel")
        elif row is None or row.requires is None:
            others.append(candidate)
    if others:
        yield (f"what {_labels(others)} require{'s' if len(others) == 1 else ''} was not read: it is taken from the"
               f" default index's wheel of the release")


def _unnamed_notes(found: Iterable[Candidate]) -> Iterator[str]:
    """Companions for aarch64 on a path of CUDA whose names do not say so: those for the CPU have the same name."""
    unnamed = [each for each in found if each.name in FAMILY and each.name != "torch" and each.version.local is None
               and each.files[0].torch_path != query.CPU and each.files[0].filename.endswith("aarch64.whl")]
    if unnamed:
        yield (f"whether {_labels(unnamed)} for aarch64 {'has' if len(unnamed) == 1 else 'have'} CUDA kernels is not"
               " known: the file names do not say, and no wheel was read")


def _labels(candidates: Iterable[Candidate]) -> str:
    """`torch 2.3.1+cu118 and torchvision 0.18.1+cu118`."""
    labels = sorted({candidate.label for candidate in candidates})
    return " and ".join(filter(None, (", ".join(labels[:-1]), labels[-1])))
