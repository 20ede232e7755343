"""What conda installed into a prefix, from conda-meta; conda is not asked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stackfix.inspect.environment_records import CondaPackage, CondaPrefix, Note, Owner
from stackfix.inspect.places import MIB, Root, must_list, reason_of
from stackfix.inspect.wheels import FOLDER, as_text, normalised, without_credentials

RECORD_LIMIT = 32 * MIB
TOKEN = re.compile(r"/t/[^/]+(?=/)")
MAX_FILES = 200_000
HEX = "sha256:"             # RECORD's own hashes say `sha256=` and are base64
SHA256 = re.compile(r"[0-9a-f]{64}")
METADATA_FOLDER = re.compile(r"(?:^|/)((?:site|dist)-packages/([^/]+\.(?:dist-info|egg-info)))(?:/|$)")


@dataclass(frozen=True, slots=True)
class CondaFile:
    """One file of a package. `size` and `digest` are None where installing rewrites the file or it is a link."""

    path: str                   # as conda-meta writes it, relative to the prefix
    size: int | None
    digest: str | None          # as RECORD writes hashes, but hexadecimal: "sha256:…"


@dataclass(frozen=True, slots=True)
class CondaContent:
    """A package with its files."""

    package: CondaPackage
    files: tuple[CondaFile, ...]

    @property
    def owner(self) -> Owner:
        return Owner(manager="conda", name=self.package.name, version=self.package.version)


def read_conda(root: Root, prefix: str, notes: list[Note]) -> tuple[CondaPrefix, tuple[CondaContent, ...]] | None:
    """conda's side of a prefix; None where it has no conda-meta."""
    folder = f"{prefix}/conda-meta"
    if not root.is_folder(folder):
        return None
    contents = tuple(read_packages(root, folder, notes))
    history = f"{folder}/history"
    return CondaPrefix(
        history=history if root.is_file(history) else None,
        base=root.is_file(f"{prefix}/condabin/conda") or any(each.package.name == "conda" for each in contents),
        packages=tuple(each.package for each in contents), variables=read_variables(root, f"{folder}/state", notes),
    ), contents


def read_packages(root: Root, folder: str, notes: list[Note]) -> Iterator[CondaContent]:
    """Every record that can be read; the others become notes."""
    for entry in must_list(root, folder):
        path = f"{folder}/{entry.name}"
        if not entry.name.endswith(".json"):
            continue
        try:
            yield parse_package(json.loads(root.read_bytes(path, RECORD_LIMIT)), path)
        except OSError as error:
            notes.append(Note(path=path, reason=reason_of(error)))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            notes.append(Note(path=path, reason="is no conda-meta record"))


def parse_package(stated: Any, path: str) -> CondaContent:
    """The package of one record. Raises ValueError, KeyError, TypeError or AttributeError where it is none."""
    name, version, build = (required(stated, key) for key in ("name", "version", "build"))
    files = parse_files(stated)
    projects = {found[2] for each in files if (found := METADATA_FOLDER.search(each.path))}
    channel = as_text(stated.get("channel"))
    return CondaContent(
        package=CondaPackage(
            name=name, version=version, build=build, subdir=as_text(stated.get("subdir")), record=path,
            channel=TOKEN.sub("", without_credentials(channel)) if channel else None,
            depends=tuple(each for each in stated.get("depends") or () if isinstance(each, str)),
            projects=tuple(sorted({project_of(folder) for folder in projects})), files=len(files),
        ),
        files=files,
    )


def required(stated: Any, key: str) -> str:
    value = stated[key]
    if not isinstance(value, str) or not value:
        raise TypeError(key)
    return value


def project_of(folder: str) -> str:
    """`torch` of torch-2.3.1.dist-info or torch-2.3.1-py3.11.egg-info."""
    found = FOLDER.fullmatch(folder)
    return normalised(found["name"] if found else folder.rpartition(".")[0])


def parse_files(stated: Any) -> tuple[CondaFile, ...]:
    """From `paths_data` where it is there (it knows sizes), and what only `files` lists."""
    paths = (stated.get("paths_data") or {}).get("paths") or []
    if len(paths) > MAX_FILES or len(stated.get("files") or []) > MAX_FILES:
        raise ValueError("more files than any package has")
    found = {each.path: each for each in map(parse_path, paths)}
    for path in stated.get("files") or []:
        if isinstance(path, str) and path and path not in found:
            found[path] = CondaFile(path, None, None)
    return tuple(found.values())


def parse_path(stated: Any) -> CondaFile:
    """A text file that holds the prefix changes its size when it is installed; a binary one only its hash.

    Of links, compiled files and entry points conda's tools record different things, so they only have to be there.
    """
    placeholder = bool(stated.get("prefix_placeholder"))
    plain = stated.get("path_type") in ("hardlink", None)
    rewritten = placeholder and stated.get("file_mode") != "binary"
    size = stated.get("size_in_bytes")
    sha256 = stated.get("sha256_in_prefix") or (None if placeholder else stated.get("sha256"))
    return CondaFile(
        required(stated, "_path"), size if plain and not rewritten and type(size) is int else None,
        f"{HEX}{sha256}" if plain and isinstance(sha256, str) and SHA256.fullmatch(sha256) else None,
    )


def read_variables(root: Root, path: str, notes: list[Note]) -> tuple[tuple[str, str], ...]:
    """Variables that `conda env config vars set` keeps in conda-meta/state."""
    try:
        stated = json.loads(root.read_bytes(path, MIB))
        return tuple((str(name), str(value)) for name, value in sorted((stated.get("env_vars") or {}).items()))
    except FileNotFoundError:
        return ()
    except OSError as error:
        notes.append(Note(path=path, reason=reason_of(error)))
    except (ValueError, TypeError, AttributeError, RecursionError):
        notes.append(Note(path=path, reason="is no conda-meta/state"))
    return ()
