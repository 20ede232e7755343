"""Explicit files and environment.yml as records."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stackfix.write.conda_addresses import checked_digest, conda_address, file_address, package_name
from stackfix.write.conda_told import told_noarch
from stackfix.write.records import CondaEnvironment, CondaPin, PipPin
from stackfix.write.yaml_read import Node, Source, parse_yaml

MARK = "@EXPLICIT"
PLATFORM_LINE = re.compile(r"#\s*platform:\s*(?P<platform>[a-z]+-[a-z0-9]+)\s*")
PIP_LINE = re.compile(r"# pip (?P<name>[A-Za-z0-9._-]+)(?:\[(?P<extras>[A-Za-z0-9._,-]*)\])? @ (?P<url>\S+)")
CONDA_PIN = re.compile(r"(?:(?P<channel>[^\s:]\S*)::)?(?P<name>[A-Za-z0-9_.-]+)={1,2}(?P<version>[A-Za-z0-9_.!+]+)"
                       r"=(?P<build>[A-Za-z0-9_.+]+)")
PIP_PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[(?P<extras>[A-Za-z0-9._,-]*)\])?"
                     r"(?:\s*==\s*(?P<version>[A-Za-z0-9.!+_-]+)(?:\s+--hash=sha256:(?P<hash>[0-9A-Fa-f]{64}))?"
                     r"|\s+@\s+(?P<url>\S+))")


def parse_explicit(text: str, source: Source) -> tuple[CondaEnvironment, ...]:
    """The one environment of an explicit file. Raises BadInput, with the line, for what is neither pin nor comment."""
    conda: dict[str, CondaPin] = {}
    pip: dict[str, PipPin] = {}
    lines = list(enumerate(text.splitlines(), start=1))
    platform = explicit_platform(lines, source)
    if not any(line.strip() == MARK for _, line in lines):
        source.refuse(len(lines) or 1, f"ends without {MARK}")
    for number, line in lines:
        content = line.strip()
        found = PIP_LINE.fullmatch(content)
        if found:
            pin = explicit_pip(found, platform, source, number)
            if pip.setdefault(pin.name, pin) is not pin:
                source.refuse(number, f"{pin.name} stands twice")
        elif content and content != MARK and not content.startswith("#"):
            package = explicit_conda(content, platform, source, number)
            if conda.setdefault(package.name, package) is not package:
                source.refuse(number, f"{package.name} stands twice")
    return (CondaEnvironment(name="default", platform=platform, channels=(),
                             conda=tuple(pin for _, pin in sorted(conda.items())),
                             pip=tuple(pin for _, pin in sorted(pip.items()))),)


def explicit_platform(lines: list[tuple[int, str]], source: Source) -> str:
    """That of its comment, else that of its addresses. Raises BadInput where neither says one."""
    for _, line in lines:
        found = PLATFORM_LINE.fullmatch(line.strip())
        if found:
            return found["platform"]
    for number, line in lines:
        if line.strip() and not line.startswith(("#", "@")):
            subdir = conda_address(line.strip().partition("#")[0], source, number).subdir
            if subdir != "noarch":
                return subdir
    return source.refuse(1, "does not say its platform")


def explicit_conda(line: str, platform: str, source: Source, number: int) -> CondaPin:
    """`URL#md5`, or with a sha256 as newer conda takes it."""
    url, _, fragment = line.partition("#")
    address = conda_address(url, source, number)
    if address.subdir not in {platform, "noarch"}:
        source.refuse(number, f"is for {address.subdir}, the file for {platform}")
    fragment = fragment.removeprefix("sha256:").lower()
    kind = "sha256" if len(fragment) == 64 else "md5"
    found = checked_digest(fragment, kind, source, number) if fragment else None
    return CondaPin(
        name=address.name, version=address.version, build=address.build, build_number=address.build_number,
        platform=platform, subdir=address.subdir, channel=address.channel, file_name=address.file_name, url=url,
        md5=found if kind == "md5" else None, sha256=found if kind == "sha256" else None, line=number,
        noarch=told_noarch(address.subdir, address.build))


def explicit_pip(found: re.Match[str], platform: str, source: Source, number: int) -> PipPin:
    """`# pip NAME @ URL#sha256=…`."""
    url, sha256 = url_and_hash(found["url"], source, number)
    return PipPin(name=pip_name(found["name"], source, number), version=None, platform=platform, url=url,
                  sha256=sha256, extras=extras_of(found), line=number)


def url_and_hash(text: str, source: Source, number: int) -> tuple[str, str | None]:
    """The address, and the sha256 that follows it."""
    url, _, fragment = text.partition("#")
    sha256 = fragment.removeprefix("sha256=").lower() if fragment.startswith("sha256=") else None
    return (file_address(url, source, number),
            checked_digest(sha256, "sha256", source, number) if sha256 is not None else None)


def pip_name(text: str, source: Source, number: int) -> str:
    """The normalised name."""
    from packaging.utils import canonicalize_name

    return canonicalize_name(package_name(text, source, number))


def extras_of(found: re.Match[str]) -> tuple[str, ...]:
    """The extras in brackets, sorted."""
    return tuple(sorted(part for part in (found["extras"] or "").split(",") if part))


def parse_environment_file(text: str, source: Source, platform: str) -> tuple[CondaEnvironment, ...]:
    """The one environment of a fully pinned environment.yml. Raises BadInput for a line that is no pin."""
    root = parse_yaml(text, source)
    document = source.mapping(root, "the file")
    channels = tuple(name for name in source.texts(document.get("channels"), "channels") if name != "nodefaults")
    pins = list(environment_pins(source.sequence(source.need(document, "dependencies", root.line), "dependencies"),
                                 source, platform))
    conda = {pin.name: pin for pin in pins if isinstance(pin, CondaPin)}
    pip = {pin.name: pin for pin in pins if isinstance(pin, PipPin)}
    twice = next((pin for pin in pins if pin is not (conda if isinstance(pin, CondaPin) else pip)[pin.name]), None)
    if twice is not None:
        source.refuse(twice.line, f"{twice.name} stands twice")
    return (CondaEnvironment(name="default", platform=platform, channels=channels,
                             conda=tuple(pin for _, pin in sorted(conda.items())),
                             pip=tuple(pin for _, pin in sorted(pip.items()))),)


def environment_pins(nodes: list[Node], source: Source, platform: str) -> Iterator[CondaPin | PipPin]:
    """Each pin of `dependencies`, those of its pip section too."""
    for node in nodes:
        if isinstance(node.value, dict):
            for key, item in node.value.items():
                if key != "pip":
                    source.refuse(item.line, f"no such section as {key}")
                for line in source.sequence(item, "pip"):
                    yield environment_pip(source.text(line, "a requirement"), platform, source, line.line)
            continue
        text = source.text(node, "a dependency")
        found = CONDA_PIN.fullmatch(text)
        if found is None:
            source.refuse(node.line, f"{text[:80]} is no pin of version and build")
        yield CondaPin(name=package_name(found["name"], source, node.line), version=found["version"],
                       build=found["build"], platform=platform, subdir=None, channel=found["channel"],
                       file_name=None, url=None, md5=None, sha256=None, line=node.line)


def environment_pip(text: str, platform: str, source: Source, number: int) -> PipPin:
    """One line of the pip section."""
    found = PIP_PIN.fullmatch(text)
    if found is None:
        source.refuse(number, f"{text[:80]} is no pin")
    name = pip_name(found["name"], source, number)
    if found["url"]:
        url, sha256 = url_and_hash(found["url"], source, number)
        return PipPin(name=name, version=None, platform=platform, url=url, sha256=sha256, extras=extras_of(found),
                      line=number)
    return PipPin(name=name, version=found["version"], platform=platform, url=None,
                  sha256=found["hash"].lower() if found["hash"] else None, extras=extras_of(found), line=number)
