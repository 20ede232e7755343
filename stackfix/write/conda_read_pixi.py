"""pixi.lock of version 6 and 7 as records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from stackfix.write.conda_addresses import (
    conda_address,
    digest,
    file_address,
    package_name,
    platform_name,
)
from stackfix.write.conda_told import told_build_number, told_noarch
from stackfix.write.records import CondaEnvironment, CondaPin, PipPin
from stackfix.write.yaml_read import Node, Source, parse_yaml

VERSIONS = frozenset({"6", "7"})
PinT = TypeVar("PinT", CondaPin, PipPin)
NOARCH = frozenset({"python", "generic", "false", None})


def parse_pixi(text: str, source: Source) -> tuple[CondaEnvironment, ...]:
    """Its environments, by name and platform. Raises BadInput, with the line, for what it does not know."""
    root = parse_yaml(text, source)
    document = source.mapping(root, "the file")
    version = source.need(document, "version", root.line)
    if not isinstance(version.value, str) or version.value not in VERSIONS:
        source.refuse(version.line, f"pixi.lock of version {version.value} is not known here, only 6 and 7")
    packages: dict[tuple[str, str], Node] = {}
    for node in source.sequence(source.need(document, "packages", root.line), "packages"):
        key = package_key(node, source)
        if packages.setdefault(key, node) is not node:
            source.refuse(node.line, f"{key[1]} stands twice")
    environments = source.mapping(source.need(document, "environments", root.line), "environments")
    return tuple(found for name, node in sorted(environments.items())
                 for found in parse_environment(name, node, packages, source))


def package_key(node: Node, source: Source) -> tuple[str, str]:
    """("conda" or "pypi", address) of an entry, here or in an environment."""
    items = source.mapping(node, "a package")
    kinds = [kind for kind in ("conda", "pypi") if kind in items]
    if len(kinds) != 1:
        source.refuse(node.line, "is no package of a channel or of pip")
    return kinds[0], source.text(items[kinds[0]], kinds[0])


def parse_environment(
    name: str, node: Node, packages: Mapping[tuple[str, str], Node], source: Source,
) -> tuple[CondaEnvironment, ...]:
    """The platforms of one environment."""
    items = source.mapping(node, f"environment {name}")
    channels = tuple(
        source.text(source.need(source.mapping(channel, "a channel"), "url", channel.line), "url").rstrip("/")
        for channel in source.sequence(source.need(items, "channels", node.line), "channels"))
    platforms = source.need(items, "packages", node.line)
    found = []
    for text, listed in sorted(source.mapping(platforms, "packages").items()):
        platform = platform_name(text, source, listed.line)
        conda: dict[str, CondaPin] = {}
        pip: dict[str, PipPin] = {}
        for reference in source.sequence(listed, f"packages of {platform}"):
            key = package_key(reference, source)
            if key not in packages:
                source.refuse(reference.line, f"{key[1]} is not among the packages")
            if key[0] == "conda":
                conda_pin = parse_conda(packages[key], platform, source)
                keep(conda, conda_pin.name, conda_pin, reference, source)
            else:
                pip_pin = parse_pypi(packages[key], platform, source)
                keep(pip, pip_pin.name, pip_pin, reference, source)
        found.append(CondaEnvironment(
            name=name, platform=platform, channels=channels,
            conda=tuple(pin for _, pin in sorted(conda.items())), pip=tuple(pin for _, pin in sorted(pip.items()))))
    return tuple(found)


def keep(pins: dict[str, PinT], name: str, pin: PinT, node: Node, source: Source) -> None:
    """Keeps the pin. Raises BadInput for a second one of its name."""
    if name in pins:
        source.refuse(node.line, f"{name} stands twice in an environment")
    pins[name] = pin


def parse_conda(node: Node, platform: str, source: Source) -> CondaPin:
    """One package of a channel. What its address tells may be said again, but not otherwise."""
    items = source.mapping(node, "a package")
    address = conda_address(source.text(items["conda"], "conda"), source, items["conda"].line)
    told = {"name": address.name, "version": address.version, "build": address.build, "subdir": address.subdir}
    for key, value in told.items():
        if key in items and source.text(items[key], key).lower() != value.lower():
            source.refuse(items[key].line, f"its {key} is not that of {address.file_name}")
    if address.subdir not in {platform, "noarch"}:
        source.refuse(node.line, f"{address.name} is for {address.subdir}, but stands under {platform}")
    noarch = source.text(items["noarch"], "noarch") if "noarch" in items else told_noarch(address.subdir, address.build)
    if noarch not in NOARCH:
        source.refuse(items["noarch"].line, f"no such noarch as {noarch}")
    number = whole_number(items.get("build_number"), "build_number", source)
    return CondaPin(
        name=address.name, version=address.version, build=address.build, platform=platform, subdir=address.subdir,
        channel=address.channel, file_name=address.file_name, url=address.url,
        md5=digest(items.get("md5"), "md5", source), sha256=digest(items.get("sha256"), "sha256", source),
        depends=source.texts(items.get("depends"), "depends"),
        constrains=source.texts(items.get("constrains"), "constrains"),
        build_number=told_build_number(address.build) if number is None else number,
        noarch=None if noarch == "false" else noarch,
        size=whole_number(items.get("size"), "size", source),
        timestamp=whole_number(items.get("timestamp"), "timestamp", source),
        license=said(items, "license", source), license_family=said(items, "license_family", source),
        features=said(items, "features", source),
        track_features=source.texts(items.get("track_features"), "track_features"),
        python_site_packages_path=said(items, "python_site_packages_path", source), line=node.line)


def parse_pypi(node: Node, platform: str, source: Source) -> PipPin:
    """One package of pip."""
    from packaging.utils import canonicalize_name

    items = source.mapping(node, "a package")
    url = file_address(source.text(items["pypi"], "pypi"), source, items["pypi"].line)
    name_node = source.need(items, "name", node.line)
    name = canonicalize_name(package_name(source.text(name_node, "name"), source, name_node.line))
    requires = source.texts(items.get("requires_dist"), "requires_dist")
    return PipPin(name=name, version=said(items, "version", source), platform=platform, url=url, line=node.line,
                  sha256=digest(items.get("sha256"), "sha256", source), requires=requires)


def said(items: Mapping[str, Node], key: str, source: Source) -> str | None:
    """The text of a key; None where it is not there."""
    return source.text(items[key], key) if key in items and items[key].value is not None else None


def whole_number(node: Node | None, what: str, source: Source) -> int | None:
    """The number; None where there is none. Raises BadInput for one that is no whole number."""
    if node is None or node.value is None:
        return None
    text = source.text(node, what)
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        source.refuse(node.line, f"{what} is no whole number")
    return int(text)
