"""What is told of conflicts and of releases that are not found agrees with the matrix's files."""

from __future__ import annotations

import re

import pytest
from packaging.specifiers import SpecifierSet

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.derive.conflicts import conflict, kept_pin
from stackfix.explain.derive.resolution import (
    build_string,
    cuda_build,
    family_helper,
    helper,
    stack_requirement,
    torch_release,
    virtual_cuda,
)
from stackfix.explain.derive.statements import Statement, plain, stated
from tests import explain_oracle as oracle

FACTS = MatrixFacts(None)
CUDNN = "nvidia-cudnn-cu12"


def pins(library: str) -> dict[str, str]:
    """Release of torch -> the version of a library that its build of the default index requires."""
    found = {}
    for version, row in oracle.torch_rows().items():
        build = next((each for each in row["builds"] if each.get("index", "default") == "default"
                      and each["platform"] == "linux-64"), None)
        for line in oracle.toml("torch.toml")["pins"][build["pins"]]["lines"] if build and "pins" in build else ():
            if match := re.match(rf"{library}==([\d.]+)(?![\d.])", line):
                found[version] = match[1]
    return found


def torch_chain(torch: str, spec: str) -> str:
    return f"torch {torch} depends on {CUDNN}=={pins(CUDNN)[torch]} jax-cuda12-plugin 0.4.33 depends on {CUDNN}{spec}"


@pytest.mark.parametrize(("torch", "spec"), [("2.1.1", "<10.0,>=9.1"), ("2.5.1", "<10,>=9.8"), ("2.8.0", "==8.9.2.26")])
def test_the_torch_that_is_named_is_the_nearest_whose_pin_is_admitted(torch: str, spec: str) -> None:
    found = conflict({"chain": torch_chain(torch, spec)}, FACTS)
    table = pins(CUDNN)
    fitting = sorted((version for version, pin in table.items() if pin in SpecifierSet(spec)), key=oracle.number)
    later = [each for each in fitting if oracle.number(each) >= oracle.number(torch)]
    assert found["torch_near"] == (later[0] if later else fitting[-1])
    assert found["near_pin"] == table[found["torch_near"]]
    assert (found["torch_release"], found["torch_pin"]) == (torch, table[torch])
    ends = re.findall(r"[\d.]+", found["torch_fits"])
    assert set(ends) <= set(fitting)
    assert {fitting[0], fitting[-1]} <= set(ends)
    assert found["lock"].startswith(f"stackfix lock --torch {found['torch_near']} --cuda ")


def test_where_no_torch_fits_that_is_said() -> None:
    found = conflict({"chain": torch_chain("2.1.1", ">=99")}, FACTS)
    assert found["no_torch"] == "yes"
    assert "torch_near" not in found


@pytest.mark.parametrize("torch", ["2.1.1", "2.3.1", "2.5.1", "2.7.0"])
def test_the_companion_is_the_one_that_requires_this_torch(torch: str) -> None:
    other = next(each for each in oracle.companions("torchvision").values() if each[0] not in {"", f"=={torch}"})[0]
    chain = f"The user requested torch=={torch} torchvision 9.9 depends on torch{other.replace('>=', '==')}"
    found = conflict({"chain": chain}, FACTS)
    assert found["companion_release"] == oracle.companion_of("torchvision", torch)
    assert found["lock"].endswith(f"--with torchvision=={found['companion_release']}")


@pytest.mark.parametrize("chain", [
    "", "foo 1.0 depends on bar==1 baz 1.0 depends on bar==2", f"torch 2.1.1 depends on {CUDNN}==8.9.2.26",
    f"torch 2.1.1 depends on {CUDNN}==8.9.2.26 jax 1 depends on {CUDNN}>=8",
    "torch 2.1.1 depends on sympy<2 other 1 depends on sympy>=1",
])
def test_what_is_no_conflict_of_the_stack_is_not_told(chain: str) -> None:
    assert conflict({"chain": chain}, FACTS) == {}


