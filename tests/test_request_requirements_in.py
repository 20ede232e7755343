"""requirements.in, read as pip reads it: pip's own reader is the oracle."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pip._internal.req.req_file import parse_requirements

from stackfix.errors import BadInput
from stackfix.request import requirements_in as module
from stackfix.request.requirements_in import IndexOptions, RequirementsInput, read_requirements
from stackfix.resolve.records import Requirement

if TYPE_CHECKING:
    from pip._internal.network.session import PipSession

DIGEST = "0a" * 32
Files = Mapping[str, str]


def write(folder: Path, files: Files) -> Path:
    """The files below `folder`; the first is the one to read."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return folder / next(iter(files))


def read(folder: Path, files: Files, environ: Mapping[str, str] | None = None) -> RequirementsInput:
    return read_requirements(write(folder, files), environ or {})


def refused(folder: Path, files: Files, environ: Mapping[str, str] | None = None) -> BadInput:
    with pytest.raises(BadInput) as caught:
        read(folder, files, environ)
    return caught.value


def by_pip(path: Path) -> list[tuple[str, bool, tuple[str, ...], int]]:
    """(requirement, constraint, sha256, line) as pip's own reader says."""
    found = []
    for parsed in parse_requirements(str(path), session=cast("PipSession", None)):
        hashes = (parsed.options or {}).get("hashes", {}).get("sha256", [])
        line = int(parsed.comes_from.rpartition("(line ")[2].rstrip(")"))
        found.append((parsed.requirement.strip(), parsed.constraint, tuple(sorted(set(hashes))), line))
    return found


def by_us(path: Path, environ: Mapping[str, str] | None = None) -> list[tuple[str, bool, tuple[str, ...], int]]:
    return [(requirement.text, requirement.constraint, requirement.hashes,
             int(requirement.origin.rpartition(" line ")[2]))
            for requirement in read_requirements(path, environ or {}).requirements]


CASES: Mapping[str, Files] = {
    "plain": {"r.in": "torch\ntransformers>=4.40\n"},
    "comments": {"r.in": "# all\n\n   # indented\ntorch # why\ntransformers>=4.40  #\tmaybe\n"},
    "continued": {"r.in": "torch \\\n  >=2.3, \\\n  <2.5\nnumpy\n"},
    "continued by a comment": {"r.in": "torch \\\n# ends it\nnumpy\n"},
    "continued at the end": {"r.in": "torch>=2 \\"},
    "windows": {"r.in": "torch\r\nnumpy>=1 \\\r\n  ,<2\r\n"},
    "byte order mark": {"r.in": "\ufefftorch\n"},
    "markers": {"r.in": "tomli; python_version < '3.11'\nuvloop ; sys_platform != \"win32\"\n"},
    "extras": {"r.in": "jax[cuda12]==0.4.33\nuvicorn[standard , other]>=0.2\n"},
    "hashes": {"r.in": f"a==1 --hash=sha256:{DIGEST} \\\n    --hash sha256:{'1b' * 32}\nb==2\n"},
    "nested": {"r.in": "a\n-r sub/b.in\n-c c.txt\nz\n", "sub/b.in": "b\n-r ../d.in\n", "d.in": "d\n",
               "c.txt": "numpy<2\n"},
    "nested, other spellings": {"r.in": "-rb.in\n--requirement=b2.in\n--requirement b3.in\n"
                                        "--constraint=c.txt\n-cc2.txt\n",
                                "b.in": "b", "b2.in": "b2", "b3.in": "b3", "c.txt": "c<1", "c2.txt": "d<1"},
    "a file within a constraint file": {"r.in": "-c c.txt\n", "c.txt": "a<2\n-r b.in\n", "b.in": "b\n"},
    "the same file twice": {"r.in": "-r b.in\na\n-r b.in\n", "b.in": "\n"},
    "quoted name": {"r.in": "-r 'with space.in'\n", "with space.in": "b\n"},
    "index settings": {"r.in": "--index-url https://a/simple\n--extra-index-url https://b/simple\na\n"},
    "index settings on one line": {"r.in": "-i https://a/simple --extra-index-url=https://b/simple\na\n"},
    "addresses": {"r.in": "x @ https://h/x-1-py3-none-any.whl\n"
                          "y[a]@ https://h/y.whl#sha256=0 ; python_version > '3'\n"},
    "empty": {"r.in": ""},
    "hashes required": {"r.in": "--require-hashes\na==1\n"},
    "spaces": {"r.in": "  torch  \n\ttransformers\t\n"},
    "old spellings": {"r.in": "Django (>=3)\nzope.interface\n"},
}


