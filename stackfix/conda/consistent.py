"""When the conda lock and the pip lock of a target are the same stack. docs/consistency.md states it; this decides it.

Each rule yields what is against it (`breaks`), and what differs within it, with the reason that the records give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from stackfix.abi.records import Books
from stackfix.conda.bounds import lines_for
from stackfix.conda.consistent_libraries import cudnn, libraries, nvjitlink
from stackfix.conda.consistent_packages import differ, flash_attn, others, requested, rules, twice
from stackfix.conda.excluded import builds_there, why_not
from stackfix.conda.names import NameBook, Shelf
from stackfix.conda.pair import Pair
from stackfix.conda.records import CondaTarget, Departure
from stackfix.conda.sides import conda_side, pip_side
from stackfix.matrix import query
from stackfix.matrix.records import Matrix
from stackfix.resolve.records import TargetLock


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: what its departures are about, and what it says (the same sentence stands in the documentation)."""

    about: str
    says: str
    check: Callable[[Pair], Iterator[Departure]]


def departures(
    pip: TargetLock | None, conda: CondaTarget, matrix: Matrix, book: NameBook, *, books: Books | None = None,
    shelf: Shelf | None = None, given_up: Mapping[str, str] | None = None,
) -> tuple[Departure, ...]:
    """Where the two differ, in the order of the rules; () where they are the same stack throughout.

    Without `pip` only what holds for the conda side alone is looked at. `shelf` has all records that the channels have
    of a name: with it absence is told as a reason. `given_up`: of a package, why what was wished of it could not be.
    """
    pair = Pair(
        pip=pip_side(pip) if pip is not None else None, conda=conda_side(conda, pip, matrix, book), target=conda,
        matrix=matrix, books=books, shelf=shelf, given_up=given_up or {},
    )
    return tuple(found for rule in RULES for found in rule.check(pair))


def _torch(pair: Pair) -> Iterator[Departure]:
    pip, conda = pair.pip, pair.conda
    if conda.torch is None:
        yield pair.breaks("torch", pip.torch if pip else None, None, "no package and no wheel brings torch")
    elif pip is not None and differ(pip.torch, conda.torch):
        yield pair.breaks("torch", pip.torch, conda.torch, "the releases differ", conda.source)


def _python(pair: Pair) -> Iterator[Departure]:
    wanted, found = pair.target.target.python, pair.conda.python
    if found != wanted:
        yield pair.breaks("python", wanted if pair.pip else None, found, f"the lock is for Python {wanted}")
    torch = pair.target.torch
    if torch is not None and found is not None and torch.python != found:
        yield pair.breaks("python", None, found, f"torch is built for Python {torch.python}", torch.record.file_name)


def _cuda(pair: Pair) -> Iterator[Departure]:
    yield from _selector(pair)
    pip, conda = pair.pip, pair.conda
    if pip is None or pip.cuda is None or conda.cuda is None or pip.cuda == conda.cuda:
        return
    reason, source = builds_there(pair.target, pair.shelf, pip.cuda) or (
        f"this build is for {_cuda_words(conda.cuda)}", conda.source)
    family = query.driver_floor(pair.matrix, pip.cuda)
    if family is None or family is not query.driver_floor(pair.matrix, conda.cuda):
        yield pair.breaks("cuda", pip.cuda, conda.cuda, reason, source)
        return
    proof = f"both run on the same drivers, {family.floor} and newer ({family.source})"
    yield pair.told("cuda", pip.cuda, conda.cuda, f"{reason}; {proof}", source)


