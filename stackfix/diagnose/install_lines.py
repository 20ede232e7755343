"""Command lines for one environment: what is installed, by its own installer, and what the loader searches."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Protocol

from stackfix.diagnose.homes import home_at
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Distribution, Owner, Python

FLASH = "flash-attn"        # the matrix says of which of its releases there is an sdist


class Place(Protocol):
    """What is known of an environment."""

    @property
    def prefix(self) -> str: ...
    @property
    def python(self) -> Python | None: ...
    @property
    def distributions(self) -> Sequence[Distribution]: ...


def install_line(view: View, like: Owner | Distribution | None, *requirements: str, alone: bool = True) -> str:
    """The line that brings packages into ranges, as `like` was installed; `alone`: and touches no other."""
    return install_line_in(home_of(view, like), like, *requirements, alone=alone)


def install_line_in(place: Place, like: Owner | Distribution | None, *requirements: str, alone: bool = True) -> str:
    """The same of an environment of which less is known."""
    words = " ".join(f"'{each}'" for each in requirements)
    if like is not None and like.manager == "conda":
        return f"conda install --prefix {shlex.quote(place.prefix)} {words}"
    return f"{installer_of(place, like, 'install')}{' --no-deps' if alone else ''} {words}"


def update_line(view: View, owner: Owner) -> str:
    """The line that brings one package to its newest version."""
    if owner.manager == "conda":
        return f"conda update --prefix {prefix_of(view)} {owner.name}"
    return f"{installer(view, owner, 'install')} --upgrade --no-deps {owner.name}"


def reinstall(view: View, owner: Owner | Distribution) -> str:
    """The line that puts a package's files back."""
    if owner.manager == "conda":
        return f"conda install --prefix {prefix_of(view)} --force-reinstall {conda_name(owner)}={owner.version}"
    again = "--reinstall" if by_uv(view, owner) else "--force-reinstall"
    return f"{installer(view, owner, 'install')} {again} --no-deps {owner.name}=={owner.version}"


def build_line(view: View, like: Owner | Distribution) -> str | None:
    """The line that compiles a package anew from its sources, against the torch that is there.

    None where no sdist of the release is known to be on the index: most extensions have wheels alone.
    """
    name, version = like.name, like.version.partition("+")[0]
    if name != FLASH or not any(each.version == version and each.sdist for each in view.matrix.flash_attn):
        return None
    uv = by_uv(view, like)
    again = f"--no-build-isolation {'--no-cache' if uv else '--no-cache-dir'} --no-deps"
    return (f"{installer(view, like, 'install')} {again} {'--reinstall' if uv else '--force-reinstall'} "
            f"--no-binary {name} {name}=={version}")


def uninstall(view: View, owner: Owner | Distribution) -> str:
    """The line that takes a package away."""
    if owner.manager == "conda":
        return f"conda remove --prefix {prefix_of(view)} --force {conda_name(owner)}"
    return f"{installer(view, owner, 'uninstall')}{'' if by_uv(view, owner) else ' -y'} {owner.name}"


def check_line(view: View) -> str:
    """The line that lists requirements which are not met."""
    return installer(view, None, "check")


def export_line(folders: Iterable[str]) -> str:
    """The line that puts folders first on LD_LIBRARY_PATH."""
    return (f"export LD_LIBRARY_PATH={shlex.quote(':'.join(folders))}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}  "
            "# before Python starts")


def installer(view: View, like: Owner | Distribution | None, command: str) -> str:
    """`uv pip install --python …`, or pip of the environment's own Python."""
    return installer_of(home_of(view, like), like, command)


def installer_of(place: Place, like: Owner | Distribution | None, command: str) -> str:
    """The same of an environment of which less is known."""
    python = place.python
    program = shlex.quote(python.executable) if python and python.executable else "python"
    return f"uv pip {command} --python {program}" if needs_uv(place, like) else f"{program} -m pip {command}"


def home_of(view: View, like: Owner | Distribution | None) -> Place:
    """The environment that a package lies in: this one, its base, or that of a folder that a .pth file names."""
    known = view.distributions.get(like.name) if like is not None else None
    return (home_at(view, known.metadata) if known is not None else None) or view.environment


def by_uv(view: View, like: Owner | Distribution | None) -> bool:
    """Whether it is uv that the environment's packages are changed with."""
    return needs_uv(home_of(view, like), like)


def needs_uv(place: Place, like: Owner | Distribution | None) -> bool:
    """Whether uv installed it, or there is no pip in the environment: `python -m pip` would not run."""
    found = next((each for each in place.distributions if like is not None and each.name == like.name), None)
    return (found is not None and found.installer == "uv") or all(each.name != "pip" for each in place.distributions)


def conda_name(owner: Owner | Distribution) -> str:
    """As conda calls it: the project torch is its package pytorch."""
    return owner.conda_package or owner.name if isinstance(owner, Distribution) else owner.name


def prefix_of(view: View) -> str:
    return shlex.quote(view.environment.prefix)
