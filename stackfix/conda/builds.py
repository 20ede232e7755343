"""Torch builds of channels, as their records tell: CUDA, cuDNN, C++ ABI and Python.

Two recipes made nearly all of them, and their build strings differ. conda-forge's (and that of Anaconda's defaults):
`cuda126_mkl_py312_hdbe889e_310`, with the hash of conda's own compilers. The pytorch channel's, repacked wheels:
`py3.11_cuda12.1_cudnn8.9.2_0`. What the build string says and what the dependencies bound must agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stackfix.conda.bounds import lines_for, lower_bound
from stackfix.conda.records import CondaRecord, CondaTorch
from stackfix.matrix.query import CPU
from stackfix.matrix.records import Matrix, TorchBuild
from stackfix.resolve.pep508 import parse_version

PYTORCH = "pytorch"
_REPACKED = re.compile(
    r"py(?P<python>\d\.\d+)_(?:cuda(?P<cuda>\d+\.\d+)(?:\.\d+)?_cudnn(?P<cudnn>\d+(?:\.\d+)*)|cpu)_\d+"
)
_COMPILED = re.compile(
    r"(?:(?:gpu|cpu)_)?(?:cuda(?P<cuda>\d{2,4})|cpu)_?(?:(?:mkl|generic|openblas)_?)?"
    r"py(?P<python>\d{2,3})_?h[0-9a-f]{7}_\d+"
)
_MINOR = re.compile(r"\d+\.\d+")
GLIBC = "2.17"          # what conda-forge compiles for where a record names no __glibc


class _CannotTell(Exception):
    """Why a record is not read as a build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A record of torch of which not all can be told, and so never a candidate."""

    record: CondaRecord
    reason: str


def torch_builds(records: Iterable[CondaRecord]) -> tuple[CondaTorch, ...]:
    """The builds that can be read, newest release first, newest build of each first. Other packages are passed over."""
    read = [found for found in _read_all(records) if isinstance(found, CondaTorch)]
    return tuple(sorted(read, key=_newest_first, reverse=True))


def unread_builds(records: Iterable[CondaRecord]) -> tuple[Unread, ...]:
    """Records of torch that cannot be read, and why."""
    return tuple(found for found in _read_all(records) if isinstance(found, Unread))


def _newest_first(torch: CondaTorch) -> tuple[object, int, int, str]:
    record = torch.record
    return parse_version(record.version), record.build_number, record.timestamp or 0, record.file_name


def _read_all(records: Iterable[CondaRecord]) -> Iterator[CondaTorch | Unread]:
    for record in records:
        if record.name != PYTORCH:
            continue
        try:
            yield _read(record)
        except _CannotTell as reason:
            yield Unread(record=record, reason=str(reason))


def _read(record: CondaRecord) -> CondaTorch:
    if parse_version(record.version) is None:
        raise _CannotTell(f"{record.version} is no version that the Python index could have as well")
    repacked = _REPACKED.fullmatch(record.build)
    compiled = _COMPILED.fullmatch(record.build)
    named = repacked or compiled
    if named is None:
        raise _CannotTell(f"its build string {record.build} has none of the forms that are known")
    cuda = _cuda(record, repacked["cuda"] if repacked else _dotted_cuda(named["cuda"]))
    python = _python(record, named["python"] if repacked else f"{named['python'][0]}.{named['python'][1:]}")
    linked = repacked is not None and cuda != CPU
    cudnn = named["cudnn"] if repacked is not None else _bound(record, "cudnn", "libcudnn")
    return CondaTorch(
        record=record, cuda=cuda, cudnn=None if cuda == CPU else cudnn, cudnn_linked=linked,
        cxx11_abi=repacked is None, python=python, source=f"build string and dependencies of {record.file_name}",
    )


def _dotted_cuda(digits: str | None) -> str | None:
    """`12.6` of 126, `9.2` of 92: the last digit is the minor."""
    return f"{digits[:-1]}.{digits[-1]}" if digits else None


def _cuda(record: CondaRecord, named: str | None) -> str:
    """CUDA by the build string; what the record's dependencies bound must not contradict it."""
    selector = next(lines_for(record.depends, "pytorch-cuda", "cuda-version", "cudatoolkit"), None)
    bound = lower_bound(selector.version) if selector is not None else None
    minor = _MINOR.match(bound) if bound else None
    if named is None:
        if selector is not None or any(lines_for(record.depends, "__cuda")):
            raise _CannotTell(f"its build string {record.build} names no CUDA, and it depends on one")
        return CPU
    if selector is not None and minor is not None and minor[0] != named:
        raise _CannotTell(f"its build string says CUDA {named}, and it depends on {selector.text}")
    return named


def _python(record: CondaRecord, named: str) -> str:
    if any((line.build or "").endswith("t") for line in lines_for(record.depends, "python_abi")):
        raise _CannotTell("it is for the free-threaded Python, which this version does not lock for")
    bound = _bound(record, "python_abi") or _bound(record, "python")
    if bound is not None and not (bound == named or bound.startswith(f"{named}.")):
        raise _CannotTell(f"its build string says Python {named}, and its dependencies {bound}")
    return named


def _bound(record: CondaRecord, *names: str) -> str | None:
    bounds = (lower_bound(line.version) for line in lines_for(record.depends, *names))
    return next((bound for bound in bounds if bound is not None), None)


def as_torch_build(torch: CondaTorch, matrix: Matrix) -> TorchBuild:
    """The build as a row of the matrix, so that flash-attn and companions are judged by it like by a wheel.

    `index` is the channel's address: no index has it. It requires nothing that pip could bring.
    """
    record = torch.record
    nccl = None if torch.cuda == CPU else _bound(record, "nccl")
    return TorchBuild(
        version=str(parse_version(record.version)), platform=record.subdir, cuda=torch.cuda, index=record.channel,
        pythons=(torch.python,), cxx11_abi=torch.cxx11_abi, gpu_archs=(), requires=(),
        toolkit=_toolkit(torch, matrix), cudnn=torch.cudnn, nccl=nccl,
        glibc=_bound(record, "__glibc") or GLIBC, source=torch.source, confidence="certain",
    )


def _toolkit(torch: CondaTorch, matrix: Matrix) -> str | None:
    """The toolkit release whose libraries are this record's lower bounds, where one has exactly these; else None."""
    if torch.cuda == CPU:
        return None
    bound = _bound(torch.record, "libcublas")
    major = torch.cuda.partition(".")[0]
    name = f"nvidia-cublas-cu{major}" if major in {"11", "12"} else "nvidia-cublas"
    fitting = [
        row.toolkit for row in matrix.components
        if row.package == name and row.version == bound and row.toolkit.startswith(f"{torch.cuda}.")
    ]
    return fitting[0] if len(fitting) == 1 else None
