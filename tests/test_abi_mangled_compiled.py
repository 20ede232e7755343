"""Keys against g++: the names of one source, compiled with either std::string, have the same keys."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from stackfix.abi.mangled import demangle, neutral
from stackfix.abi.mangled_emit import emit
from stackfix.abi.mangled_parse import parse

pytestmark = pytest.mark.skipif(not shutil.which("g++") or not shutil.which("nm"),
                                reason="g++ compiles the names, nm lists them")

INCLUDES = "".join(f"#include <{name}>\n" for name in (
    "filesystem", "functional", "list", "locale", "map", "optional", "regex", "sstream", "string", "tuple", "vector"))
SOURCE = INCLUDES + """
namespace own { namespace deep {
typedef std::string S; typedef std::list<int> L;
template <class... T> struct Box {
    int field; static S shared;
    Box() {} Box(const S&) {} ~Box() {}
    S name() const { return {}; }
    operator S() const { return {}; }
    template <class U> operator U*() const { return 0; }
    template <class U> U get(const S&, T..., U u) { return u; }
    struct Inner { S in(Inner, S) { return {}; } };
};
template <class... T> S Box<T...>::shared;
template struct Box<>; template struct Box<int>; template struct Box<S>; template struct Box<S, L, Box<S>>;
template S Box<S>::get<S>(const S&, S, S); template int Box<int>::get<int>(const S&, int, int);
template Box<S>::operator L*() const; template Box<int>::operator S*() const;
template <template <class, class> class C> struct Of {
    C<S, std::allocator<S>> f(C<int, std::allocator<int>>) { throw 0; }
};
template struct Of<std::list>; template struct Of<std::vector>;
S both(S s) { return s; }
S returned(int) { return {}; }
L returned_list() { return {}; }
std::wstring wide(std::wstring, std::u16string, const std::u32string&) { throw 0; }
void streams(std::ostringstream&, std::stringstream*, std::istringstream&&, std::stringbuf&, std::ostream&) {}
void plain_streams(std::istream&, std::iostream*, std::ios&, std::filebuf&, std::fstream&) {}
std::optional<S> maybe(std::optional<S>, std::vector<std::optional<S>>) { throw 0; }
void called(std::function<S(S, L)>, S (*)(S), S (*(*)(int))(const S&), S (*)(), L (&)()) {}
void members(S Box<int>::*, S (Box<int>::*)() const, void (Box<int, S>::*)(S), void (Box<S>::*)(L) volatile) {}
void arrays(S (&)[3], const S* const* volatile&, S (*(&)[2])[4]) {}
void patterns(const std::regex&, std::smatch&, std::ssub_match, std::regex_traits<char>) {}
void files(std::filesystem::path, const std::filesystem::directory_entry&) {}
void facets(std::numpunct<char>*, std::collate<char>*, std::messages<char>*, std::moneypunct<char, true>*,
            std::time_get<char>*, std::money_get<char>*, std::money_put<wchar_t>*) {}
std::ostream& operator<<(std::ostream& out, const Box<S>&) { return out; }
S operator+(Box<S>, Box<int>) { return {}; }
S operator""_s(const char*, unsigned long) { return {}; }
template <class T> S text(T, S) { return {}; }
template S text(int, S); template S text(S, S); template S text(std::list<S>, S);
template <class T> auto sum(T a, S b) -> decltype(a + b) { return a + b; }
template S sum(S, S); template S sum(const char*, S);
template <class T, class = std::enable_if_t<std::is_same<T, S>::value>> void only(T) {}
template void only(S);
template <class... T> void pack(T..., S, std::tuple<T...>, S (*... calls)(T)) {}
template void pack<S, int>(S, int, S, std::tuple<S, int>, S (*)(S), S (*)(int));
template <S (*F)(S)> S with() { return {}; }
template S with<&both>();
S global; L global_list; thread_local S of_thread;
template <S& R> void with_reference() {}
template void with_reference<global>();
template <class T> T variable = T();
S* use() { return &variable<S>; }
L* use_list() { return &variable<L>; }
S* use_thread() { return &of_thread; }
struct Failed : std::ios_base::failure { Failed(); ~Failed(); virtual S what(std::list<S>); };
Failed::Failed() : std::ios_base::failure("x") {} Failed::~Failed() {} S Failed::what(std::list<S>) { return {}; }
struct A { virtual ~A(); virtual S a(); }; struct B { virtual ~B(); virtual L b(S); };
struct C : A, virtual B { S a() override; L b(S) override; };
A::~A() {} B::~B() {} S A::a() { return {}; } L B::b(S) { return {}; } S C::a() { return {}; } L C::b(S) { return {}; }
C made;
inline S nested(S s) {
    static S kept;
    auto lambda = [&](S q, auto z) { static S inner; return q + s + kept + inner; };
    struct Local { S m(S x) { static S y; return x + y; } };
    return lambda(s, 1) + Local().m(s);
}
inline L nested_list() { auto lambda = [](L q) { static L r; return r; }; return lambda({}); }
struct Initialised { std::function<S(S)> call = [](S s) { static S seen; return s + seen; }; };
inline auto initialised = [](S s) { static L seen; return s; };
S run() { Initialised i; return i.call(nested("x")) + initialised("x") + std::to_string(nested_list().size()); }
}}
"""
OWN = re.compile(r"3own4deep")


def names(source: Path, abi: int) -> set[str]:
    """C++ names in the object file that g++ makes of the source."""
    made = source.with_suffix(f".{abi}.o")
    subprocess.run(["g++", "-std=c++17", "-O0", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", "-c", "-o", str(made),
                    str(source)], check=True, timeout=300, capture_output=True)
    listed = subprocess.run(["nm", "--no-demangle", str(made)], check=True, timeout=60, capture_output=True, text=True)
    return {line.split()[-1] for line in listed.stdout.splitlines() if " _Z" in line}


def assert_one_to_one(old: set[str], new: set[str]) -> None:
    """Names of our own namespace; what libstdc++ brings along has other members in either ABI."""
    ours = {name for name in new if OWN.search(name)}
    keys = {neutral(name): name for name in ours}
    assert len(keys) == len(ours)
    assert set(keys) == {name for name in old if OWN.search(name)}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], set[str]]:
    source = tmp_path_factory.mktemp("names") / "names.cpp"
    source.write_text(SOURCE, encoding="utf-8")
    return names(source, 0), names(source, 1)


def test_keys_are_the_names_of_the_other_compiler_flag(compiled: tuple[set[str], set[str]]) -> None:
    old, new = compiled
    assert sum(neutral(name) != name for name in new if OWN.search(name)) > 100
    assert_one_to_one(old, new)


def test_old_names_are_their_own_keys(compiled: tuple[set[str], set[str]]) -> None:
    assert all(neutral(name) == name for name in compiled[0])


def test_every_name_is_parsed_and_spelled_again(compiled: tuple[set[str], set[str]]) -> None:
    for name in compiled[0] | compiled[1]:
        tree, suffix = parse(name)
        assert f"_Z{emit(tree, old=False)}{suffix}" == name


@pytest.mark.skipif(not shutil.which("c++filt"), reason="needs c++filt of binutils")
def test_every_name_reads_as_cxxfilt_has_it(compiled: tuple[set[str], set[str]]) -> None:
    # For lambdas in an initialiser, `MUl`, c++filt counts one component more than g++ 12 and prints other types.
    listed = sorted(name for name in compiled[0] | compiled[1] if "MUl" not in name)
    done = subprocess.run(["c++filt"], input="\n".join(listed), capture_output=True, text=True, check=True, timeout=60)
    other = {name: text for name, text in zip(listed, done.stdout.splitlines(), strict=True) if demangle(name) != text}
    assert other == {}


LEAVES = st.sampled_from(["int", "char const*", "S", "std::wstring", "L", "std::ostringstream*",
                          "std::filesystem::path", "Plain", "Box<>", "Plain::In", "std::ostream*", "std::pair<S, S>"])


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Types made of others."""
    one = ["std::vector<{}>", "std::list<{}>", "std::optional<{}>", "{}*", "{} const*", "Box<{}>", "std::map<S, {}>",
           "Box<{}>::Inner*", "Array<{}>*"]
    two = ["std::pair<{}, {}>", "Function<{}, {}>", "Member<{}, {}>", "std::function<{}({})>*", "Box<{}, {}>",
           "std::tuple<{}, int, {}>"]
    return (st.builds(str.format, st.sampled_from(one), inner)
            | st.builds(str.format, st.sampled_from(two), inner, inner))


