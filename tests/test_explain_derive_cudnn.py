"""cuDNN: releases, parts and statuses as torch.toml, libraries.toml, codes.toml and frameworks.toml have them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.derive import DERIVE
from stackfix.explain.derive.cudnn import cudnn_pair, dotted, serves, torch_cudnn_lock, torch_with_cudnn_9
from stackfix.explain.derive.cudnn_parts import cudnn_askers, cudnn_parts, cudnn_status, named_cudnn
from stackfix.explain.explain import explain
from stackfix.explain.rules import read_rules
from stackfix.explain.text import read_text
from stackfix.matrix.toml_files import matrix_directory, parse_toml

RULES, FACTS = read_rules(), MatrixFacts(None)


def raw(name: str) -> dict[str, Any]:
    return parse_toml(name, (matrix_directory() / name).read_bytes())


def key(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


TORCH = raw("torch.toml")
PINS = {name: next(line for line in pins["lines"] if line.startswith("nvidia-cudnn"))
        for name, pins in TORCH["pins"].items() if any(line.startswith("nvidia-cudnn") for line in pins["lines"])}
LINUX = [{**build, "version": release["version"]} for release in TORCH["release"] for build in release["builds"]
         if build["platform"] == "linux-64"]
DEFAULT = {build["version"]: (build["cuda"], PINS[build["pins"]].partition(";")[0].strip()) for build in LINUX
           if build.get("index", "default") == "default" and build.get("pins") in PINS}
RELEASES = sorted((release["version"] for release in TORCH["release"]), key=key)


def inside(text: str) -> set[str]:
    """The releases that "2.4.0 to 2.6.0, 2.8.0" means."""
    found = set()
    for part in text.split(", "):
        first, _, last = part.partition(" to ")
        found |= {each for each in RELEASES if key(first) <= key(each) <= key(last or first)}
    return found


@pytest.mark.parametrize("pin", sorted({pin for _, pin in DEFAULT.values()}))
def test_a_release_leads_to_the_torch_that_pins_it(pin: str) -> None:
    version = pin.rpartition("=")[2]
    triple = ".".join(version.split(".")[:3])
    expected = {torch for torch, (_, each) in DEFAULT.items() if each.rpartition("=")[2].startswith(f"{triple}.")}
    fields = cudnn_pair({"compiled": f"({triple.replace('.', ', ')})", "runtime": "99.0.0"}, FACTS)
    assert fields["compiled_version"] == triple
    assert inside(fields["compiled_torch"]) == expected
    assert fields["compiled_pin"] in {each for _, each in DEFAULT.values()}
    lock = torch_cudnn_lock({"compiled": triple}, FACTS)
    assert lock["pinned_cudnn"] == version
    assert re.search(rf"--torch ({'|'.join(map(re.escape, expected))}) ", lock["lock"])


@pytest.mark.parametrize("compiled", ["9.3.0", "9.8.0", "9.13.0", "8.9.7"])
def test_torch_that_is_new_enough_is_of_one_cuda_major(compiled: str) -> None:
    fields = cudnn_pair({"compiled": compiled, "runtime": "9.1.0"}, FACTS)
    wanted = key(compiled)
    expected = {torch for torch, (cuda, pin) in DEFAULT.items() if cuda.startswith("12.")
                and key(pin.rpartition("=")[2])[0] == wanted[0] and key(pin.rpartition("=")[2])[1] >= wanted[1]}
    assert inside(fields["enough_torch"]) == expected if expected else "enough_torch" not in fields


@pytest.mark.parametrize(("text", "release"), [
    ("(9, 1, 0)", "9.1.0"), ("8, 9, 2", "8.9.2"), ("8902", "8.9.2"), ("90100", "9.1.0"), ("91002", "9.10.2"),
    ("7102", "7.1.2"), ("9.3.0", "9.3.0"), ("", ""), ("nine", ""), ("9..1", ""),
])
def test_a_release_is_read_in_every_spelling(text: str, release: str) -> None:
    assert dotted(text) == release


@pytest.mark.parametrize(("runtime", "compiled", "answer"), [
    ("9.3.0.75", "9.3.0", True), ("9.1.0", "9.3.0", False), ("9.10.2", "9.3.0", True), ("8.9.7", "9.0.0", False),
    ("9.0.0", "8.9.7", False),
])
def test_a_later_minor_of_the_major_serves(runtime: str, compiled: str, answer: bool) -> None:
    assert serves(runtime, compiled) is answer


def test_a_release_that_nobody_pins_is_not_guessed() -> None:
    fields = cudnn_pair({"compiled": "7.1.2", "runtime": "7.6.0"}, FACTS)
    assert "compiled_torch" not in fields
    assert torch_cudnn_lock({"compiled": "7.1.2"}, FACTS) == {}


def test_every_status_is_told_with_its_numbers() -> None:
    table = raw("codes.toml")["cudnn"]
    for major in ("8", "9"):
        for line in table[major]:
            number, name, *since = line.split(" ")
            fields = cudnn_status({"number": number}, FACTS)
            assert fields["status"] == name
            assert f"{number} in cuDNN {since[0] if since else major}" in fields["status_numbers"].split(", ")
            assert cudnn_status({"status": name}, FACTS)["status_numbers"] == fields["status_numbers"]


@pytest.mark.parametrize("fields", [{}, {"number": "77"}, {"status": "NO_SUCH_STATUS"}, {"number": "9999"}])
def test_a_status_that_is_none_tells_nothing(fields: dict[str, str]) -> None:
    assert cudnn_status(fields, FACTS) == {}


def test_parts_are_those_of_the_wheels() -> None:
    rows = [(group["library"], row) for group in raw("libraries.toml")["opened"] for row in group["rows"]]
    nine = {name for library, row in rows if library in {"libcudnn.so.9", "libcudnn_graph.so.9"}
            for name in row["names"].split() if name.startswith("libcudnn_") and not row.get("optional")}
    fields = cudnn_parts({}, FACTS)
    assert set(fields["parts"].split(", ")) == nine
    assert "libcudnn_engines_tensor_ir.so.9" in fields["optional_parts"]
    assert "libcudnn_ops_train.so.8" in cudnn_parts({"status": "VERSION_MISMATCH"}, FACTS)["parts"]


def test_who_asks_for_which_major() -> None:
    rows = next(group["rows"] for group in raw("frameworks.toml")["framework"] if group["project"] == "ctranslate2")
    fields = cudnn_askers({"asks": "9.1.0"}, FACTS)
    assert fields["ct2_without"] == next(row["first"] for row in rows if "cudnn" not in row)
    assert fields["ct2_first_9"] == next(row["first"] for row in rows if ">=9" in row.get("cudnn", ""))
    assert inside(fields["asks_torch"]) == {torch for torch, (_, pin) in DEFAULT.items() if "==9.1.0." in pin}
    assert fields["last_cudnn_8"] == max((torch for torch, (_, pin) in DEFAULT.items() if "==8." in pin), key=key)
    assert torch_with_cudnn_9({}, FACTS)["first_cudnn_9"] == min(
        (torch for torch, (_, pin) in DEFAULT.items() if "==9." in pin), key=key)
    cuda = re.search(r"--cuda (\d+)\.", fields["ct2_lock"])
    assert cuda is not None
    assert int(cuda[1]) == next(row["cuda"] for row in rows if "cudnn" not in row)


def test_the_cudnn_for_old_gpus_is_that_of_a_build_for_them() -> None:
    fields = named_cudnn({}, FACTS)
    newest = next(build["archs"] for build in LINUX if build.get("archs"))
    assert fields["old_floor"].replace(".", "") == newest.split()[0]
    old = [key(PINS[build["pins"]].partition(";")[0].strip().rpartition("=")[2]) for build in LINUX
           if build.get("pins") in PINS and build.get("archs")
           and int(build["archs"].split()[0]) < int(newest.split()[0])]
    assert key(fields["old_cudnn"]) == max(old)


@pytest.mark.parametrize(("text", "kind"), [
    ("RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH", "cudnn-parts"),
    ("CUDNN failure 1002 ; GPU=0", "cudnn-parts"),
    ("Could not load library libcudnn_cnn_infer.so.8. Error: libcudnn_cnn_infer.so.8: cannot open shared object file",
     "cudnn-parts"),
    ("[rank3]: RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", "cudnn-status"),
    ("Loaded runtime CuDNN library: 9.10.1 but source was compiled with: 9.13.1.", "cudnn-version"),
])
def test_what_is_explained_first(text: str, kind: str) -> None:
    assert explain(read_text(text.encode()), RULES, FACTS, DERIVE).kind == kind


@pytest.mark.parametrize("status", ["BAD_PARAM", "BAD_PARAM_SHAPE_MISMATCH", "ALLOC_FAILED", "NOT_SUPPORTED",
                                    "INTERNAL_ERROR_HOST_ALLOCATION_FAILED", "LICENSE_ERROR"])
def test_a_status_of_the_program_is_not_claimed(status: str) -> None:
    text = f"RuntimeError: cuDNN error: CUDNN_STATUS_{status}"
    assert explain(read_text(text.encode()), RULES, FACTS, DERIVE).causes == ()
