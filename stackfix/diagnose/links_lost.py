"""Links that should give a library its soname and are gone: libstdc++.so.6.0.34 is there, libstdc++.so.6 is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import LibraryFolder
from stackfix.inspect.records import ElfObject, FileAt

FULL_VERSION = re.compile(r"\.so\.\d+\.\d+")
VERSION_END = re.compile(r"(?<=\.so)(?:\.\d+)*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class LostLink:
    """A soname that a folder's library has, under which nothing lies there."""

    path: str                       # where the link should be
    target: str                     # path of the library, in the same folder
    versions: tuple[str, ...]       # version nodes that the library defines: "GLIBCXX_3.4.30"
    recorded: bool                  # its installer put the link there

    @property
    def soname(self) -> str:
        return self.path.rpartition("/")[2]


def lost_links(view: View) -> tuple[LostLink, ...]:
    """All of them, by path; worked out once for a view."""
    remembered = vars(view)         # as functools.cached_property does it
    if "_lost_links" not in remembered:
        remembered["_lost_links"] = tuple(find_lost_links(view))
    found: tuple[LostLink, ...] = remembered["_lost_links"]
    return found


def find_lost_links(view: View) -> Iterator[LostLink]:
    gone = {each.path for each in view.environment.file_faults if each.kind == "missing"}
    links = {each.path: each.link for each in view.environment.shared_objects if each.link is not None}
    for folder in view.environment.library_folders:
        for name in unlinked(folder, links):
            path = f"{folder.path}/{name}"
            file = view.files.at(path)
            elf = file.elf if isinstance(file, FileAt) else None
            if isinstance(elf, ElfObject) and elf.soname is not None and is_shorter(elf.soname, name):
                lost = f"{folder.path}/{elf.soname}"
                if elf.soname not in folder.libraries:
                    yield LostLink(path=lost, target=path, versions=elf.defined_versions, recorded=lost in gone)


def unlinked(folder: LibraryFolder, links: dict[str, str]) -> Iterator[str]:
    """Libraries with a full version in their name to which no name without it leads: few, and only these are opened."""
    known = set(folder.libraries)
    reached = {(links.get(f"{folder.path}/{name}") or "").rpartition("/")[2] for name in known}
    for name in folder.libraries:
        if FULL_VERSION.search(name) and name not in reached and f"{folder.path}/{name}" not in links:
            yield name


def is_shorter(soname: str, name: str) -> bool:
    """Whether a soname is the file's name with less of the version: libz.so.1 of libz.so.1.3."""
    return "/" not in soname and soname != name and name.startswith(f"{soname}.") and \
        VERSION_END.sub("", soname) == VERSION_END.sub("", name)
