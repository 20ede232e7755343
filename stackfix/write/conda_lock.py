"""Targets of one Python as `conda-lock.yml`, in conda-lock's unified format, version 1."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.conda.records import CondaRecord, CondaTarget
from stackfix.errors import BadInput
from stackfix.resolve.records import LockedPackage
from stackfix.write.clean import locked_sha256, locked_url
from stackfix.write.conda_clean import check_records, dependency_map, locked_md5, package_url, record_sha256
from stackfix.write.conda_hash import content_hash
from stackfix.write.conda_header import conda_header, snapshot_text
from stackfix.write.environment import channel_name, pip_packages
from stackfix.write.names import environment_name, suffix_of
from stackfix.write.yaml_text import Yaml, render_yaml


def render_conda_lock(
    targets: tuple[CondaTarget, ...], *, command: str, file_name: str = "conda-lock.yml",
    sources: tuple[str, ...] = (), second_steps: tuple[str, ...] = (),
) -> str:
    """The file's text: one Python, a platform each. `sources`: names of the environment files behind the hashes.

    Packages are in conda-lock's own order, by manager, name and platform. Raises BadInput for a package that cannot
    stand there: one without md5, or from elsewhere than its channel.
    """
    targets = tuple(sorted(targets, key=lambda target: target.target.platform))
    refuse_mixture(targets)
    header = conda_header(targets, command=command, second_steps=second_steps,
                          use=f"stackfix sync {file_name} --prefix PREFIX (or: conda-lock install --prefix PREFIX "
                          f"{file_name})")
    packages = [
        (key, target.target.platform, entry) for target in targets for key, entry in package_entries(target)]
    document: dict[str, Yaml] = {
        "version": 1,
        "metadata": metadata(targets, sources=sources, second_steps=second_steps),
        "package": [entry for _, _, entry in sorted(packages, key=lambda row: row[:2])],
    }
    return "\n".join(header) + "\n" + render_yaml(document)


def refuse_mixture(targets: tuple[CondaTarget, ...]) -> None:
    """Raises BadInput for what one file cannot hold: two Pythons, a platform twice, other channels per platform."""
    if len({target.target.python for target in targets}) != 1:
        raise BadInput("conda-lock.yml", "holds the packages of one Python", "a file for each")
    if len({target.target.platform for target in targets}) != len(targets):
        raise BadInput("conda-lock.yml", "holds one set of packages for a platform")
    for target in targets:
        check_records(target)


def metadata(
    targets: tuple[CondaTarget, ...], *, sources: tuple[str, ...], second_steps: tuple[str, ...],
) -> dict[str, Yaml]:
    """The `metadata` table: no time, no git, no hashes of inputs: they tell of the machine, or change alone.

    `channels`: of all platforms, each once; where one platform has more, the order is that of the longest list.
    """
    longest = max(targets, key=lambda target: len(target.channels))
    channels = dict.fromkeys(channel_name(channel) for target in (longest, *targets) for channel in target.channels)
    own: dict[str, Yaml] = {"created-by": "stackfix", "python": targets[0].target.python}
    for target in targets:
        own |= {f"glibc-{target.target.platform}": target.target.glibc,
                f"layout-{target.target.platform}": target.layout}
        if target.priority == "disabled":
            own[f"channel-priority-{target.target.platform}"] = target.priority
        if target.snapshot is not None:
            own[f"snapshot-{target.target.platform}"] = snapshot_text(target)
    if second_steps:
        own["second-step"] = ", ".join(second_steps)
    default = tuple(environment_name(suffix_of(None, target.target if len(targets) > 1 else None))
                    for target in targets)
    return {
        "content_hash": {target.target.platform: content_hash(target) for target in targets},
        "channels": [{"url": name, "used_env_vars": []} for name in channels],
        "platforms": [target.target.platform for target in targets],
        "sources": list(sources or default),
        "custom_metadata": own,
    }


def package_entries(target: CondaTarget) -> Iterator[tuple[tuple[str, str], dict[str, Yaml]]]:
    """(manager, name) and the entry of each package of one platform."""
    platform = target.target.platform
    yield from ((("conda", record.name), conda_entry(record, platform)) for record in target.records)
    yield from ((("pip", package.name), pip_entry(package, platform)) for package in pip_packages(target))


def conda_entry(record: CondaRecord, platform: str) -> dict[str, Yaml]:
    """One package of a channel."""
    hashes: dict[str, Yaml] = {"md5": locked_md5(record)}
    sha256 = record_sha256(record)
    if sha256 is not None:
        hashes["sha256"] = sha256
    return entry(record.name, record.version, "conda", platform, dependencies=dependency_map(record.depends),
                 url=package_url(record), hashes=hashes)


def pip_entry(package: LockedPackage, platform: str) -> dict[str, Yaml]:
    """One package of pip: the file that pip picks for the target.

    `source` is left out on purpose, also for one given by URL: where it stands, conda-lock's rendering drops the hash.
    No version of a dependency is an empty one: conda-lock's own `*` is more than rattler reads.
    """
    file = package.files[0]
    requires = dict.fromkeys(sorted(set(package.requires) - {package.name}), "")
    return entry(package.name, package.version, "pip", platform, dependencies=requires, url=locked_url(file.url),
                 hashes={"sha256": locked_sha256(file)})


def entry(
    name: str, version: str, manager: str, platform: str, *,
    dependencies: dict[str, str], url: str, hashes: dict[str, Yaml],
) -> dict[str, Yaml]:
    """The fields in conda-lock's order."""
    return {"name": name, "version": version, "manager": manager, "platform": platform,
            "dependencies": dict(dependencies), "url": url, "hash": hashes, "category": "main", "optional": False}
