"""Unpacked packages into a prefix, and out of it, through rattler; a note in the prefix outlives a killed process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.errors import StackfixError, Unreachable
from stackfix.sync.conda_archive import placed_at, placed_paths
from stackfix.sync.conda_download import Engine
from stackfix.sync.conda_mark import remove_mark, write_mark
from stackfix.sync.conda_prefix import META
from stackfix.sync.conda_store import Store, archive_hashes, stem
from stackfix.sync.errors import InstallFailed
from stackfix.sync.install import say
from stackfix.sync.records import Change, CondaInstalled, Interrupted, Unpacked
from stackfix.write.records import CondaPin

if TYPE_CHECKING:
    from rattler import PrefixRecord, RepoDataRecord
    from rattler.package_cache import PackageCache

AGAIN = "the environment is half done: run the same command again, it goes on from there"


def link(
    prefix: Path, pins: tuple[CondaPin, ...], changes: tuple[Change, ...], *, unpacked: Mapping[str, Unpacked],
    linked: Mapping[str, PrefixRecord], store: Store, engine: Engine, from_lock: bool,
) -> None:
    """Brings the prefix to the pins. Raises InstallFailed where rattler cannot, and says that it is half done.

    `linked`: the records of what is there.
    `from_lock`: whether the lock tells the dependencies as the channel has them; else the packages tell theirs.
    """
    import rattler

    changed = {change.name for change in changes if change.action != "keep"}
    records = [record_of(pin, unpacked[pin.name], store, from_lock=from_lock) if pin.name in unpacked
               else linked[pin.name] for pin in pins]
    try:
        engine.run(rattler.install(
            records, target_prefix=prefix, package_cache=cache_of(store), installed_packages=list(linked.values()),
            reinstall_packages=changed & linked.keys() & unpacked.keys(), execute_link_scripts=False,
            show_progress=False))
    except KeyboardInterrupt:
        say(f"{prefix}: {AGAIN}", quiet=False)
        raise
    except (StackfixError, SystemExit):
        raise
    except BaseException as error:                  # those of pyo3 are no Exception
        if not isinstance(error, Exception) and "Panic" not in type(error).__name__:
            raise
        reason = engine.without_secrets(": ".join(
            line.removeprefix("Caused by: ") for line in str(error).splitlines() if line.strip()))
        raise InstallFailed(str(prefix), f"rattler cannot link it: {reason[:400]}", AGAIN) from None
    remove_mark(prefix)


def linked_records(installed: Mapping[str, CondaInstalled]) -> dict[str, PrefixRecord]:
    """Name -> the record as rattler reads it. Raises Unreachable where it cannot."""
    from rattler import PrefixRecord

    found = {}
    for name, one in installed.items():
        try:
            found[name] = PrefixRecord.from_path(one.path)
        except Exception as error:  # noqa: BLE001 - of several unrelated classes
            reason = str(error).strip().partition("\n")[0][:200]
            raise Unreachable(str(one.path), f"is no record that rattler can read: {reason}",
                              "remove the file, or the environment, and sync again") from None
    return found


def begin(
    prefix: Path, changes: tuple[Change, ...], installed: Mapping[str, CondaInstalled], *,
    packages: list[tuple[CondaPin, Unpacked]], python: str | None, store: Store, before: Interrupted | None,
) -> None:
    """Writes down what is being changed, and takes away records that a killed process left damaged.

    Packages that only go need no note: a record goes last, and where files are missing the package is linked anew.
    `python`: the minor that will be there.
    """
    if packages:
        changed = {change.name for change in changes if change.action != "keep"}
        owned = {path for one in installed.values() for path in one.files}
        paths = {path: source for path, source in sources(packages, python)
                 if path in owned or not os.path.lexists(prefix / path)}
        paths |= {path: paths.get(path, "") for name in changed & installed.keys() for path in installed[name].files}
        if before is not None:
            same = before.store == str(store.folder)
            paths = {**(before.paths if same else dict.fromkeys(before.paths, "")), **paths}
            changed |= before.packages
        write_mark(prefix, changed, paths, store.folder)
    good = {one.path for one in installed.values()}
    try:
        for path in (prefix / META).glob("*.json"):
            if path not in good:
                path.unlink()
    except OSError as error:
        raise Unreachable(str(prefix), f"cannot be written: {error.strerror}") from error


def sources(packages: list[tuple[CondaPin, Unpacked]], python: str | None) -> Iterator[tuple[str, str]]:
    """(path below the prefix, the file below the store that it comes from; "" for what is made on the spot)."""
    for pin, package in packages:
        stated = {placed_at(path, package, python): f"{stem(pin)}/{path}" for path in package.paths}
        yield from ((path, stated.get(path, "")) for path in placed_paths(package, python))


def cache_of(store: Store) -> PackageCache:
    """Our cache as rattler's, which is not to look into it: `fetch_all` did."""
    from rattler.package_cache import PackageCache, PackageCacheLayer, ValidationMode

    layer = PackageCacheLayer(store.folder).with_validation_mode(ValidationMode.skip())
    return PackageCache.from_layers([layer])


def record_of(pin: CondaPin, package: Unpacked, store: Store, *, from_lock: bool) -> RepoDataRecord:
    """What conda-meta is to say: the package's own index.json, and of the lock what channels correct in it."""
    from rattler import PackageRecord, RepoDataRecord

    hashes = archive_hashes(store, pin)
    record = PackageRecord.from_index_json(package.folder / "info" / "index.json", pin.size, hashes["sha256"],
                                           hashes["md5"])
    record.subdir = pin.subdir or record.subdir
    if from_lock:
        record.depends = list(pin.depends)
    if pin.constrains:
        record.constrains = list(pin.constrains)
    return RepoDataRecord(record, pin.file_name or "", pin.url or "", pin.channel or "")
