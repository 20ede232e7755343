"""Mangled names made readable, and made neutral to std::string: single cases, hostile names, c++filt beside it."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys

import pytest

from stackfix.abi.mangled import demangle, function_of, neutral
from stackfix.abi.mangled_emit import emit, sequence
from stackfix.abi.mangled_nodes import NotMangledError
from stackfix.abi.mangled_parse import parse

STRING = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
KEYS = {
    f"_Z1f{STRING}": "_Z1fSs",
    f"_Z1f{STRING}S4_": "_Z1fSsSs",
    "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC1ERKS4_": "_ZNSsC1ERKSs",
    "_ZNSt7__cxx1112basic_stringIwSt11char_traitsIwESaIwEEC1ERKS4_": "_ZNSbIwSt11char_traitsIwESaIwEEC1ERKS2_",
    "_Z1fB5cxx11RKNSt7__cxx114listIiSaIiEEES4_": "_Z1fRKSt4listIiSaIiEES3_",
    f"_ZN3c1014torchCheckFailEPKcS1_jRK{STRING}": "_ZN3c1014torchCheckFailEPKcS1_jRKSs",
    f"_ZN3c106Device1fERK{STRING}RKS0_RKSt6vectorIS6_SaIS6_EE": "_ZN3c106Device1fERKSsRKS0_RKSt6vectorISsSaISsEE",
    "_ZNSt10filesystem7__cxx114pathC2ERKS1_": "_ZNSt10filesystem4pathC2ERKS0_",
    "_ZNSt7__cxx119to_stringEi": "_ZSt9to_stringi",
    "_ZZN1A1fB5cxx11EvE1x": "_ZZN1A1fEvE1x",
    "_ZN1A1fB5cxx11Ev.cold": "_ZN1A1fEv.cold",
    "_ZThn16_N1A1fB5cxx11Ev": "_ZThn16_N1A1fEv",
}
OWN = ("_Z1fSs", "_ZN3foo13cxx11_supportEv", "_ZN1A7__cxx113fooEv", "cxx11", "_Z1fB5cxx11v_", "_ZN1fB5cxx11",
       "_ZNSt7__cxx11", "_ZN1fB3abcEv", "", "_Z", "7__cxx11", "_ZNSt7__cxx1112basic_string")
READABLE = {
    "_ZN3c104cuda9SetDeviceEa": "c10::cuda::SetDevice(signed char)",
    "_ZNK3c106Device3strB5cxx11Ev": "c10::Device::str[abi:cxx11]() const",
    "_Z1fPFPFviEcE": "f(void (*(*)(char))(int))",
    "_Z1fRA3_iPA3_KcA4_i": "f(int (&) [3], char const (*) [3], int [4])",
    "_Z1fIM1AFPFivEvEEvv": "void f<int (* (A::*)())()>()",
    "_Z1fIFPA3_icEEvv": "void f<int (*(char)) [3]>()",
    "_Z1fIiEPFvT_ES0_": "void (*f<int>(int))(int)",
    "_Z1fIJEiJEcEvv": "void f<, int, , char>()",
    "_Z1fI1AIJEEJEEvv": "void f<A<>>()",
    "_Z1fIJicEEvDpOT_": "void f<int, char>(int&&, char&&)",
    "_Z1fIOiEvRT_": "void f<int&&>(int&)",
    "_Z1fIRFvvEEvOT_": "void f<void (&)()>(void (&)())",
    "_ZN1AltIiEEvi": "void A::operator< <int>(int)",
    "_Z1fIabcdefghijlmEvT9_T10_": "void f<signed char, bool, char, double, long double, float, __float128, "
                                  "unsigned char, int, unsigned int, long, unsigned long>(long, unsigned long)",
    "_ZN1AcvT_IiEEv": "A::operator int<int>()",
    "_ZN1AcvPT_IiEES1_": "A::operator int*<int>(int*)",
    "_ZNVKO1A1fEv": "A::f() const volatile &&",
    "_ZZ1fvENKUlOT_DpT0_E_clIiJcEEEDaS0_S2_":
        "auto f()::{lambda(auto:1&&, (auto:2)...)#1}::operator()<int, char>(int&&, char) const",
    "_ZZNK1A1fEiEd0_NKUlvE_clEv": "A::f(int) const::{default arg#2}::{lambda()#1}::operator()() const",
    "_Z1fILi5ELj6ELb1ELm7ELc65ELn3ELin5EEvv": "void f<5, 6u, true, 7ul, (char)65, (__int128)3, -5>()",
    "_Z1fIXadL_ZN1A1gEvEEXadL_Z1gvEEEvv": "void f<&A::g, &(g())>()",
    "_Z1fIiEDTcldtfp_1gIiEEET_": "decltype (({parm#1}.(g<int>))()) f<int>(int)",
    "_Z1fIiEDTgtfp_Li0EET_": "decltype (({parm#1}>(0))) f<int>(int)",
    "_Z1fIJicEEDTfLplLi0Efp_EDpT_": "decltype (((0)+...+{parm#1})) f<int, char>(int, char)",
    "_Z1fIiENSt9enable_ifIXsrSt9is_scalarIT_E5valueEvE4typeES2_":
        "std::enable_if<std::is_scalar<int>::value, void>::type f<int>(int)",
    "_ZTC1A0_1B": "construction vtable for B-in-A",
    "_ZTv0_n24_N1A1fEv": "virtual thunk to A::f()",
    "_ZGVZ3foovE1x": "guard variable for foo()::x",
    "_ZZ3foovEs_0": "foo()::string literal",
    "_ZN12_GLOBAL__N_13fooEv": "(anonymous namespace)::foo()",
    "_Zli2_xy": 'operator"" _x(unsigned long long)',
    "_ZNSsC1ERKSs": "std::basic_string<char, std::char_traits<char>, std::allocator<char> >::basic_string("
                    "std::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)",
    "_Z1fPDwiEFvvE": "f(void (*)() throw(int))",
    "_Z1fDv4_fCdDF16_": "f(float __vector(4), double _Complex, _Float16)",
    "_Z3foov.part.0": "foo() [clone .part.0]",
}
# What c++filt 2.40 prints otherwise: it takes the name of another function, loses a scope, or finds no such component.
BETTER = {
    "_ZZ1fvENUlvE_D1Ev": "f()::{lambda()#1}::~{lambda()#1}()",
    "_ZGR1a_": "reference temporary #0 for a",
    "_Z1fIiEDTnxfp_ET_": "decltype (noexcept({parm#1})) f<int>(int)",
}


@pytest.mark.parametrize(("name", "key"), KEYS.items())
def test_neutral(name: str, key: str) -> None:
    assert neutral(name) == key
    assert neutral(key) == key


@pytest.mark.parametrize("name", OWN)
def test_own_key(name: str) -> None:
    assert neutral(name) == name


@pytest.mark.parametrize(("name", "text"), [*READABLE.items(), *BETTER.items()])
def test_readable(name: str, text: str) -> None:
    assert demangle(name) == text


@pytest.mark.parametrize(("name", "text"), [
    ("_ZN3c104cuda9SetDeviceEi", "c10::cuda::SetDevice"),
    ("_ZNK3c1017SymbolicShapeMeta18init_is_contiguousEv", "c10::SymbolicShapeMeta::init_is_contiguous"),
    ("_ZN2at6native10ldexp_stubE", "at::native::ldexp_stub"),
    ("_ZN3c106detail19maybe_wrap_dim_slowIlEET_S2_S2_b", "long c10::detail::maybe_wrap_dim_slow<long>"),
    ("_ZNKR1a1fEPFvRA2_iE", "a::f"),
    ("_ZN3c106SymIntpLERKS0_", "c10::SymInt::operator+="),
    ("_ZN1aclEi", "a::operator()"),
    ("_Z1fPFivE", "f"),
    ("_ZN1a1fEi.isra.0", "a::f"),
    ("torch_new_name", None),
    ("_Z", None),
])
def test_up_to_the_parameters(name: str, text: str | None) -> None:
    assert function_of(name) == text



@pytest.mark.parametrize(("name", "text"), [
    ("_ZN5tower4baseIN3foo3barMUliE_EE7managerER3AnyRKS4_",             # GCC up to 13
     "tower::base<foo::bar::{lambda(int)#1}>::manager(Any&, Any const&)"),
    ("_ZN5tower4baseIN3foo3barMUliE_EE7managerER3AnyRKS5_",             # since GCC 14: `foo::bar` is counted too
     "tower::base<foo::bar::{lambda(int)#1}>::manager(Any&, Any const&)"),
])
def test_lambda_of_a_data_member(name: str, text: str) -> None:
    assert demangle(name) == text


@pytest.mark.parametrize("name", [*KEYS, *READABLE, *BETTER])
def test_parts_spell_the_name_again(name: str) -> None:
    tree, suffix = parse(name)
    assert f"_Z{emit(tree, old=False)}{suffix}" == name


@pytest.mark.skipif(not shutil.which("c++filt"), reason="needs c++filt of binutils")
def test_as_cxxfilt() -> None:
    names = [*KEYS, *KEYS.values(), *READABLE]
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True, timeout=60)
    theirs = dict(zip(names, done.stdout.splitlines(), strict=True))
    assert {name: demangle(name) for name in names} == theirs


@pytest.mark.parametrize("name", ["", "_Z", "main", "_Z1", "_Z3fo", "_ZN1AE_", "_Z1fS_", "_Z1fT_", "_Z1f1AIT_E", "_ZN",
                                  "_ZNE", "_Z1fv\0", "_ZGVdN4v_Sleef_sqrt", "_Z1f\u0663abc",
                                  "_ZSt", "_ZS", "_ZL", "_ZTh", "_ZUl"])
def test_not_mangled(name: str) -> None:
    assert demangle(name) is None


def test_sequence_numbers() -> None:
    assert [sequence(number) for number in (0, 1, 10, 36, 37, 37 + 36 * 35)] == ["", "0", "9", "Z", "10", "100"]


def doubling() -> str:
    """Each component has the last one twice: 2 ** 60 letters of text."""
    return "_Z1f1AIiiE" + "".join(f"S_IS{sequence(n)}_S{sequence(n)}_E" for n in range(1, 60)) + STRING


HOSTILE = {
    "pointers": f"_Z1f{'P' * 60_000}{STRING}", "templates": f"_Z1f{'1aI' * 3000}{STRING}{'E' * 3000}",
    "components": f"_ZN{'1a' * 5000}E{STRING}", "doubling": doubling(), "megabyte": f"_Z1f{STRING * 20_000}",
    "packs": f"_Z1fIJ{'i' * 5000}EEv{'DpT_' * 3000}{STRING}",
    "nested packs": f"_Z1fIJ{'i' * 2000}EEv{'DpFvDpT_T_E' * 3000}{STRING}",
    "tried twice": f"_Z1fIX{'srN1aIX' * 60}Lb1{'EEE1b' * 10}{STRING}", "length": "_Z999999999x7__cxx11",
    "lambdas": f"_ZN{'UlvE_' * 10_000}E7__cxx11", "locals": f"_Z{'Z1fv' * 10_000}7__cxx11",
    "thunks": f"_ZT{'hn1_T' * 10_000}h7__cxx11",
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_end(name: str) -> None:
    assert demangle(name) is None
    key = neutral(name)
    assert key == name or len(key) < len(name)


def test_a_text_that_doubles_still_has_a_key() -> None:
    assert neutral(doubling()) == doubling().removesuffix(STRING) + "Ss"


def test_a_full_stack_is_no_traceback() -> None:
    name = f"_Z1f{'1aI' * 50}{STRING}{'E' * 50}"

    def deeper(levels: int) -> tuple[str | None, str]:
        return deeper(levels - 1) if levels else (demangle(name), neutral(name))

    used, frame = 0, sys._getframe()    # noqa: SLF001 - how full the stack is
    while frame.f_back is not None:
        used, frame = used + 1, frame.f_back
    assert neutral(name) != name
    assert deeper(sys.getrecursionlimit() - used - 40) == (None, name)


@pytest.mark.parametrize("broken", ["_Z1fNStE", "_Z1fNSsE", "_Z1fNSaE1x", "_ZNSt1xMUlvE_E", "_ZNSsMUlvE_E"])
def test_a_broken_name_leaves_nothing_behind(broken: str) -> None:
    demangle(broken)
    for name, key in KEYS.items():
        assert neutral(name) == key
        tree, suffix = parse(name)
        assert f"_Z{emit(tree, old=False)}{suffix}" == name


def test_names_that_are_not_utf8() -> None:
    assert neutral(f"_Z3\udcff\udcfe\udc80{STRING}") == "_Z3\udcff\udcfe\udc80Ss"


def test_broken_names_are_refused_and_nothing_else() -> None:
    seed = random.randrange(2**32)  # noqa: S311 - nothing secret
    chance = random.Random(seed)    # noqa: S311 - nothing secret
    names = [*KEYS, *READABLE, *BETTER]
    letters = "".join(names)
    print("seed", seed)  # noqa: T201 - pytest shows it where this fails
    for _ in range(4000):
        one, other = chance.choice(names), chance.choice(names)
        start, end = sorted(chance.randrange(2, len(one) + 1) for _ in range(2))
        put = chance.choice([other[2:], chance.choice(letters), other[2:5] * 9, ""])
        name = one[:start] + put + one[end:]
        text = demangle(name)
        assert text is None or text
        assert neutral(name).startswith("_Z")
        try:
            tree, _ = parse(name)
        except NotMangledError:
            continue
        assert emit(tree, old=False)