def _selector(pair: Pair) -> Iterator[Departure]:
    """pytorch-cuda is the CUDA of a repacked build and must be that; cuda-version is only told."""
    records = {record.name: record for record in pair.target.records}
    torch, chosen = pair.target.torch, records.get("pytorch-cuda")
    if torch is None or torch.cuda == query.CPU:
        return
    if chosen is not None and not _of_minor(chosen.version, torch.cuda):
        reason = f"{torch.record.file_name} is built for CUDA {torch.cuda}"
        yield pair.breaks("cuda", None, f"pytorch-cuda {chosen.version}", reason, torch.record.file_name)
    version = records.get("cuda-version")
    if version is None or _of_minor(version.version, torch.cuda):
        return
    if chosen is not None:
        bringing = [one.name for one in pair.target.records if any(lines_for(one.depends, "cuda-version"))]
        reason = f"it comes with {', '.join(bringing) or 'what was asked'}; of this build pytorch-cuda is the CUDA"
    else:
        reason = f"the libraries are of CUDA {version.version}, and torch is built for {torch.cuda}"
        why = pair.given_up.get("cuda-version") or _excludes(pair, version.version, torch.cuda)
        reason = f"{reason}: {why}" if why else reason
    yield pair.told(
        "cuda", pair.pip.cuda if pair.pip else None, f"cuda-version {version.version}", reason, version.file_name)


def _excludes(pair: Pair, version: str, cuda: str) -> str | None:
    """Why cuda-version is this, and not torch's own CUDA."""
    if pair.pip is not None and pair.pip.cuda is not None and _of_minor(version, pair.pip.cuda):
        return f"they are held to the CUDA {pair.pip.cuda} of the wheel"
    return why_not(pair.target, "cuda-version", cuda, pair.shelf)[0] if pair.shelf is not None else None


def _of_minor(version: str, cuda: str) -> bool:
    return version == cuda or version.startswith(f"{cuda}.")


def _cuda_words(cuda: str) -> str:
    return "the CPU" if cuda == query.CPU else f"CUDA {cuda}"


def _abi(pair: Pair) -> Iterator[Departure]:
    pip, conda = pair.pip, pair.conda
    if pip is None or pip.cxx11_abi is None or conda.cxx11_abi is None or pip.cxx11_abi is conda.cxx11_abi:
        return
    words = {True: "new", False: "old"}
    yield pair.told("c++ abi", words[pip.cxx11_abi], words[conda.cxx11_abi],
                    "the builds were compiled so, and each side's extensions are those of its own", conda.source)


RULES = (
    Rule(about="torch", says="Both sides have the same release of torch.", check=_torch),
    Rule(about="python", says="Both sides are for the same minor of Python.", check=_python),
    Rule(about="cuda", check=_cuda, says=(
        "Both torch builds are for the CPU, or for the same major and minor of CUDA; else for the same major, where the"
        " matrix shows that one driver runs both. cuda-version is told and not compared.")),
    Rule(about="c++ abi", says="The C++ ABI of torch may differ, and is told.", check=_abi),
    Rule(about="cudnn", check=cudnn, says=(
        "cuDNN is of the same major on both sides and within what the channel's torch asks for, or the one of its build"
        " string where it is linked in.")),
    Rule(about="nvjitlink", says="On each side nvJitLink is new enough for cuSPARSE and cuSOLVER.", check=nvjitlink),
    Rule(about="flash-attn", check=flash_attn, says=(
        "Both sides have the same release of flash-attn or none, and a wheel of it is for the torch that it stands"
        " beside.")),
    Rule(about="rules", check=rules, says=(
        "What the matrix knows of packages and no metadata states (transformers 5.1 needs torch 2.4) holds on the conda"
        " side as well.")),
    Rule(about="requested", check=requested, says=(
        "What was asked for by name is on both sides: at the same release where pip brings it to both, else a"
        " difference is told.")),
    Rule(about="twice", says="Nothing is brought by a channel and by pip at once.", check=twice),
    Rule(about="libraries", says="Where other CUDA libraries differ in their versions, that is told.", check=libraries),
    Rule(about="others", check=others, says=(
        "What nobody named and both sides have (triton, numpy, jinja2) has the pip lock's release where that fits; a"
        " difference is told.")),
)
