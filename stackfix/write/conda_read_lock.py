"""conda-lock.yml, ours or conda-lock's own, as records."""

from __future__ import annotations

from stackfix.write.conda_addresses import (
    conda_address,
    digest,
    file_address,
    package_name,
    platform_name,
)
from stackfix.write.conda_told import told_noarch
from stackfix.write.records import CondaEnvironment, CondaPin, PipPin
from stackfix.write.yaml_read import Node, Source, parse_yaml

MANAGERS = ("conda", "pip")


def parse_conda_lock(text: str, source: Source) -> tuple[CondaEnvironment, ...]:
    """Its platforms. Raises BadInput, with the line, where it is not of format version 1."""
    root = parse_yaml(text, source)
    document = source.mapping(root, "the file")
    version = source.need(document, "version", root.line)
    if version.value != "1":
        source.refuse(version.line, f"conda-lock's format {version.value} is not known here, only 1")
    metadata_node = source.need(document, "metadata", root.line)
    metadata = source.mapping(metadata_node, "metadata")
    channels = tuple(channel_url(node, source) for node in
                     source.sequence(source.need(metadata, "channels", metadata_node.line), "channels"))
    platforms = tuple(platform_name(name, source, metadata_node.line)
                      for name in source.texts(metadata.get("platforms"), "platforms"))
    pins: dict[tuple[str, str, str], CondaPin | PipPin] = {}
    for node in source.sequence(source.need(document, "package", root.line), "package"):
        add(pins, pin_of(node, source), source)
    outside = next((pin for pin in pins.values() if pin.platform not in platforms), None)
    if outside is not None:
        source.refuse(outside.line, f"{outside.name} is for {outside.platform}, which the file does not name")
    return tuple(
        CondaEnvironment(
            name="default", platform=platform, channels=channels,
            conda=tuple(pin for _, pin in sorted(pins.items())
                        if isinstance(pin, CondaPin) and pin.platform == platform),
            pip=tuple(pin for _, pin in sorted(pins.items()) if isinstance(pin, PipPin) and pin.platform == platform),
        )
        for platform in platforms
    )


def channel_url(node: Node, source: Source) -> str:
    """The channel's name or address."""
    items = source.mapping(node, "a channel")
    return source.text(source.need(items, "url", node.line), "url of a channel")


def add(pins: dict[tuple[str, str, str], CondaPin | PipPin], pin: CondaPin | PipPin, source: Source) -> None:
    """Keeps the pin. A package of several categories stands once for each; of two different ones none is right."""
    key = ("conda" if isinstance(pin, CondaPin) else "pip", pin.name, pin.platform)
    before = pins.get(key)
    if before is None or (pin.category == "main" != before.category and pin.url == before.url):
        pins[key] = pin
    elif pin.url != before.url or pin.category == before.category:
        source.refuse(pin.line, f"{pin.name} stands twice for {pin.platform}")


def pin_of(node: Node, source: Source) -> CondaPin | PipPin:
    """One entry of `package`."""
    items = source.mapping(node, "a package")
    words = {key: source.text(source.need(items, key, node.line), key)
             for key in ("name", "version", "manager", "platform", "url")}
    if words["manager"] not in MANAGERS:
        source.refuse(items["manager"].line, f"no such manager as {words['manager']}")
    hashes_node = source.need(items, "hash", node.line)
    hashes = source.mapping(hashes_node, "hash")
    dependencies = dependency_lines(items.get("dependencies"), source)
    category = source.text(items["category"], "category") if "category" in items else "main"
    platform = platform_name(words["platform"], source, items["platform"].line)
    sha256 = digest(hashes.get("sha256"), "sha256", source)
    if words["manager"] == "pip":
        from packaging.utils import canonicalize_name

        name = package_name(words["name"], source, items["name"].line)
        return PipPin(
            name=canonicalize_name(name), version=words["version"], platform=platform, sha256=sha256,
            url=file_address(words["url"], source, items["url"].line), category=category, line=node.line,
            requires=tuple(line.partition(" ")[0] for line in dependencies))
    address = conda_address(words["url"], source, items["url"].line)
    if (address.name, address.version) != (words["name"].lower(), words["version"]):
        source.refuse(node.line, f"is {words['name']} {words['version']}, but its address is of {address.file_name}")
    if address.subdir not in {platform, "noarch"}:
        source.refuse(items["url"].line, f"{words['name']} is for {platform}, but its address is of {address.subdir}")
    md5 = digest(source.need(hashes, "md5", hashes_node.line), "md5", source)
    return CondaPin(
        name=address.name, version=address.version, build=address.build, build_number=address.build_number,
        platform=platform, subdir=address.subdir, channel=address.channel, file_name=address.file_name,
        url=address.url, md5=md5, sha256=sha256, depends=dependencies, category=category, line=node.line,
        noarch=told_noarch(address.subdir, address.build))


def dependency_lines(node: Node | None, source: Source) -> tuple[str, ...]:
    """`name rest` of each dependency."""
    if node is None or node.value is None:
        return ()
    found = source.mapping(node, "dependencies")
    return tuple(
        f"{package_name(name, source, item.line)} {dependency_rest(item, source)}".rstrip()
        for name, item in found.items()
    )


def dependency_rest(node: Node, source: Source) -> str:
    """The version and build that are asked for; nothing for none."""
    return "" if node.value is None or node.value == "" else source.text(node, "a dependency")