@pytest.mark.parametrize("name", CASES)
def test_it_reads_what_pip_reads(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, CASES[name])
    assert by_us(path) == by_pip(path)


def test_variables_are_replaced_as_pip_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, {"r.in": "${NAME}>=${MIN_1}\nx # ${UNSET}\n"})
    monkeypatch.setenv("NAME", "torch")
    monkeypatch.setenv("MIN_1", "2.3")
    assert by_us(path, os.environ) == by_pip(path) == [("torch>=2.3", False, (), 1), ("x", False, (), 2)]


PIECES = st.sampled_from(["a", "b>=1", "c[x]", " ", "\\", "\n", "\n\n", "#", " # c", "\t", "d ; python_version<'4'",
                          "-c c.txt", "-r b.in", "--require-hashes", f" --hash=sha256:{DIGEST}", "\r\n", ",<3"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=10).map("".join))
def test_what_we_read_of_any_file_is_what_pip_reads(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, {"r.in": text, "b.in": "b\n", "c.txt": "c<9\n"})
    try:
        ours = by_us(path)
    except BadInput:
        return          # we may refuse more than pip, and never read something else
    assert ours == list(dict.fromkeys(by_pip(path)))


@given(st.text())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_text_breaks_the_reader(tmp_path: Path, text: str) -> None:
    named = "r.in"
    try:
        read(tmp_path, {"r.in": text.encode("utf-8", "replace").decode()})
    except BadInput as fault:
        named = fault.thing
    assert "r.in" in named


def test_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"r.in": f"\ntorch==2.3.1 --hash=sha256:{DIGEST}\n-c sub/c.txt\n", "sub/c.txt": "numpy<2\n"})
    monkeypatch.chdir(tmp_path)
    found = read_requirements(Path("./r.in"), {})
    assert found.requirements == (
        Requirement(text="torch==2.3.1", origin="r.in line 2", hashes=(DIGEST,)),
        Requirement(text="numpy<2", origin="sub/c.txt line 1", constraint=True),
    )
    assert found.files == (tmp_path / "r.in", tmp_path / "sub" / "c.txt")
    assert found.index == IndexOptions()


def test_a_file_given_as_constraint(tmp_path: Path) -> None:
    path = write(tmp_path, {"c.txt": "numpy<2\n"})
    assert [r.constraint for r in read_requirements(path, {}, constraint=True).requirements] == [True]


def test_index_settings(tmp_path: Path) -> None:
    found = read(tmp_path, {
        "r.in": "-i https://a/simple\n-r b.in\n--extra-index-url https://${TOKEN}@c/simple\n",
        "b.in": "--extra-index-url https://b/simple\n--index-url=https://last/simple\n",
    }, {"TOKEN": "secret"})
    assert found.index == IndexOptions(
        index_url="https://last/simple", extra_index_urls=("https://b/simple", "https://secret@c/simple"))


def test_index_settings_of_two_files() -> None:
    first = IndexOptions(extra_index_urls=("x",))
    then = first.then(IndexOptions(index_url="a", extra_index_urls=("y", "x"))).then(IndexOptions(index_url="b"))
    assert then == IndexOptions(index_url="a", extra_index_urls=("x", "y"))


@pytest.mark.parametrize(
    ("line", "reason", "hint"),
    [
        ("-e .", "-e is not honoured", "editable"),
        ("--editable=git+https://x", "--editable is not honoured", "editable"),
        ("--find-links /opt", "--find-links is not honoured", "links"),
        ("-f /opt", "-f is not honoured", "links"),
        ("--pre", "--pre is not honoured", "pre-release in the specifier"),
        ("--no-binary :all:", "--no-binary is not honoured", "wheels"),
        ("--only-binary=:all:", "--only-binary is not honoured", "wheels"),
        ("--trusted-host h", "--trusted-host is not honoured", "certificate"),
        ("--no-index", "--no-index is not honoured", "index"),
        ("--use-feature=x", "--use-feature is not honoured", "take it out"),
        ("-x", "-x is not honoured", "take it out"),
        ("--requirement", "--requirement is given no value", ""),
        ("-c a.txt -r b.txt", "includes a file among other options", "a line of its own"),
        ("-r", "-r is given no value", ""),
        ("--index-url=", "--index-url is given no value", ""),
        ("-r https://x/r.txt", "-r names an address", "download"),
        ("-r 'x", "cannot be split into words: No closing quotation", ""),
        ("torch --global-option=x", "--global-option is not honoured after a requirement", "take it out"),
        ("torch==1 --hash=md5:00", "a md5 hash cannot be compared", "sha256"),
        ("torch==1 --hash=sha256:00", "is not a hash: 'sha256:00'", "64 hex"),
        ("torch==1 --hash", "is not a hash", "64 hex"),
        ("./local", "a path or an address", "name==version"),
        ("/abs/x.whl", "a path or an address", "name==version"),
        ("x-1-py3-none-any.whl", "a path or an address", "name==version"),
        ("https://h/x.whl", "a path or an address", "name==version"),
        ("git+https://h/x", "a path or an address", "name==version"),
        ("torch = 2", "is not a requirement", "name>=1.0"),
        ("torch>=2.x.y", "is not a requirement", "name>=1.0"),
        ("tor ch", "is not a requirement", "name>=1.0"),
        ("torch; nonsense == 1", "is not a requirement", "name>=1.0"),
        ("torch>=${MIN}", "the environment variable MIN is not set", "set MIN"),
        ("-r missing.in", "no such file", ""),
        ("-r .", "is not a regular file", ""),
        ("-r r.in", "includes itself", "take one"),
        ("torch\0", "is not a requirement", ""),
    ],
)
def test_what_is_not_honoured_is_refused_by_file_and_line(tmp_path: Path, line: str, reason: str, hint: str) -> None:
    fault = refused(tmp_path, {"r.in": f"a\n{line}\nz\n"})
    assert "r.in line 2" in fault.thing
    assert reason in fault.reason
    assert hint in (fault.hint or "")


