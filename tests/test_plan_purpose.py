"""What a plan was made for, told from its steps, and whether any of it is still there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest

from stackfix.plan.hook import hook_steps
from stackfix.plan.purpose import gone
from stackfix.plan.records import Action, InstallWheel, MakeLink, Plan, SetAside, Step, WriteFile

SITE = "lib/python3.11/site-packages"
TORCH = {"torch": ("nvidia/jit/lib/libjit.so.1",)}
HOOK = hook_steps(SITE, TORCH, "3.11", present=("_stackfix_preload_00000000.pth",))
JIT = f"{SITE}/nvidia/jit/lib/libjit.so.1"
LINK = MakeLink(path=f"{SITE}/nvidia/dnn/lib/libdnn.so.8", target="libdnn.so.8.9")
WHEEL = InstallWheel(project="nvidia-jit-cu12", version="2", file="", sha256="", source="", site=SITE, replaces=())
SHADOW = SetAside(path=f"{SITE}/nvidia/sparse/lib/libjit.so.1")
SCRIPT = WriteFile(path="etc/conda/activate.d/zz-stackfix.sh", text="")
INFO = f"{SITE}/Nvidia_jit.cu12-1.0.dist-info/METADATA"


@dataclass(frozen=True)
class Files:
    """An environment of these files."""

    paths: tuple[str, ...]

    def exists(self, path: str) -> bool:
        return any(each == path or each.startswith(f"{path}/") for each in self.paths)

    def names(self, folder: str) -> list[str]:
        return sorted({PurePosixPath(each).relative_to(folder).parts[0] for each in self.paths
                       if each.startswith(f"{folder}/")})


def action(kind: str, *steps: Step) -> Action:
    return Action(id=kind, kind=kind, summary="", cures=(), steps=steps, changes=())


def plan(*actions: Action, variables: tuple[tuple[str, str | None], ...] = ()) -> Plan:
    return Plan(prefix="/venv", actions=actions, left=(), variables=variables)


OWN = (("LD_LIBRARY_PATH", f"/venv/{SITE}/nvidia/jit/lib:/opt/lib"), ("LD_PRELOAD", None))
CASES: dict[str, tuple[Plan, tuple[str, ...], tuple[str, ...]]] = {
    "hook": (plan(action("preload-hook", *HOOK)), (f"{SITE}/torch/__init__.py", JIT), ()),
    "hook of a single module": (plan(action("preload-hook", *HOOK)), (f"{SITE}/torch.abi3.so", JIT), ()),
    "hook of a namespace": (plan(action("preload-hook", *HOOK)), (f"{SITE}/torch/ops/all.py", JIT), ()),
    "hook without its package": (plan(action("preload-hook", *HOOK)), (JIT,), ("torch",)),
    "hook without its libraries": (plan(action("preload-hook", *HOOK)), (f"{SITE}/torch/__init__.py",), ("torch",)),
    "hook with what an uninstaller leaves": (
        plan(action("preload-hook", *HOOK)), (f"{SITE}/torch/lib/libdnn.so.8", f"{SITE}/torch/__pycache__/x.pyc", JIT),
        ("torch",)),
    "hook of a package elsewhere": (
        plan(action("preload-hook", *hook_steps(SITE, TORCH, "3.11", elsewhere={"torch": "/src"}))), (JIT,), ()),
    "hook with another name like it": (
        plan(action("preload-hook", *HOOK)), (f"{SITE}/torchvision/__init__.py", JIT), ("torch",)),
    "link": (plan(action("relink", LINK)), (LINK.path, f"{SITE}/nvidia/dnn/lib/libdnn.so.8.9"), ()),
    "link without its target": (plan(action("relink", LINK)), (LINK.path,), (LINK.path,)),
    "link that is gone": (plan(action("relink", LINK)), (f"{SITE}/nvidia/dnn/lib/libdnn.so.8.9",), (LINK.path,)),
    "wheel": (plan(action("install", WHEEL)), (INFO,), ()),
    "wheel that is gone": (plan(action("install", WHEEL)), (f"{SITE}/nvidia_jit-1.dist-info/METADATA",),
                           ("nvidia-jit-cu12",)),
    "shadow": (plan(action("remove-shadow", SHADOW)), (f"{SITE}/nvidia/sparse/lib/libsparse.so",), ()),
    "shadow in a folder that is gone": (plan(action("remove-shadow", SHADOW)), (), (f"{SITE}/nvidia/sparse/lib",)),
    "activation": (plan(action("write-activation", SCRIPT), variables=OWN), (JIT,), ()),
    "activation for a folder that is gone": (
        plan(action("write-activation", SCRIPT), variables=OWN), (), (f"{SITE}/nvidia/jit/lib",)),
    "activation that takes something out": (
        plan(action("write-activation", SCRIPT), variables=(("LD_LIBRARY_PATH", "/opt/lib"),)), (), ()),
    "one of two": (plan(action("preload-hook", *HOOK), action("install", WHEEL)), (INFO,), ()),
    "both of two": (plan(action("preload-hook", *HOOK), action("install", WHEEL)), (), ("torch", "nvidia-jit-cu12")),
    "one of two of which nobody can tell": (
        plan(action("preload-hook", *HOOK), action("write-activation", SCRIPT)), (), ()),
    "advice": (plan(action("advice")), (), ()),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_gone_is_told_where_all_is(case: str) -> None:
    found, files, names = CASES[case]
    assert gone(found, Files(files)) == names


@pytest.mark.parametrize("text", ["", "LIBRARIES = 1", "LIBRARIES = [", "LIBRARIES = {'a': open('x')}",
                                  "LIBRARIES = {'a': 1}", "LIBRARIES = " + "(" * 5000])
def test_a_hook_that_is_none_of_ours_is_not_judged(text: str) -> None:
    """A journal may come with an environment from anywhere: nothing of it is run."""
    step = WriteFile(path=f"{SITE}/_stackfix_preload_00000000_loader.py", text=text)
    assert gone(plan(action("preload-hook", step)), Files(())) == ()