@pytest.mark.parametrize("has", ["9.5.1.17", "9.11.0.98", "9.1.0.70"])
def test_of_a_library_that_was_moved_the_torch_that_pins_it_is_named(has: str) -> None:
    read = {"who": "torch", "who_version": "2.1.1", "library": CUDNN, "needs": f"{CUDNN}==8.9.2.26", "has": has}
    found = kept_pin(read, FACTS)
    table = pins(CUDNN)
    exact = [version for version, pin in table.items() if pin == has]
    nine = sorted((version for version, pin in table.items() if pin.startswith("9.")), key=oracle.number)
    assert bool(found.get("exact")) is bool(exact)
    assert (found["major_near"], found["major_pin"]) == (nine[0], table[nine[0]])
    if exact:
        assert found["torch_near"] == min(exact, key=oracle.number)


def test_of_a_torch_that_was_moved_the_companion_for_it_is_named() -> None:
    found = kept_pin({"who": "torchaudio", "library": "torch", "needs": "torch==2.4.0", "has": "2.5.1"}, FACTS)
    assert found["partner"] == oracle.companion_of("torchaudio", "2.5.1")


@pytest.mark.parametrize("torch", ["2.4.1", "2.5.0"])
def test_an_old_release_with_a_lower_bound_alone_is_for_no_later_torch(torch: str) -> None:
    pinned = {each.torch for each in FACTS.companions if each.package == "vllm"}
    assert ">=2.1.1" in pinned, "vllm 0.2.5 admits every torch from 2.1.1 on"
    assert f"=={torch}" not in pinned
    assert "partner" not in kept_pin({"who": "vllm", "library": "torch", "needs": "torch==2.4.0", "has": torch}, FACTS)
    chain = f"Because vllm==0.9.2 depends on torch==2.7.0 and you require torch=={torch}, we can conclude"
    assert "companion_release" not in conflict({"chain": chain}, FACTS)


@pytest.mark.parametrize(("who", "needs", "pins"), [
    ("vllm", "torch==2.3.0", True), ("torchvision", "torch==2.3.0", False),
])
def test_what_a_partner_pins_besides_is_told(who: str, needs: str, *, pins: bool) -> None:
    found = kept_pin({"who": who, "library": "torch", "needs": needs, "has": "2.4.0"}, FACTS)
    row = next(each for each in FACTS.companions if (each.package, each.version) == (who, found["partner"]))
    told = found.get("partner_needs", "").split(", ")
    assert told == ([each.partition(";")[0].strip() for each in row.requires] if pins else [""])


def test_other_packages_are_none_of_ours() -> None:
    assert kept_pin({"who": "requests", "library": "urllib3", "needs": "urllib3<3", "has": "3.0"}, FACTS) == {}


def variants(torch: str) -> set[str]:
    return {each["cuda"] for each in oracle.torch_rows()[torch]["builds"] if each["platform"] == "linux-64"} - {"cpu"}


@pytest.mark.parametrize(("requirement", "field"), [
    ("torch==2.3.1+cu118", "torch_path"), ("torch==2.3.1+cu121", "plain"), ("torch==2.3.1+cu129", "no_variant"),
    ("torch==2.3.99", "no_release"),
])
def test_where_a_torch_is(requirement: str, field: str) -> None:
    found = torch_release({"requirement": requirement}, FACTS)
    assert [each for each in ("torch_path", "plain", "no_variant", "no_release") if each in found] == [field]
    if field == "no_release":
        assert found["torch_near"] in oracle.torch_rows()
        return
    row = oracle.torch_rows()["2.3.1"]
    assert set(found["variants"].split(", ")) == variants("2.3.1")
    assert found["pythons"] == f"{row['pythons'][0]} to {row['pythons'][-1]}"


def test_a_python_without_wheels_is_told() -> None:
    found = torch_release({"requirement": "torch==2.3.1", "python": "3.13"}, FACTS)
    assert "3.13" not in oracle.torch_rows()["2.3.1"]["pythons"]
    assert found["python_outside"] == "3.13"
    assert "--python" not in found["lock"]


@pytest.mark.parametrize("requirement", ["numpy==1.0", "torchvision==0.1", "", "=="])
def test_only_torch_is_looked_up(requirement: str) -> None:
    assert torch_release({"requirement": requirement}, FACTS) == {}