def test_the_way_to_a_nested_fault_is_told(tmp_path: Path) -> None:
    assert refused(tmp_path, {"r.in": "-r b.in\n", "b.in": "a\nb = 1\n"}).thing.endswith("b.in line 2")
    assert "b.in line 1: " in refused(tmp_path, {"r.in": "-r b.in\n", "b.in": "-r gone.in\n"}).thing
    loop = refused(tmp_path, {"r.in": "-r b.in\n", "b.in": "\n-c r.in\n"})
    assert loop.reason == "includes itself"
    assert "b.in line 2" in loop.thing


def test_an_address_takes_the_hash_of_its_line(tmp_path: Path) -> None:
    found = read(tmp_path, {"r.in": f"""
        x @ https://h/x-1-py3-none-any.whl --hash=sha256:{DIGEST}
        y[a] @ https://h/y-1-py3-none-any.whl#sha256={DIGEST} ; python_version > '3'
        z @ https://h/z-1-py3-none-any.whl ; python_version > '3' \\
            --hash=sha256:{DIGEST}
    """})
    assert [requirement.text for requirement in found.requirements] == [
        f"x @ https://h/x-1-py3-none-any.whl#sha256={DIGEST}",
        f"y[a] @ https://h/y-1-py3-none-any.whl#sha256={DIGEST} ; python_version > '3'",
        f"z @ https://h/z-1-py3-none-any.whl#sha256={DIGEST} ; python_version > '3'",
    ]


def test_a_constraint_has_no_extras(tmp_path: Path) -> None:
    fault = refused(tmp_path, {"r.in": "-c c.txt\n", "c.txt": "jax[cuda12]<1\n"})
    assert fault.reason == "a constraint cannot have extras: jax[cuda12]"
    assert fault.hint == "write `jax<1`"


def test_a_fault_does_not_show_what_a_variable_holds(tmp_path: Path) -> None:
    for line in ("${TOKEN} x", "x @ https://${TOKEN}@h/x.whl y", "https://${TOKEN}@h/x.whl", "-r https://${TOKEN}@h/"):
        fault = refused(tmp_path, {"r.in": f"{line}\n"}, {"TOKEN": "hunter2"})
        if line != "${TOKEN} x":
            assert "hunter2" not in f"{fault} {fault.hint}"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert refused(tmp_path, {"r.in": "-r b.in"}).reason == "no such file"
    (tmp_path / "latin").write_bytes(b"a\nb\n# caf\xe9\n")
    fault = refused(tmp_path, {"r.in": "-r latin\n"})
    assert "r.in line 1: " in fault.thing
    assert fault.thing.endswith("latin line 3")
    assert fault.reason == "is not UTF-8 text"
    with (tmp_path / "huge").open("wb") as stream:
        os.truncate(stream.fileno(), module.LARGEST + 1)
    assert refused(tmp_path, {"r.in": "-r huge\n"}).reason == "is larger than 4 MB: no requirements file is"
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path, {"r.in": "-r pipe\n"}).reason == "is not a regular file"


def test_files_that_include_each_other_without_end(tmp_path: Path) -> None:
    """Each file names the next twice: 2^30 readings without a limit."""
    files = {f"{n}.in": f"-r {n + 1}.in\n-r {n + 1}.in\n" for n in range(30)}
    fault = refused(tmp_path, {**files, "30.in": "a\n"})
    assert "more than 200 requirement files" in fault.reason