TYPES = st.recursive(LEAVES, compound, max_leaves=5)
PASSED = st.sampled_from(["{}", "{} const&", "{}&&", "{} const* const&"])
PARAMETERS = st.lists(st.builds(str.format, PASSED, TYPES), max_size=4)
FUNCTION, TEMPLATE = "{0} f{2}({1}) {{ throw 0; }}", """
template <class T> {0} t{2}(T, Type<{0}>*, Type<T>*) {{ throw 0; }}
template {0} t{2}<{0}>({0}, Type<{0}>*, Type<{0}>*);"""
PACK = """
template <class... T> {0} p{2}(Box<T...>*, T*...) {{ throw 0; }}
template {0} p{2}<{0}, S>(Box<{0}, S>*, {0}*, S*);"""
MEMBERS = """
struct S{2} {{ {0} m({1}) const; static {0} s({1}); operator {0}(); }};
{0} S{2}::m({1}) const {{ throw 0; }}
{0} S{2}::s({1}) {{ throw 0; }}
S{2}::operator {0}() {{ throw 0; }}"""
LAMBDA = """
inline {0}* l{2}({1}) {{
    auto lambda = [](S, auto x) {{ static S kept; static {0}* p; return p; }};
    return lambda({{}}, 1);
}}
void* u{2} = (void*)&l{2};"""
KINDS = st.sampled_from([FUNCTION, TEMPLATE, PACK, MEMBERS, LAMBDA])
DECLARATIONS = st.lists(st.tuples(KINDS, TYPES, PARAMETERS), min_size=20, max_size=40)
FRAME = INCLUDES.replace("#include <regex>\n", "") + """
namespace own {{ namespace deep {{
typedef std::string S; typedef std::list<int> L;
struct Plain {{ struct In {{}}; }};
template <class... T> struct Box {{ struct Inner {{}}; }};
template <class T> struct Type {{}};
template <class R, class A> using Function = R (*)(A);
template <class R, class A> using Member = R (Plain::*)(A) const;
template <class T> using Array = T[3];
{}
}}}}
"""


# No shrinking: a try costs seconds, and what differs is in the message.
@settings(max_examples=2, deadline=None, database=None, phases=[Phase.generate],
          suppress_health_check=list(HealthCheck))
@given(declarations=DECLARATIONS)
def test_keys_of_any_declarations(
        tmp_path_factory: pytest.TempPathFactory, declarations: list[tuple[str, str, list[str]]]) -> None:
    source = tmp_path_factory.mktemp("any") / "any.cpp"
    lines = (kind.format(returned, ", ".join(parameters), number)
             for number, (kind, returned, parameters) in enumerate(declarations))
    source.write_text(FRAME.format("\n".join(lines)), encoding="utf-8")
    assert_one_to_one(names(source, 0), names(source, 1))
