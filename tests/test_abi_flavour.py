"""Which std::string a mangled name speaks of; and names that g++ makes of the same source, in either ABI."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from stackfix.abi.flavour import name_flavour, string_flavour
from stackfix.abi.mangled import neutral

OLD = ("_ZN3c106detail14torchCheckFailEPKcS2_jRKSs", "_ZN2at1fESs", "_ZN2at1fESt4listIiSaIiEE",
       "_ZN2at1fESbIwSt11char_traitsIwESaIwEE", "_ZN2at1fEN3c108optionalISsEE",
       "_ZN2at1fERSt18basic_stringstreamIcSt11char_traitsIcESaIcEE")
NEW = ("_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
       "_ZNK3c106Device3strB5cxx11Ev", "_ZN2at1fENSt7__cxx114listIiSaIiEEE")
NEITHER = ("_ZN3c105ErrorD1Ev", "_ZN3c104cuda9SetDeviceEa", "_ZN2at5HSsumEv", "_ZN2at8my_SsnameEi", "_ZNK2at4Sb12EvSi",
           "_ZN2at1fILi2EEEvS0_Sa", "torch_Ss", "_ZN2at1fERSoRSi",
           "_ZN2at5listSERKSt6vectorIiSaIiEE", "aoti_torch_cxx11", "")

SOURCE = """
#include <string>
#include <list>
#include <vector>
#include <sstream>
#include <map>
namespace c10 {
std::string takes_and_returns(const std::string& text, int n) { return text + std::string(n, ' '); }
std::string returns_only(int n) { return std::string(n, ' '); }
int plain(const std::vector<int>& v) { return v.size(); }
struct SsHolder { std::map<std::string, std::vector<std::string>> m; std::string Ss(std::list<int> l) const; };
std::string SsHolder::Ss(std::list<int> l) const { return std::string(l.size(), 's'); }
void streams(std::ostringstream& out, std::ostream& plain) { out << 1; plain << 2; }
template <typename T> T twice(T a, T b) { return a; }
template std::string twice<std::string>(std::string, std::string);
template int twice<int>(int, int);
}
namespace at {
struct SbIcStruct { int f(SbIcStruct*, SbIcStruct&); };
int SbIcStruct::f(SbIcStruct*, SbIcStruct&) { return 4; }
}
"""


@pytest.mark.parametrize("name", OLD)
def test_old(name: str) -> None:
    assert name_flavour(name) == "old"


@pytest.mark.parametrize("name", NEW)
def test_new(name: str) -> None:
    assert name_flavour(name) == "new"


@pytest.mark.parametrize("name", NEITHER)
def test_neither(name: str) -> None:
    assert name_flavour(name) is None


def test_over_many_names() -> None:
    assert string_flavour([OLD[0], NEITHER[0]]) == "old"
    assert string_flavour([NEW[0], NEITHER[0]]) == "new"
    assert string_flavour([NEW[0], NEITHER[0], OLD[0]]) == "both"
    assert string_flavour(NEITHER) is None
    assert string_flavour([]) is None


@pytest.mark.parametrize("name", [
    "_Z" + "S" * 50_000, "_Z" + "9" * 50_000 + "Ss", "_ZSs" * 20_000, "_Z99999Ss", "_ZL" * 9 + "Ss",
])
def test_hostile_names_end(name: str) -> None:
    assert name_flavour(name) in {"old", None}


def exported(path: Path) -> set[str]:
    """Names that a library offers, of our namespaces."""
    done = subprocess.run(["nm", "-D", "--defined-only", "--format=just-symbols", str(path)], capture_output=True,
                          text=True, check=True)
    return {name for name in done.stdout.split() if "3c10" in name or "2at" in name}


@pytest.mark.skipif(not shutil.which("g++") or not shutil.which("nm"), reason="g++ compiles the names, nm lists them")
def test_names_of_one_source_in_either_abi(tmp_path: Path) -> None:
    (tmp_path / "names.cpp").write_text(SOURCE, encoding="utf-8")
    names = {}
    for number, flavour in enumerate(("old", "new")):
        subprocess.run(["g++", "-O1", "-shared", "-fPIC", f"-D_GLIBCXX_USE_CXX11_ABI={number}", "-o",
                        str(tmp_path / flavour), str(tmp_path / "names.cpp")], check=True)
        names[flavour] = exported(tmp_path / flavour)
    assert {neutral(name) for name in names["new"]} == {neutral(name) for name in names["old"]}
    assert string_flavour(names["old"]) == "old"
    assert string_flavour(names["new"]) == "new"
    for name in names["old"] & names["new"]:        # the same in both: nothing to do with strings
        assert name_flavour(name) is None, name
    untold = {name for name in names["old"] - names["new"] if name_flavour(name) is None}
    assert untold == {"_ZN3c1012returns_onlyEi"}    # returns the old string, and its name says nothing
    assert all(name_flavour(name) == "new" for name in names["new"] - names["old"])
