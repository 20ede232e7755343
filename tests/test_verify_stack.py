"""Which mapped files are of the GPU stack."""

from __future__ import annotations

import pytest

from stackfix.matrix.libraries import load_libraries
from stackfix.verify.stack import IN_STACK


def test_every_family_of_the_matrix_is_in_it() -> None:
    """Its stems with a version, and the names of NVIDIA's libraries inside wheels, which have a hash in them."""
    stems = [stem for family in load_libraries().families for stem in family.stems]
    assert [stem for stem in stems if not IN_STACK.match(f"{stem}.so.1")] == []
    assert [stem for stem in stems if not IN_STACK.match(f"{stem}-f80c68d1.so.0.3")] == []


@pytest.mark.parametrize("name", ["libc.so.6", "libm.so.6", "libpython3.11.so.1.0", "_json.cpython-311-x86_64.so",
                                  "libcrypto.so.3", "ld-linux-x86-64.so.2", "libtorch.txt", "_ctypes.abi3.so"])
def test_what_every_python_maps_is_not(name: str) -> None:
    assert not IN_STACK.match(name)


@pytest.mark.parametrize("name", ["_C.cpython-311-x86_64-linux-gnu.so", "flash_attn_2_cuda.cpython-311-x86_64.so",
                                  "libcuda.so.550.54.15", "libnvidia-ptxjitcompiler.so.1", "libtorch_global_deps.so"])
def test_extensions_and_the_drivers_own_are(name: str) -> None:
    assert IN_STACK.match(name)
