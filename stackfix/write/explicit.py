"""One target as a conda explicit file: addresses with md5, pip's packages as comments that conda-lock reads."""

from __future__ import annotations

from stackfix.conda.records import CondaTarget
from stackfix.write.clean import locked_sha256, locked_url
from stackfix.write.conda_clean import check_records, dependency_map, locked_md5, package_url
from stackfix.write.conda_header import conda_header
from stackfix.write.conda_order import install_order
from stackfix.write.environment import pip_packages

MARK = "@EXPLICIT"


def render_explicit(
    target: CondaTarget, *, command: str, file_name: str = "conda-linux-64.lock", second_steps: tuple[str, ...] = (),
) -> str:
    """The file's text. The body is what `conda-lock render --kind explicit` makes of our conda-lock.yml."""
    check_records(target)
    pip = pip_packages(target)
    use = f"conda create --prefix PREFIX --file {file_name}"
    if pip:
        use = f"conda-lock install --prefix PREFIX {file_name} (conda itself passes over the packages of pip)"
    header = conda_header((target,), command=command, use=use, second_steps=second_steps)
    return "\n".join([*header, f"# platform: {target.target.platform}", *explicit_body(target)]) + "\n"


def explicit_body(target: CondaTarget) -> list[str]:
    """The mark, then a line a package, each after what it depends on; then pip's."""
    records = {record.name: record for record in target.records}
    packages = {package.name: package for package in pip_packages(target)}
    order = install_order({name: dependency_map(record.depends) for name, record in records.items()})
    pip_order = install_order({name: package.requires for name, package in packages.items()})
    files = ((name, packages[name].files[0]) for name in pip_order)
    return [
        MARK,
        *(f"{package_url(records[name])}#{locked_md5(records[name])}" for name in order),
        *(f"# pip {name} @ {locked_url(file.url)}#sha256={locked_sha256(file)}" for name, file in files),
    ]