def test_what_belongs_to_the_stack() -> None:
    own = ("torch", "Torch[x]==2", "nvidia-cudnn-cu12", "flash_attn", "jaxlib")
    others = ("requests", "torchmetrics", "numpy")
    of = {name: "stack" in stack_requirement({"requirement": name}, FACTS) for name in (*own, *others)}
    assert of == {**dict.fromkeys(own, True), **dict.fromkeys(others, False)}


def test_helpers_are_those_of_torchs_closure() -> None:
    closures = oracle.toml("closures.toml")["closure"]
    assert "markupsafe" in closures["torch"]
    assert helper({"requirement": "markupsafe==3.0.2"}, FACTS) == {"helper": "markupsafe"}
    assert helper({"requirement": "pillow==11"}, FACTS) == {}
    assert family_helper({"requirement": "pillow==11"}, FACTS) == {"helper": "pillow"}
    assert family_helper({"requirement": "torch==2"}, FACTS) == {}


@pytest.mark.parametrize(("fields", "wanted"), [
    ({"build": "cuda126py311_0"}, "12.6"), ({"build": "cuda118py310hc6bd4a6_300"}, "11.8"),
    ({"spec": ">=12.6,<13"}, "12.6"),
    ({"spec": ">=12"}, "12"), ({"spec": "12.8"}, "12.8"), ({"build": "py311_0", "spec": "*"}, None), ({}, None),
])
def test_the_cuda_that_a_build_or_a_requirement_states(fields: dict[str, str], wanted: str | None) -> None:
    assert build_string(fields, FACTS).get("cuda_wanted") == wanted


def test_the_newest_torch_for_a_cuda() -> None:
    found = cuda_build({"cuda_wanted": "12.6"}, FACTS)
    fitting = [version for version in oracle.torch_rows() if "12.6" in variants(version)]
    assert found["torch_near"] == max(fitting, key=oracle.number)
    assert cuda_build({"cuda_wanted": "12.7"}, FACTS) == {}


def test_the_drivers_of_the_cuda_majors() -> None:
    found = virtual_cuda({}, FACTS)
    assert f"12 (driver {oracle.driver_floor(12)} or newer)" in found["majors"]
    assert virtual_cuda({"virtual": "__glibc", "spec": ">=2.17,<3.0.a0"}, FACTS)["glibc_floor"] == "2.17"


@pytest.mark.parametrize(("chain", "statements"), [
    ("torch 2.1.1 depends on x==1", [("torch", "2.1.1", "x", "==1")]),
    ("torch<=2.1 depends on x==1 and y>=2 depends on z<3", [("torch", "<=2.1", "x", "==1"), ("y", ">=2", "z", "<3")]),
    ("torch (2.1.1) depends on x (1)", [("torch", "2.1.1", "x", "==1")]),
    ("p[extra] 0.4 depends on x<10.0 and >=9.1; extra == 'e'", [("p", "0.4", "x", "<10.0,>=9.1")]),
    ("because demo depends on both torch (2.1.1) and v (^0.15.2), version", [("demo", "", "torch", "==2.1.1"),
                                                                             ("demo", "", "v", ">=0.15.2,<0.16")]),
    ("you require torch==2 and jax[c]==1, we", [("", "", "torch", "==2"), ("", "", "jax", "==1")]),
    ("a{sys_platform == 'linux'}==1 and t==2 depends on a{sys_platform == 'linux'}==1", [("t", "==2", "a", "==1")]),
    ("we can conclude that torch<=2.1.1 and jax are incompatible", []),
])
def test_what_resolvers_state(chain: str, statements: list[tuple[str, str, str, str]]) -> None:
    assert list(stated(chain)) == [Statement(*each) for each in statements]


@pytest.mark.parametrize(("spec", "said"), [("^1.2.3", ">=1.2.3,<2"), ("^0.0.3", ">=0.0.3,<0.0.4"), ("^0", ">=0,<1"),
                                            ("(8.9.2.26)", "==8.9.2.26"), (">=9.1 and <10", ">=9.1,<10")])
def test_specifiers_as_pip_writes_them(spec: str, said: str) -> None:
    assert plain(spec) == said
