"""Commands for the system's own packages, its loader's configuration, its driver, and variables that others set."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator

from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.plumbing import elements
from stackfix.diagnose.provenance import LIBRARY_PATH, SITE, is_standard
from stackfix.diagnose.situation import View
from stackfix.plan.names_paths import folder_of

APT, DNF, ZYPPER, PACMAN = "apt", "dnf", "zypper", "pacman"
FAMILIES = {APT: {"debian", "ubuntu"}, DNF: {"rhel", "fedora", "centos", "rocky", "almalinux", "amzn", "ol"},
            ZYPPER: {"suse", "opensuse", "sles", "opensuse-leap"}, PACMAN: {"arch"}}
# Asked first: many a file below /usr/local or /opt is no package's
REMOVE = {
    APT: 'dpkg -S {path} && sudo apt-get remove "$(dpkg -S {path} | cut -d: -f1)"',
    DNF: 'rpm -qf {path} && sudo dnf remove "$(rpm -qf {path})"',
    ZYPPER: 'rpm -qf {path} && sudo zypper remove "$(rpm -qf {path})"',
    PACMAN: 'pacman -Qo {path} && sudo pacman -R "$(pacman -Qqo {path})"',
}
# Ubuntu's own tool chooses the newest branch that fits the card
DRIVER = {"ubuntu": "sudo ubuntu-drivers install", "debian": "sudo apt-get install nvidia-driver",
          DNF: "sudo dnf module install nvidia-driver:latest-dkms"}


def package_manager(view: View) -> str | None:
    """What installs the system's packages; None where its release is not known."""
    release = view.machine.release
    names = {release.id, *release.like} if release else set()
    return next((manager for manager, known in FAMILIES.items() if names & known), None)


def system_library(view: View, finding: Finding) -> Iterator[str]:
    """How a library of the system leaves the loader's way: its line of ld.so.conf, else its package."""
    path = finding.winner or finding.culprit.path
    if path is None or finding.culprit.variable is not None or view.is_own(path) or SITE.match(path):
        return
    lines = list(configured_lines(view, folder_of(path)))
    yield from lines
    if not lines and removable(view, path):
        yield removal(view, path)


def configured_lines(view: View, folder: str) -> Iterator[str]:
    """The lines of ld.so.conf that name a folder, taken out; not the system's own folders."""
    for each in view.situation.configured if not is_standard(folder) else ():
        if each.folder == folder:
            pattern = re.sub(r"([][\\.*^$|])", r"\\\1", folder)
            script = rf"\|^[[:space:]]*{pattern}/*[[:space:]]*$|d"
            yield f"sudo sed -i {shlex.quote(script)} {shlex.quote(each.file)} && sudo ldconfig"


def removable(view: View, path: str) -> bool:
    """Whether the system can live without a library: none of its C or C++ runtime."""
    family = view.family_of(path.rpartition("/")[2])
    return family is not None and family.level != "environment"


def removal(view: View, path: str) -> str:
    """The command that removes the package that owns a file; where the system is not known, what names it."""
    at = view.files.at(path)
    real = shlex.quote(getattr(at, "real_path", path))
    manager = package_manager(view)
    return REMOVE[manager].format(path=real) if manager else f"dpkg -S {real} || rpm -qf {real}"


def variable(view: View, finding: Finding) -> Iterator[str]:
    """The variable without what leads to the winner, for whatever sets it."""
    yield from (line for line in finding.cure if line.startswith("module unload "))
    path = finding.winner or finding.culprit.path
    if finding.culprit.variable != LIBRARY_PATH or path is None:
        return
    bad = folder_of(path) if finding.code != "SF1103" else ""
    before = elements(view)
    kept = [each for each in before if (posixpath.normpath(each) if each else "") != bad]
    if len(kept) < len(before):
        yield f"export {LIBRARY_PATH}={shlex.quote(':'.join(kept))}" if kept else f"unset {LIBRARY_PATH}"


def driver(view: View) -> Iterator[str]:
    """What installs a newer driver; nothing in a container, whose driver is the host's."""
    release, manager = view.machine.release, package_manager(view)
    if view.machine.container is not None or view.machine.wsl is not None or release is None:
        return
    known = DRIVER.get(release.id) or DRIVER.get(manager or "")
    if known is not None:
        yield f"{known} && sudo reboot"
