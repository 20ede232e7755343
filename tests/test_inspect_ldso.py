"""The loader's set-up: its cache beside ldconfig, ld.so.conf with includes, built-in folders, hwcaps."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from stackfix.errors import BadInput
from stackfix.inspect.ldso import (
    cpu_levels,
    hwcap_subfolders,
    read_cache,
    read_conf,
    read_cpu_flags,
    read_loader,
)
from stackfix.inspect.ldso_cache import CacheEntry, choose, parse_cache
from stackfix.inspect.ldso_records import ConfiguredFolder
from stackfix.inspect.places import Root, open_root
from tests.loader_oracle.build import cache_of
from tests.loader_oracle.elf_writer import write
from tests.loader_oracle.graph import Library

LDCONFIG = next((path for path in ("/sbin/ldconfig", "/usr/sbin/ldconfig") if Path(path).exists()), None)
needs_ldconfig = pytest.mark.skipif(LDCONFIG is None, reason="needs ldconfig")
LOADER = Path("/lib64/ld-linux-x86-64.so.2")


@needs_ldconfig
def test_the_machine_s_cache_as_ldconfig_prints_it() -> None:
    text = subprocess.run([str(LDCONFIG), "-p"], capture_output=True, text=True, check=True, timeout=60).stdout
    printed = re.findall(r"^\t(\S+) \(.*\) => (\S+)$", text, flags=re.MULTILINE)
    assert [(each.soname, each.path) for each in read_cache(Root())] == printed


@needs_ldconfig
def test_a_cache_with_hwcaps_subfolders(tmp_path: Path) -> None:
    folder = tmp_path / "libs"
    better = folder / "glibc-hwcaps" / "x86-64-v3"
    better.mkdir(parents=True)
    for place in (folder, better):
        (place / "libqq.so.1").write_bytes(write(Library(path="", soname="libqq.so.1")))
    (tmp_path / "conf").write_text(f"{folder}\n", encoding="utf-8")
    subprocess.run([str(LDCONFIG), "-X", "-C", str(tmp_path / "cache"), "-f", str(tmp_path / "conf")], check=True,
                   timeout=60)
    entries = [each for each in parse_cache((tmp_path / "cache").read_bytes()) if each.soname == "libqq.so.1"]
    assert {(each.path, each.hwcaps) for each in entries} == {
        (str(better / "libqq.so.1"), "x86-64-v3"), (str(folder / "libqq.so.1"), None)}
    assert choose(entries, machine="x86_64", bits=64, hwcaps=("x86-64-v3", "x86-64-v2")) == {
        "libqq.so.1": str(better / "libqq.so.1")}
    assert choose(entries, machine="x86_64", bits=64, hwcaps=("x86-64-v2",)) == {
        "libqq.so.1": str(folder / "libqq.so.1")}
    assert choose(entries, machine="aarch64", bits=64, hwcaps=()) == {}


def test_an_old_cache_before_the_new_one() -> None:
    new = cache_of([("libq.so.1", "/opt/libq.so.1")])
    old = b"ld.so-1.7.0\0" + (3).to_bytes(4, "little") + bytes(36)
    both = old + b"\0" * (-len(old) % 8) + new
    assert [(each.soname, each.path) for each in parse_cache(both)] == [("libq.so.1", "/opt/libq.so.1")]
    assert parse_cache(old) == ()


def test_every_truncated_cache_is_an_error_or_shorter() -> None:
    whole = cache_of([(f"libq{place}.so.1", f"/opt/libq{place}.so.1") for place in range(5)])
    assert len(parse_cache(whole)) == 5
    for size in range(len(whole)):
        with pytest.raises(BadInput, match=r"ld\.so\.cache"):
            parse_cache(whole[:size])


def test_the_first_plain_entry_wins() -> None:
    entries = [CacheEntry(soname="libq.so", path=path, flags=0x303, hwcaps=None, legacy_hwcap=legacy)
               for path, legacy in (("/old/haswell/libq.so", 4), ("/one/libq.so", 0), ("/two/libq.so", 0))]
    assert choose(entries, machine="x86_64", bits=64, hwcaps=()) == {"libq.so": "/one/libq.so"}


def test_conf_with_includes_comments_and_a_loop(tmp_path: Path) -> None:
    conf = tmp_path / "etc" / "ld.so.conf.d"
    conf.mkdir(parents=True)
    (tmp_path / "etc" / "ld.so.conf").write_text(
        "# first\ninclude /etc/ld.so.conf.d/*.conf\n/opt/last/  # why\nrelative/path\nhwcap 1 nosegneg\n",
        encoding="utf-8")
    (conf / "b.conf").write_text("/opt/b\ninclude ../ld.so.conf\ninclude missing.conf\n", encoding="utf-8")
    (conf / "a.conf").write_text("\n/opt/a=libc5\n", encoding="utf-8")
    (conf / ".hidden.conf").write_text("/opt/hidden\n", encoding="utf-8")
    (conf / "c.txt").write_text("/opt/c\n", encoding="utf-8")
    found = read_conf(open_root(tmp_path))
    assert [each.folder for each in found if each.file != "/etc/ld.so.conf.d/../ld.so.conf"] == [
        "/opt/a", "/opt/b", "/opt/last"]
    assert found[0] == ConfiguredFolder(folder="/opt/a", file="/etc/ld.so.conf.d/a.conf", line=2)
    assert read_conf(open_root(tmp_path), "/etc/none") == ()


def test_a_tree_s_own_loader(tmp_path: Path) -> None:
    (tmp_path / "usr" / "lib64").mkdir(parents=True)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "ld.so.cache").write_bytes(cache_of([("libq.so.1", "/opt/libq.so.1")]))
    (tmp_path / "etc" / "ld.so.preload").write_text("/opt/a.so:/opt/b.so\n", encoding="utf-8")
    found = read_loader(open_root(tmp_path), machine="x86_64", cpu_flags=(), glibc=(2, 28))
    assert (found.system_folders, found.lib, found.cache, found.preload_file, found.sort_by_depth) == (
        ("/lib64", "/usr/lib64"), "lib64", {"libq.so.1": "/opt/libq.so.1"}, ("/opt/a.so", "/opt/b.so"), False)
    (tmp_path / "etc" / "ld.so.cache").write_bytes(b"rubbish")
    assert read_loader(open_root(tmp_path), machine="x86_64", cpu_flags=(), glibc=(2, 28)).cache == {}


def test_levels_of_the_cpu() -> None:
    v2 = ["cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"]
    v3 = [*v2, "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"]
    assert cpu_levels("x86_64", v2) == ("x86-64-v2",)
    assert cpu_levels("x86_64", v3) == ("x86-64-v3", "x86-64-v2")
    assert cpu_levels("x86_64", [*v3[1:]]) == ()
    assert cpu_levels("aarch64", v3) == ()
    assert hwcap_subfolders("x86_64", ("x86-64-v2",), (2, 39)) == ("glibc-hwcaps/x86-64-v2",)
    assert hwcap_subfolders("x86_64", ("x86-64-v2",), (2, 31))[0] == "tls/x86_64/x86_64"


@pytest.mark.skipif(not LOADER.exists() or not shutil.which("gcc"), reason="needs glibc's x86_64 loader and gcc")
def test_subfolders_and_folders_as_the_real_loader_searches_them(tmp_path: Path) -> None:
    version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()[1].split(".")
    ours = read_loader(Root(), machine="x86_64", glibc=(int(version[0]), int(version[1])))
    (tmp_path / "x.c").write_text("int main(void) { return 0; }", encoding="utf-8")
    subprocess.run(["gcc", "-o", str(tmp_path / "x"), str(tmp_path / "x.c")], check=True, timeout=60)
    text = subprocess.run([str(tmp_path / "x")], capture_output=True, text=True, check=True, timeout=60,
                          env={"LD_LIBRARY_PATH": "/nowhere", "LD_DEBUG": "libs"}).stderr
    searched = re.findall(r"search path=(\S+)\s+\(LD_LIBRARY_PATH\)", text)[0].split(":")
    assert list(dict.fromkeys(searched)) == [f"/nowhere/{each}" for each in ours.hwcap_subfolders] + ["/nowhere"]
    helped = subprocess.run([str(LOADER), "--help"], capture_output=True, text=True, check=False, timeout=60).stdout
    assert tuple(re.findall(r"^  (\S+) \(system search path\)$", helped, flags=re.MULTILINE)) == ours.system_folders
    assert read_cpu_flags(Root())
