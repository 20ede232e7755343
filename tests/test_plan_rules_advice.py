"""What a plan says of what it does not do: exact commands for an administrator, ways round with their price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.diagnose.situation import View
from stackfix.inspect.driver import parse_smi
from stackfix.inspect.fatbin import read_gpu_archs
from stackfix.inspect.machine_driver import merged, read_gpus
from stackfix.inspect.places import Root
from stackfix.matrix.libraries import load_libraries
from stackfix.plan.records import Plan
from stackfix.plan.rules_install import installed_by
from tests import test_cases_k1 as k1
from tests import test_cases_k2 as k2
from tests import test_cases_k3 as k3
from tests import test_cases_k5 as k5
from tests.case_worlds import CHECK_OLD, install_torch, linked, set_device
from tests.diagnose_machines import NODES, running
from tests.diagnose_world import World, lib
from tests.plan_world import advice, cured, kinds, plan_of, whole


def gpu_view(world: World, said: str) -> View:
    """The tree as if it were the running machine, and nvidia-smi said this."""
    root = Root(str(world.folder))
    gpus = merged(tuple(read_gpus(root)), parse_smi(said))
    return replace(running(world.view(load_libraries()), *gpus, nodes=NODES),
                   archs=lambda path: read_gpu_archs(path, root))


def priced(plan: Plan) -> list[str]:
    """What is said of ways round."""
    return [each.summary for each in plan.actions if each.kind == "advice" and "Its cost: " in each.summary]


# --- the system ---


@pytest.mark.parametrize(("release", "command"), [
    ("ID=ubuntu\nVERSION_ID=22.04\n", 'sudo apt-get remove "$(dpkg -S '),
    ('ID="rocky"\n', 'sudo dnf remove "$(rpm -qf '),
    ("ID=linuxmint\nID_LIKE='ubuntu debian'\n", 'sudo apt-get remove "$(dpkg -S '), ("ID=void\n", "dpkg -S "),
])
def test_a_library_of_the_system_goes_with_its_package(release: str, command: str, tmp_path: Path) -> None:
    world = k2.system_part(install_torch(World(tmp_path / "machine"), "2.12.1"), "9.21.1")
    plan = plan_of(world.write("/etc/os-release", release))
    assert (kinds(plan), [each.code for each in plan.left]) == ((), ["SF302"])
    assert f"{command}/usr/lib/x86_64-linux-gnu/libcudnn_engines_tensor_ir.so.9.21.1" in advice(plan)
    assert "backends.cudnn.enabled = False" in advice(plan)
    assert len(priced(plan)) == 1


def test_a_folder_of_the_loaders_configuration_is_taken_out_of_its_file(tmp_path: Path) -> None:
    world = k5.with_compat(tmp_path / "machine", "NVIDIA GeForce RTX 2080 Ti", cached=True)
    text = advice(plan_of(world))
    assert r"sudo sed -i '\|^[[:space:]]*/usr/local/cuda-11\.3/compat/*[[:space:]]*$|d' " in text
    assert "/etc/ld.so.conf.d/000_cuda_compat.conf && sudo ldconfig" in text


@pytest.mark.parametrize(("release", "command"), [
    ("ID=ubuntu\n", "sudo ubuntu-drivers install && sudo reboot"), ("ID=void\n", None),
])
def test_a_newer_driver_or_another_stack(release: str, command: str | None, tmp_path: Path) -> None:
    world = k5.put_gpu(install_torch(World(tmp_path / "machine"), "2.1.0"), "NVIDIA GeForce RTX 3050", "470.86")
    plan = plan_of(world.write("/etc/os-release", release))
    assert "stackfix lock --torch 2.1.0 --cuda 11.8 --driver 470.86" in advice(plan)
    assert ((command or "ubuntu-drivers") in advice(plan)) == (command is not None)


def test_a_bad_path_is_advised_where_the_method_has_no_means(tmp_path: Path) -> None:
    sdk = "/opt/nvidia/hpc_sdk/Linux_x86_64/24.5"
    world = k1.jax(tmp_path / "machine", sdk, "12.4", "12.4.127").environ(
        LD_LIBRARY_PATH=f"{sdk}/cuda/12.4/lib64:{sdk}/comm_libs/nccl/lib", LOADEDMODULES="nvhpc/24.5")
    plan = plan_of(world, method="reinstall")
    assert plan.left[0].reason == "--method reinstall has no means for it"
    assert "module unload nvhpc/24.5" in advice(plan)
    assert f"export LD_LIBRARY_PATH={sdk}/comm_libs/nccl/lib" in advice(plan).splitlines()


# --- GPUs without code ---


def test_an_old_card_takes_another_stack(tmp_path: Path) -> None:
    card = "NVIDIA GeForce GTX 1050"
    world = k5.put_gpu(install_torch(World(tmp_path / "machine"), "2.8.0", local="+cu128"), card, "550.54.15")
    k5.put_code(world, k5.TORCH_CUDA, *k5.CODE_28)
    plan = plan_of(world, view=gpu_view(world, k5.smi(card, "6.1")))
    assert (kinds(plan), [each.code for each in plan.left]) == ((), ["SF902"])
    assert "stackfix lock --torch 2.8.0 --cuda 12.6 --gpu-arch sm_61" in advice(plan)
    assert priced(plan) == []


def test_flash_attn_without_code_has_two_ways_round_with_their_price(tmp_path: Path) -> None:
    card = "NVIDIA GeForce RTX 5090"
    world = k5.with_flash_attn(tmp_path / "machine", card, "80", "90")
    plan = plan_of(world, view=gpu_view(world, k5.smi(card, "12.0")))
    assert (kinds(plan), [each.code for each in plan.left]) == ((), ["SF902"])
    assert "FLASH_ATTENTION_FORCE_BUILD=TRUE FLASH_ATTN_CUDA_ARCHS=120 " in advice(plan)
    assert "scaled_dot_product_attention" in advice(plan)
    assert len(priced(plan)) == 2


# --- extensions, and cuDNN, without a cure ---


def vision(folder: Path, package: str, path: str) -> World:
    """A package that was built for another torch, where the index has none for this one."""
    world = install_torch(World(folder), "2.3.0")
    return k3.install(world, package, "0.0.1", {path: k3.extension(set_device("2.2.2"), CHECK_OLD)}, "torch")


@pytest.mark.parametrize(("package", "path", "ways"), [
    ("flash-attn", "flash_attn_2_cuda.abi3.so", ("PyTorch's own attention", "Build flash-attn")),
    ("xformers", "xformers/_C.so", ("PyTorch's own attention", "Build xformers")),
    ("sageattention", "sageattention/_qattn.abi3.so", ("PyTorch's own attention", "Build sageattention")),
    ("torchvision", "torchvision/_C.so", ("Build torchvision",)),
    ("homemade", "homemade/_C.so", ("Build homemade",)),
])
def test_an_extension_of_another_torch_has_ways_round(package: str, path: str, ways: tuple[str, ...],
                                                      tmp_path: Path) -> None:
    said = priced(plan_of(whole(vision(tmp_path / "machine", package, path))))
    assert len(said) == len(ways), said
    assert all(any(way in each for each in said) for way in ways), said


SWITCHES = "torch.backends.cudnn.enabled = False; torch.backends.cuda.enable_cudnn_sdp(False)"


def test_cudnn_is_switched_off_with_all_that_uses_it(tmp_path: Path) -> None:
    world = k2.system_part(install_torch(World(tmp_path / "new"), "2.12.1"), "9.21.1")
    assert SWITCHES in advice(plan_of(world))
    old = install_torch(World(tmp_path / "old"), "2.3.1")       # which has no attention of cuDNN's
    old.remove("nvidia/cudnn/lib/libcudnn_cnn_infer.so.8")
    said = advice(plan_of(whole(old)))
    assert "torch.backends.cudnn.enabled = False" in said
    assert "sdp" not in said


def test_a_torch_that_does_not_start_has_no_switch_to_turn(tmp_path: Path) -> None:
    world = whole(install_torch(World(tmp_path / "machine"), "2.3.1"))
    world.remove("nvidia/cudnn/lib/libcudnn.so.8")
    plan = plan_of(world)
    assert "SF401" in {each.code for each in plan.left}
    assert "cudnn.enabled" not in advice(plan)


# --- what is never said ---


def flash_attn(folder: Path) -> World:
    world = install_torch(World(folder), "2.3.0").wheel("einops", "0.8.0")
    return k3.install(world, "flash-attn", "2.5.7", {k3.FLASH: k3.extension(set_device("2.2.2"), CHECK_OLD)}, "torch")


def unknown_symbol(folder: Path) -> World:
    return install_torch(World(folder), "2.3.1").wheel("odd", "1.0", linked({
        "odd/_ext.cpython-311-x86_64-linux-gnu.so": lib(wants=("nobody_has_this",))}))


@pytest.mark.parametrize("make", [flash_attn, unknown_symbol])
def test_no_library_of_aliases_is_ever_offered(make: Callable[[Path], World], tmp_path: Path) -> None:
    """A program would start whose parts do not fit."""
    plan = plan_of(whole(make(tmp_path / "machine")))
    assert plan.left != ()
    said = "\n".join((advice(plan), *(each.summary for each in plan.actions)))
    assert "LD_PRELOAD" not in said
    assert "ln -s" not in said


def test_what_conda_installed_is_left_to_conda_with_its_command(tmp_path: Path) -> None:
    world = World(tmp_path / "machine", conda=True)
    world.conda("libnvjitlink", "12.0.140", {f"lib/{k1.SONAME}": lib(
        offers=(f"__nvJitLinkAddData_12_0@{k1.SONAME}",), rpath="$ORIGIN")})
    world.conda("libcusparse", "12.3.1.170", {"lib/libcusparse.so.12": lib(
        needs=(k1.SONAME,), wants=(f"__nvJitLinkAddData_12_4@{k1.SONAME}",), rpath="$ORIGIN",
        offers=("cusparseCreate@libcusparse.so.12",))})
    world.conda("some", "1.0", {"lib/python3.11/site-packages/some/_ext.cpython-311-x86_64-linux-gnu.so": lib(
        needs=("libcusparse.so.12",), wants=("cusparseCreate@libcusparse.so.12",), rpath="$ORIGIN/../../..")})
    plan = plan_of(whole(world))
    assert kinds(plan) == ()
    assert [each.code for each in plan.left] == ["SF201"]
    assert f"conda install --prefix {world.prefix} 'libnvjitlink" in advice(plan)
    assert "conda" in plan.left[0].reason


# --- a package without code of its own name ---


def test_a_namespace_is_nothing_that_a_hook_could_listen_to(tmp_path: Path) -> None:
    """jax_plugins has no __init__.py, so nothing of it is ever executed: a hook there would never load anything."""
    sdk = "/opt/nvidia/hpc_sdk/Linux_x86_64/24.5"
    world = k1.jax(tmp_path / "machine", sdk, "12.4", "12.4.127").environ(LD_LIBRARY_PATH=f"{sdk}/cuda/12.4/lib64")
    plan = plan_of(whole(world))
    assert (kinds(plan), cured(plan)) == (("write-activation",), ["SF101"])


def test_no_hook_listens_to_a_folder_that_is_only_a_name(tmp_path: Path) -> None:
    """Nothing of it is ever executed; beside a package that is, a hook alone would cure half of it."""
    needed = lib(offers=("old@libneeded.so.1", "new@libneeded.so.1"))
    world = World(tmp_path / "machine").wheel("needed", "2", {"needed/lib/libneeded.so.1": needed})
    for name in ("only_a_name", "real"):
        world.wheel(name.replace("_", "-"), "1", linked({f"{name}/_C.cpython-311-x86_64-linux-gnu.so": lib(
            needs=("libneeded.so.1",), wants=("new@libneeded.so.1",), runpath="$ORIGIN/../needed/lib")}))
    world.library("/opt/old/libneeded.so.1", lib(offers=("old@libneeded.so.1",))).environ(LD_LIBRARY_PATH="/opt/old")
    whole(world).remove("only_a_name/__init__.py")
    assert kinds(plan_of(world)) == ("write-activation",)
    world.write(f"{world.site}/only_a_name/__init__.py", "")
    plan = plan_of(world)
    assert kinds(plan) == ("preload-hook",)
    assert "only_a_name, real" in plan.actions[0].summary


# --- commands of cures ---


@pytest.mark.parametrize(("line", "packages"), [
    ("/v/bin/python -m pip install --no-deps 'a==1.0'  # so", [("a", "==1.0")]),
    ("uv pip install --python /v/bin/python --no-deps 'a>=1,<2' b", [("a", ">=1,<2"), ("b", "")]),
    ("/v/bin/python -m pip uninstall -y a && /v/bin/python -m pip install --force-reinstall --no-deps b==2",
     [("b", "==2")]),
    ("/v/bin/python -m pip install --no-build-isolation --no-binary flash-attn flash-attn==2.5.8", []),
    ("conda install --prefix /c 'a>=1'", []), ("pip will warn that torch 2.8.0 requires a==1", []),
    ("it's prose", []), ("/v/bin/python -m pip check", []),
])
def test_packages_of_a_command(line: str, packages: list[tuple[str, str]]) -> None:
    assert list(installed_by(line)) == packages
