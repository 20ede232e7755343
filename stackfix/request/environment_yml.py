"""`-r environment.yml`: what it asks of both sides, of channels alone, of Python and of CUDA."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from stackfix.errors import BadInput
from stackfix.matrix.records import CondaNames
from stackfix.platforms import split_place
from stackfix.request.environment_input import EnvironmentInput, Said, merged
from stackfix.request.environment_line import (
    Dependency,
    conda_text,
    conda_version,
    parse_dependency,
    pip_specifier,
)
from stackfix.request.environment_names import EnvironmentNames
from stackfix.request.environment_selectors import for_platform, has_selectors
from stackfix.request.logical_lines import logical_lines
from stackfix.request.requirements_in import IndexOptions, read_line, read_requirements, read_text, resolve
from stackfix.request.requirements_in import Reading as RequirementsReading
from stackfix.resolve.records import CondaLine, Requirement
from stackfix.write.yaml_read import Node, Source, parse_yaml

KNOWN = frozenset({"name", "channels", "dependencies", "prefix", "variables", "platforms", "category"})
HINT = "correct the line, or give what it says as an option"
CUDA_PACKAGES = frozenset({"cuda-version", "pytorch-cuda", "cudatoolkit"})      # their version is CUDA's
CPU_PACKAGES = frozenset({"cpuonly", "pytorch-cpu"})
TORCH_PACKAGES = frozenset({"pytorch-gpu", "pytorch-cpu"})
A_RELEASE = re.compile(r"\d+\.\d+\.\d|==\d+\.\d+$")        # of Python, more than its minor


@dataclass(slots=True, kw_only=True)
class Reading:
    """The state of one reading for one platform."""

    source: Source
    folder: Path
    shown: str
    environ: Mapping[str, str]
    names: EnvironmentNames
    requirements: list[Requirement] = field(default_factory=list)
    lines: list[CondaLine] = field(default_factory=list)
    pythons: list[Said] = field(default_factory=list)
    cudas: list[Said] = field(default_factory=list)
    index: IndexOptions = field(default_factory=IndexOptions)
    channels: list[str] = field(default_factory=list)       # that single dependencies name
    files: list[Path] = field(default_factory=list)

    def where(self, line: int) -> str:
        """`environment.yml line 7`."""
        return f"{self.shown} line {line}"


def read_environment_yml(
    path: Path, environ: Mapping[str, str], names: CondaNames, platforms: tuple[str, ...],
) -> EnvironmentInput:
    """What the file asks. `platforms`: asked for by options; () for none. Raises BadInput naming file and line.

    A file with selectors (`# [linux]`) is read once for each platform; what only some have is asked for there alone.
    """
    shown = str(path)
    real = resolve(path, shown)
    text = read_text(real, shown)
    source = Source(path=shown, hint=HINT)
    told = tuple(file_platforms(text, source))
    if not has_selectors(text):
        found = replace(read_for(text, path, shown, environ, names), platforms=told)
        return replace(found, files=(real, *found.files))
    wanted = platforms or tuple(dict.fromkeys(split_place(one.value)[0] for one in told)) or ("linux-64",)
    each = {one: read_for(for_platform(text, one, shown), path, shown, environ, names) for one in wanted}
    return replace(merged(each), platforms=told, files=(real, *next(iter(each.values())).files))


def file_platforms(text: str, source: Source) -> Iterator[Said]:
    """The values of `platforms`."""
    document = source.mapping(parse_yaml(text, source), "the file")
    node = document.get("platforms")
    for item in source.sequence(node, "platforms") if node is not None and node.value is not None else ():
        value = source.text(item, "a platform")
        yield Said(value=value, origin=f"{source.path} line {item.line}")


def read_for(text: str, path: Path, shown: str, environ: Mapping[str, str], names: CondaNames) -> EnvironmentInput:
    """The file as it is for one platform."""
    source = Source(path=shown, hint=HINT)
    root = parse_yaml(text, source)
    document = source.mapping(root, "the file")
    unknown = next((key for key in document if key not in KNOWN), None)
    if unknown is not None:
        source.refuse(document[unknown].line, f"no such key as {unknown} in an environment.yml")
    reading = Reading(source=source, folder=path.parent, shown=shown, environ=environ, names=EnvironmentNames(names))
    node = document.get("dependencies")
    for item in source.sequence(node, "dependencies") if node is not None and node.value is not None else ():
        read_item(reading, item)
    channels = document.get("channels")
    named = source.texts(channels, "channels") if channels is not None and channels.value is not None else ()
    return EnvironmentInput(
        requirements=tuple(dict.fromkeys(reading.requirements)), conda_lines=tuple(dict.fromkeys(reading.lines)),
        channels=tuple(dict.fromkeys((*(name for name in named if name != "nodefaults"),
                                      *(reading.channels if named else ())))), index=reading.index,
        pythons=tuple(reading.pythons), cudas=tuple(reading.cudas), files=tuple(reading.files))


def read_item(reading: Reading, item: Node) -> None:
    """One entry of `dependencies`: a MatchSpec, or the pip section."""
    if item.value is None:
        return                          # an empty item, as a selector can leave it
    if isinstance(item.value, dict):
        for key, node in item.value.items():
            if key != "pip":
                reading.source.refuse(node.line, f"no such section as {key}")
            for line in reading.source.sequence(node, "pip") if node.value is not None else ():
                read_pip_line(reading, reading.source.text(line, "a requirement"), line.line)
        return
    text = reading.source.text(item, "a dependency")
    read_dependency(reading, parse_dependency(text, reading.where(item.line)), reading.where(item.line))


def read_dependency(reading: Reading, one: Dependency, where: str) -> None:
    """One MatchSpec, given to whom it concerns."""
    if one.channel:
        reading.channels.append(one.channel)
    if one.name == "python":
        read_python(reading, one, where)
    elif one.name in CUDA_PACKAGES:
        read_cuda(reading, one, where)
    else:
        if one.name in CPU_PACKAGES or (one.name == "pytorch" and "cpu" in (one.build or "")):
            reading.cudas.append(Said(value="cpu", origin=f"{where}: {one.text}"))
        if one.name not in CPU_PACKAGES - TORCH_PACKAGES:
            read_package(reading, one, where)


def read_python(reading: Reading, one: Dependency, where: str) -> None:
    """The version of Python; a release or a build of it is asked of channels, too."""
    specifier = pip_specifier(one)
    if specifier is None:
        raise BadInput(where, f"is no version of Python that both sides read: {one.text}", "write python=3.11")
    if specifier:
        reading.pythons.append(Said(value=specifier, origin=f"{where}: {one.text}"))
    if one.build or one.channel or A_RELEASE.search(conda_version(one) or ""):
        reading.lines.append(CondaLine(text=conda_text(one), origin=where))


def read_cuda(reading: Reading, one: Dependency, where: str) -> None:
    """A package whose version is CUDA's: asked of channels as it stands, and torch must be built for such a CUDA."""
    cuda = cuda_of(one)
    if cuda is not None:
        reading.cudas.append(Said(value=cuda, origin=f"{where}: {one.text}"))
    fixed = bool(one.build or one.channel)      # nothing that pip brings is that
    reading.lines.append(CondaLine(text=conda_text(one), origin=where, project="torch", cuda=not fixed))


