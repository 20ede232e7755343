"""Versions of glibc and libstdc++: the systems and the GCC that are named are those of runtime.toml."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.derive.runtime import dropped_function, runtime_version
from stackfix.matrix.toml_files import matrix_directory, parse_toml

FACTS = MatrixFacts(None)
COLUMN = {"GLIBC": 1, "GLIBCXX": 2, "CXXABI": 3}


@cache
def toml(name: str) -> dict[str, Any]:
    return parse_toml(name, (matrix_directory() / name).read_bytes())


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def nodes() -> list[str]:
    lines = [line.split() for each in toml("runtime.toml")["distribution"] for line in each["releases"]]
    return sorted({f"{part}_{line[column]}" for line in lines for part, column in COLUMN.items()})


@pytest.mark.parametrize("node", nodes())
def test_the_oldest_release_of_each_distribution_with_a_version_is_named(node: str) -> None:
    part, number = node.split("_")
    told = runtime_version({"node": node}, FACTS)
    for each in toml("runtime.toml")["distribution"]:
        having = [line.split()[0] for line in each["releases"]
                  if numbers(line.split()[COLUMN[part]]) >= numbers(number)]
        if having:
            assert f"{each['name']} {having[0]}" in told["distributions"]
        else:
            assert each["name"] not in told["distributions"]


@pytest.mark.parametrize("line", [line for group in toml("runtime.toml")["gcc"] for line in group["versions"]])
def test_the_gcc_is_the_one_of_the_file(line: str) -> None:
    node, gcc = line.split()
    told = runtime_version({"node": node, "library_path": "/lib64/libstdc++.so.6"}, FACTS)
    bound = f"'libstdcxx>={gcc.split('.')[0]}'" if int(gcc.split(".")[0]) > 4 else "libstdcxx"
    assert told["libstdcxx"] == bound
    assert (told["gcc"], told["gcc_major"], told["part"]) == (gcc, gcc.split(".")[0], "libstdc++")


@pytest.mark.parametrize(("path", "place"), [
    ("/lib/x86_64-linux-gnu/libstdc++.so.6", "system_library"), ("/lib64/libstdc++.so.6", "system_library"),
    ("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "system_library"), ("/opt/conda/lib/libstdc++.so.6", "own_library"),
    ("/home/u/envs/a/lib/libstdc++.so.6", "own_library"), ("libstdc++.so.6", None),
])
def test_a_path_tells_whose_the_library_is(path: str, place: str | None) -> None:
    told = runtime_version({"node": "GLIBCXX_3.4.30", "library_path": path}, FACTS)
    assert {"system_library", "own_library"} & told.keys() == ({place} if place else set())


def test_the_older_torch_is_the_newest_whose_wheels_ask_for_less() -> None:
    told = runtime_version({"node": "GLIBC_2.27"}, FACTS)
    builds = [(release["version"], build) for release in toml("torch.toml")["release"] for build in release["builds"]
              if build["platform"] == "linux-64" and "index" not in build]
    below = [version for version, build in builds if numbers(build["glibc"]) < [2, 27]]
    above = [version for version, build in builds if numbers(build["glibc"]) >= [2, 27]]
    assert told["older_torch"] == max(below, key=numbers)
    assert told["torch_glibc"] == min(above, key=numbers)
    assert told["older_lock"].startswith(f"stackfix lock --torch {told['older_torch']} --cuda ")
    assert "older_lock" not in runtime_version({"node": "GLIBC_2.34"}, FACTS)       # no wheel of torch asks for it


@pytest.mark.parametrize("node", ["", "GLIBC_", "GLIBCXX_x", "libcudart.so.12", "OPENSSL_3.0.0", "GLIBC_PRIVATE"])
def test_what_is_no_version_of_these_tells_nothing(node: str) -> None:
    assert runtime_version({"node": node}, FACTS) == {}


def test_an_unknown_version_names_no_system() -> None:
    assert "distributions" not in runtime_version({"node": "GLIBC_2.99"}, FACTS)
    assert "gcc" not in runtime_version({"node": "GLIBCXX_3.4.99"}, FACTS)


def test_another_matrix_is_asked_where_it_is_named(tmp_path: Path) -> None:
    shutil.copytree(matrix_directory(), tmp_path / "copy")
    file = tmp_path / "copy" / "runtime.toml"
    file.write_text(file.read_text(encoding="utf-8").replace('"22.04 2.35', '"22.04 2.36'), encoding="utf-8")
    asked = {"node": "GLIBC_2.36"}
    assert "Ubuntu 22.04" in runtime_version(asked, MatrixFacts(tmp_path / "copy"))["distributions"]
    assert "Ubuntu 22.04" not in runtime_version(asked, FACTS)["distributions"]


def test_a_function_that_a_library_of_conda_dropped() -> None:
    for row in toml("runtime.toml")["dropped"]:
        for function in row["functions"].split():
            assert dropped_function({"symbol": function}, FACTS) == {
                "dropped_library": row["name"], "dropped_package": row["package"], "dropped_until": row["until"],
                "dropped_gone": row["gone"]}
    assert dropped_function({"symbol": "iJIT_Other"}, FACTS) == {}
