"""All targets as `pixi.lock`, version 7: the newest that py-rattler 0.28 reads and writes.

What the address tells (name, version, build, subdir, channel) is left out, as rattler does, and what it takes the build
string to tell: conda_told.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from stackfix.conda.records import CondaRecord, CondaTarget
from stackfix.errors import BadInput
from stackfix.resolve.records import LockedPackage
from stackfix.write.clean import locked_sha256, locked_url
from stackfix.write.conda_clean import MD5, check_records, conda_url, package_url, record_sha256
from stackfix.write.conda_header import conda_header
from stackfix.write.conda_told import told_build_number, told_noarch
from stackfix.write.environment import pip_packages
from stackfix.write.names import python_tag
from stackfix.write.pylock import is_specifier
from stackfix.write.yaml_text import Yaml, render_yaml


def render_pixi(
    targets: tuple[CondaTarget, ...], *, command: str, file_name: str = "pixi.lock", second_steps: tuple[str, ...] = (),
) -> str:
    """The file's text: environment `default`, or one for each Python (`cp311`) where there are several."""
    for target in targets:
        check_records(target)
    pythons = sorted({target.target.python for target in targets}, key=lambda python: int(python.split(".")[1]))
    named = {(python_tag(group[0].target) if len(pythons) > 1 else "default"): group
             for python in pythons
             for group in ([target for target in targets if target.target.python == python],)}
    header = conda_header(targets, command=command, second_steps=second_steps,
                          use=f"stackfix sync {file_name} --prefix PREFIX")
    document: dict[str, Yaml] = {
        "version": 7,
        "platforms": [{"name": name} for name in sorted({target.target.platform for target in targets})],
        "environments": {name: environment(group) for name, group in sorted(named.items())},
        "packages": [
            *[conda_table(records[url], url) for records in (conda_files(targets),) for url in sorted(records)],
            *[pypi_table(packages[url], url) for packages in (pypi_files(targets),) for url in sorted(packages)],
        ],
    }
    return "\n".join(header) + "\n" + render_yaml(document)


def environment(targets: Iterable[CondaTarget]) -> dict[str, Yaml]:
    """One environment: the packages of each platform; of several lists of channels the longest gives the order."""
    group = sorted(targets, key=lambda target: target.target.platform)
    longest = max(group, key=lambda target: len(target.channels))
    channels = dict.fromkeys(conda_url(channel.url).rstrip("/") for target in (longest, *group)
                             for channel in target.channels)
    table: dict[str, Yaml] = {"channels": [{"url": f"{url}/"} for url in channels]}
    if any(target.priority == "disabled" for target in group):
        table["options"] = {"channel-priority": "disabled"}
    table["packages"] = {
        target.target.platform: [*[{"conda": url} for url in sorted(conda_files((target,)))],
                                 *[{"pypi": url} for url in sorted(pypi_files((target,)))]]
        for target in group
    }
    return table


def conda_files(targets: Iterable[CondaTarget]) -> dict[str, CondaRecord]:
    """Address -> record. Raises BadInput for two records of one address, of which only one can be right."""
    found: dict[str, CondaRecord] = {}
    for target in targets:
        for record in target.records:
            if found.setdefault(package_url(record), record) != record:
                raise BadInput(record.file_name, "its channel states two different records of this file")
    return found


def pypi_files(targets: Iterable[CondaTarget]) -> dict[str, LockedPackage]:
    """Address -> package of pip, the first step."""
    return {locked_url(package.files[0].url): package for target in targets for package in pip_packages(target)}


def conda_table(record: CondaRecord, url: str) -> dict[str, Yaml]:
    """One package of a channel. Raises BadInput where there is no hash at all to check it by."""
    sha256 = record_sha256(record)
    md5 = record.md5 if record.md5 is not None and MD5.fullmatch(record.md5) else None
    if sha256 is None and md5 is None:
        raise BadInput(record.file_name, f"its channel {record.channel} states no usable hash, so it cannot be locked")
    fields: dict[str, Yaml | None] = {
        "conda": url,
        "build_number": record.build_number if record.build_number != told_build_number(record.build) else None,
        "noarch": noarch_field(record),
        "sha256": sha256,
        "md5": md5,
        "depends": list(record.depends),
        "constrains": list(record.constrains),
        "features": record.features,
        "track_features": list(record.track_features),
        "license": record.license,
        "license_family": record.license_family,
        "size": record.size,
        "timestamp": record.timestamp,
        "python_site_packages_path": record.python_site_packages_path,
    }
    return present(fields)


def noarch_field(record: CondaRecord) -> str | bool | None:
    """The record's `noarch` where its file does not tell it; False for none at all."""
    if record.noarch == told_noarch(record.subdir, record.build):
        return None
    return record.noarch or False


def pypi_table(package: LockedPackage, url: str) -> dict[str, Yaml]:
    """One package of pip, with its hash. A lock knows the names that it requires; which versions, it has decided."""
    python = package.requires_python
    fields: dict[str, Yaml | None] = {
        "pypi": url,
        "name": package.name,
        "version": package.version,
        "sha256": locked_sha256(package.files[0]),
        "requires_dist": sorted(set(package.requires) - {package.name}),
        "requires_python": python if python and is_specifier(python) else None,
    }
    return present(fields)


def present(fields: dict[str, Yaml | None]) -> dict[str, Yaml]:
    """The fields that are there: neither None nor empty lists."""
    return {name: value for name, value in fields.items() if value is not None and value != []}