def read_package(reading: Reading, one: Dependency, where: str) -> None:
    """Any other package: of both sides, or of channels alone."""
    project = "torch" if one.name in TORCH_PACKAGES else reading.names.project(one.name)
    if project is None:
        limits = () if one.build or one.channel else reading.names.limits(one.name, pip_specifier(one))
        reading.lines.append(CondaLine(text=conda_text(one), origin=where, limits=limits,
                                       project="torch" if reading.names.is_library(one.name) else None))
        return
    specifier = pip_specifier(one)
    if specifier is None:
        raise BadInput(where, f"the version cannot be said to pip: {one.text}",
                       "write it as both sides read it, such as `numpy>=1.26,<2`")
    reading.requirements.append(Requirement(text=f"{project}{specifier}", origin=where))
    if one.name in TORCH_PACKAGES or one.build or one.channel:
        reading.lines.append(CondaLine(text=conda_text(one), origin=where, project=project))


def cuda_of(one: Dependency) -> str | None:
    """`12.1` of `pytorch-cuda=12.1`, `12` of `cuda-version=12.*`; None for a range."""
    specifier = pip_specifier(one)
    if not specifier or not specifier.startswith("==") or "," in specifier:
        return None
    parts = specifier.removeprefix("==").removesuffix(".*").split(".")
    return ".".join(parts[:2])


def read_pip_line(reading: Reading, text: str, number: int) -> None:
    """One line of the pip section, as a line of requirements.in."""
    where = reading.where(number)
    nested = RequirementsReading(environ=reading.environ)
    for line in logical_lines("\n" * (number - 1) + text, reading.environ, reading.shown):
        for included, constraint in read_line(nested, line, reading.shown, constraint=False):
            read = read_requirements(reading.folder / included, reading.environ, constraint=constraint)
            nested.requirements.extend(read.requirements)
            nested.files.extend(read.files)
            nested.index = nested.index.then(read.index)
    if not nested.requirements and nested.index == IndexOptions() and not nested.files:
        raise BadInput(where, "is an empty requirement", "take the line out")
    reading.requirements.extend(nested.requirements)
    reading.files.extend(nested.files)
    reading.index = reading.index.then(nested.index)
