"""Unpacked packages into a prefix, and out of it, through rattler; a note in the prefix outlives a killed process."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.errors import Unreachable
from stackfix.sync.conda_archive import is_inside, placed_paths
from stackfix.sync.conda_download import Engine
from stackfix.sync.conda_prefix import MARK, META, read_conda_installed, read_mark
from stackfix.sync.conda_store import Store, archive_hashes
from stackfix.sync.errors import InstallFailed
from stackfix.sync.records import Change, CondaInstalled, Interrupted, Unpacked
from stackfix.write.records import CondaPin

if TYPE_CHECKING:
    from rattler import RepoDataRecord
    from rattler.package_cache import PackageCache

AGAIN = "the environment is half done: run the same command again, it goes on from there"


def link(  # noqa: PLR0913 - one keyword for each thing it works on
    prefix: Path, pins: tuple[CondaPin, ...], changes: tuple[Change, ...], *, unpacked: Mapping[str, Unpacked],
    installed: Mapping[str, CondaInstalled], store: Store, engine: Engine, from_lock: bool,
    python: str | None,
) -> None:
    """Brings the prefix to the pins. Raises InstallFailed where rattler cannot, and says that it is half done.

    `python`: the minor that will be there.
    `from_lock`: whether the lock tells the dependencies as the channel has them; else the packages tell theirs.
    """
    import rattler
    from rattler.exceptions import InstallerError, LinkError, TransactionError

    changed = {change.name for change in changes if change.action != "keep"}
    records = [record_of(pin, unpacked[pin.name], store, from_lock=from_lock) if pin.name in unpacked
               else kept_record(installed[pin.name]) for pin in pins]
    before = read_mark(prefix)
    paths = [*(path for name in unpacked for path in placed_paths(unpacked[name], python)),
             *(path for name in changed & installed.keys() for path in installed[name].files)]
    begin(prefix, changed, installed, paths=paths, before=before)
    try:
        engine.run(rattler.install(
            records, target_prefix=prefix, package_cache=cache_of(store),
            installed_packages=[rattler.PrefixRecord.from_path(one.path) for one in installed.values()],
            reinstall_packages=changed & installed.keys() & unpacked.keys(), execute_link_scripts=False,
            show_progress=False))
    except (InstallerError, LinkError, TransactionError, OSError) as error:
        reason = engine.without_secrets(": ".join(
            line.removeprefix("Caused by: ") for line in str(error).splitlines() if line.strip()))
        raise InstallFailed(str(prefix), f"rattler cannot link it: {reason[:400]}", AGAIN) from None
    if before is not None:
        sweep(prefix, before.paths)
    with suppress(FileNotFoundError):
        (prefix / META / MARK).unlink()


def sweep(prefix: Path, paths: Iterable[str]) -> None:
    """Takes away what a killed process linked of packages that are not there now, and files of its own."""
    owned = {path for one in read_conda_installed(prefix).values() for path in one.files}
    real = prefix.resolve()
    for path in paths:
        place = prefix / path
        if path in owned or not is_inside(path) or not place.parent.resolve().is_relative_to(real):
            continue
        if place.is_symlink() or place.is_file():
            place.unlink()
        for above in place.parents:
            if above == prefix or not above.is_dir() or above.is_symlink() or any(above.iterdir()):
                break
            above.rmdir()
    for left in (*(prefix / META).glob("prefix_record_*"), *prefix.glob("symtest_*")):      # rattler's own
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def begin(
    prefix: Path, changed: set[str], installed: Mapping[str, CondaInstalled], *, paths: list[str],
    before: Interrupted | None,
) -> None:
    """Writes down what is being changed, and takes away records that a killed process left damaged."""
    meta = prefix / META
    try:
        meta.mkdir(parents=True, exist_ok=True)
        draft = meta / f"{MARK}.new"
        earlier = before if before is not None else Interrupted(packages=frozenset(), paths=())
        draft.write_text(json.dumps({"packages": sorted(changed | earlier.packages),
                                     "paths": sorted({*paths, *earlier.paths})}), encoding="utf-8")
        draft.replace(meta / MARK)
        good = {one.path for one in installed.values()}
        for path in meta.glob("*.json"):
            if path not in good:
                path.unlink()
    except OSError as error:
        raise Unreachable(str(prefix), f"cannot be written: {error.strerror}") from error


def cache_of(store: Store) -> PackageCache:
    """Our cache as rattler's, which is not to look into it: `fetch_all` did."""
    from rattler.package_cache import PackageCache, PackageCacheLayer, ValidationMode

    layer = PackageCacheLayer(store.folder).with_validation_mode(ValidationMode.skip())
    return PackageCache.from_layers([layer])


def kept_record(installed: CondaInstalled) -> RepoDataRecord:
    """The record of a package that stays."""
    from rattler import PrefixRecord

    return PrefixRecord.from_path(installed.path)


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
