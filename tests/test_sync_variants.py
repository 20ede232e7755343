"""A pin by the address of a file of the torch index, against what is installed: another variant is another build."""

from __future__ import annotations

import pytest

from stackfix.sync.changes import is_met, version_in
from stackfix.sync.records import Installed
from stackfix.write.records import Entry

URL = "https://torch.invalid/whl/cu118/torch-2.3.1%2Bcu118-cp311-cp311-linux_x86_64.whl"


@pytest.mark.parametrize(("url", "version"), [
    (URL, "2.3.1+cu118"), (URL.replace("cu118", "cpu"), "2.3.1+cpu"),
    ("https://x.invalid/torch-2.5.1-cp311-cp311-linux_aarch64.whl", "2.5.1"),
    ("https://x.invalid/flash_attn-2.5.8%2Bcu122torch2.3cxx11abiFALSE-cp311-cp311-linux_x86_64.whl", "2.5.8"),
    ("https://x.invalid/torch-2.3.1.tar.gz", None),
    ("https://x.invalid/whl/nightly/cu128/torch-2.9.0.dev20250902%2Bcu128-cp311-cp311-manylinux_2_28_x86_64.whl",
     "2.9.0.dev20250902+cu128"),
    ("https://x.invalid/whl/nightly/pytorch_triton-3.4.0%2Bgitf7888497-cp311-cp311-manylinux_2_28_x86_64.whl",
     "3.4.0+gitf7888497"),
    ("https://x.invalid/whl/nightly/pytorch_triton-3.1.0%2B5fe38ffd73-cp311-cp311-linux_x86_64.whl",
     "3.1.0+5fe38ffd73"),
])
def test_a_variant_is_part_of_the_version_and_what_an_asset_was_built_for_is_not(url: str, version: str | None) -> None:
    assert version_in(url) == version


@pytest.mark.parametrize(("installed", "met"), [
    ("2.3.1+cu118", True), ("2.3.1+cu121", False), ("2.3.1", False), ("2.3.1+cpu", False), ("2.3.0+cu118", False),
])
def test_another_variant_that_is_installed_does_not_do(installed: str, met: bool) -> None:
    entry = Entry(name="torch", version=None, url=URL, sha256=("0" * 64,))
    assert is_met(entry, Installed(name="torch", version=installed, url=None), "pip") is met


def test_uv_wants_it_from_that_address() -> None:
    entry = Entry(name="torch", version=None, url=URL, sha256=("0" * 64,))
    assert is_met(entry, Installed(name="torch", version="2.3.1+cu118", url=URL), "uv")
    assert not is_met(entry, Installed(name="torch", version="2.3.1+cu118", url=None), "uv")
