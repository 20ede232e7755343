"""The machine that a lock is for, and how each of its parts is known."""

from __future__ import annotations

import pytest

from stackfix.conda.virtual import virtual_packages
from stackfix.errors import BadInput
from stackfix.matrix.load import load_matrix
from stackfix.resolve.records import StackRequest, Target

TARGET = Target(python="3.11", platform="linux-64", glibc="2.28")
MATRIX = load_matrix()


def offered(cuda: str = "12.1", environ: dict[str, str] | None = None, target: Target = TARGET,
            **asked: object) -> dict[str, tuple[str, str]]:
    """name -> (version, origin); of __archspec the build."""
    found = virtual_packages(
        StackRequest(**asked), target, cuda, matrix=MATRIX, environ=environ or {})  # type: ignore[arg-type]
    assert [one.name for one in found] == sorted(one.name for one in found)
    return {one.name: (one.build if one.name == "__archspec" else one.version, one.origin) for one in found}


def test_without_anything_said_it_is_the_stacks_own() -> None:
    found = offered()
    assert set(found) == {"__archspec", "__cuda", "__glibc", "__linux", "__unix"}
    assert found["__cuda"] == ("12.1", "taken as CUDA 12.1 of the stack")
    assert found["__glibc"][0] == "2.28"
    assert found["__archspec"][0] == "x86_64"
    assert offered(cuda="12.1", environ=None) == offered(cuda="12.1", environ={"PATH": "x"})


def test_what_was_asked_is_the_origin() -> None:
    found = virtual_packages(StackRequest(cuda="12"), TARGET, "12.1", matrix=MATRIX, environ={})
    assert [(one.version, one.origin) for one in found if one.name == "__cuda"] == [("12.1", "taken as --cuda 12")]


@pytest.mark.parametrize(("driver", "cuda"), [
    ("535.104.05", "12.2"), ("550.54.14", "12.4"), ("525.60.13", "12.0"), ("580.65.06", "13.0"), ("450.80.02", "11.0"),
])
def test_the_driver_gives_its_own_cuda(driver: str, cuda: str) -> None:
    assert offered(driver=driver)["__cuda"] == (cuda, f"--driver {driver}")
    assert offered(cuda="cpu", driver=driver)["__cuda"][0] == cuda


def test_the_option_goes_before_the_environment() -> None:
    both = {"CONDA_OVERRIDE_CUDA": "11.8", "CONDA_OVERRIDE_GLIBC": "2.17"}
    assert offered(environ=both, driver="535.104.05")["__cuda"][0] == "12.2"
    assert offered(environ=both)["__cuda"] == ("11.8", "CONDA_OVERRIDE_CUDA")
    assert offered(environ=both)["__glibc"] == ("2.17", "CONDA_OVERRIDE_GLIBC")
    older = Target(python="3.11", platform="linux-64", glibc="2.17")
    assert offered(target=older, glibc="2.17")["__glibc"] == ("2.17", "--glibc 2.17")


def test_a_compatibility_package_lifts_the_ceiling_of_the_driver() -> None:
    found = offered(cuda="12.4", driver="450.80.02", cuda_compat=True)["__cuda"]
    assert found == ("12.4", "--driver 450.80.02 with --cuda-compat for CUDA 12.4")
    assert offered(cuda="12.1", driver="550.54.14", cuda_compat=True)["__cuda"] == ("12.4", "--driver 550.54.14")


def test_no_driver_no_cuda() -> None:
    assert "__cuda" not in offered(cuda="cpu")
    assert "__cuda" not in offered(no_driver=True)
    assert offered(no_driver=True, driver="535.104.05")["__cuda"][0] == "12.2"
    assert "__cuda" not in offered(driver="300.1")


def test_the_kernel_is_one_that_old_distributions_have() -> None:
    assert offered()["__linux"][0] == "4.18"
    assert offered(environ={"CONDA_OVERRIDE_LINUX": "5.15"})["__linux"] == ("5.15", "CONDA_OVERRIDE_LINUX")


def test_the_architecture_of_the_other_platform() -> None:
    arm = Target(python="3.11", platform="linux-aarch64", glibc="2.28")
    assert offered(target=arm)["__archspec"][0] == "aarch64"
    level = {"CONDA_OVERRIDE_ARCHSPEC": "x86_64_v3"}
    assert offered(environ=level)["__archspec"] == ("x86_64_v3", "CONDA_OVERRIDE_ARCHSPEC")
    assert offered(environ=level, target=arm)["__archspec"][0] == "aarch64"     # said of the other platform


@pytest.mark.parametrize(("name", "value"), [
    ("CONDA_OVERRIDE_CUDA", "new"), ("CONDA_OVERRIDE_GLIBC", "2.x"), ("CONDA_OVERRIDE_ARCHSPEC", "x86 64"),
    ("CONDA_OVERRIDE_LINUX", "five"),
])
def test_what_is_no_version_is_named(name: str, value: str) -> None:
    with pytest.raises(BadInput) as caught:
        offered(environ={name: value})
    assert caught.value.thing == name
    assert value in caught.value.reason
