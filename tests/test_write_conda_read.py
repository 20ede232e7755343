"""Conda lockfiles read back: what was written, what other tools write, and what nobody should trust."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from stackfix.conda.records import CondaRecord, CondaTarget
from stackfix.errors import BadInput
from stackfix.resolve.records import LockedPackage
from stackfix.write.conda_files import CONDA_FORMATS, plan_conda
from stackfix.write.conda_read import parse_conda_file, read_conda_file, read_kept_conda
from stackfix.write.records import CondaPin, PipPin
from tests.conda_samples import ARM, COMMAND, SNAPSHOT, X86, pip_part, record, records, target
from tests.judges.conda_lock import part
from tests.lock_samples import PYTHON

OTHER = replace(X86, python="3.9")
A = "https://channels.example/conda-forge/linux-64/a-1.0-0.conda"
MD5, SHA = "0" * 32, "1" * 64


def texts(*targets: CondaTarget, formats: tuple[str, ...] = CONDA_FORMATS) -> dict[str, str]:
    return {file.path: file.text
            for file in plan_conda(targets, formats=formats, name=None, command=COMMAND)}


def pin_of(one: CondaRecord, platform: str, kind: str) -> CondaPin:
    """What a file of this kind says of the record."""
    whole = CondaPin(
        name=one.name, version=one.version, build=one.build, platform=platform, subdir=one.subdir, channel=one.channel,
        file_name=one.file_name, url=one.url, md5=one.md5, sha256=one.sha256, depends=one.depends,
        constrains=one.constrains, build_number=one.build_number, noarch=one.noarch, size=one.size,
        timestamp=one.timestamp, license=one.license, license_family=one.license_family, features=one.features,
        track_features=one.track_features, python_site_packages_path=one.python_site_packages_path)
    if kind == "pixi":
        return whole
    told = CondaPin(
        name=one.name, version=one.version, build=one.build, platform=platform, subdir=one.subdir, channel=one.channel,
        file_name=one.file_name, url=one.url, md5=one.md5, sha256=one.sha256, noarch=one.noarch,
        build_number=one.build_number)
    if kind == "explicit":
        return replace(told, sha256=None)
    name = "pytorch" if "pytorch" in one.channel else "conda-forge"
    return replace(told, subdir=None, channel=name, file_name=None, url=None, md5=None, sha256=None, noarch=None,
                   build_number=0)


def pip_pin_of(one: LockedPackage, platform: str, kind: str) -> PipPin:
    """The same of a package of pip."""
    url = one.files[0].url.replace("+", "%2B")
    requires = tuple(sorted(set(one.requires) - {one.name}))
    whole = PipPin(name=one.name, version=one.version, platform=platform, url=url, sha256=one.files[0].sha256,
                   requires=requires)
    if kind in {"pixi", "conda-lock"}:
        return whole
    if kind == "explicit":
        return replace(whole, version=None, requires=())
    return replace(whole, requires=(), extras=tuple(sorted(one.extras)), version=None if one.direct else one.version,
                   url=url if one.direct else None)


@pytest.mark.parametrize("kind", ["explicit", "pixi", "environment"])
def test_what_was_written_is_read(kind: str) -> None:
    (text,) = texts(target(snapshot=SNAPSHOT), formats=(kind,)).values()
    file = parse_conda_file(text, "it")
    assert (file.kind, file.ours, file.targets, file.glibc) == (kind, True, ((PYTHON, "linux-64"),), "2.28")
    (environment,) = file.environments
    assert (environment.platform, environment.python, environment.name) == ("linux-64", PYTHON, "default")
    assert environment.conda == tuple(pin_of(one, "linux-64", kind) for one in records())
    assert environment.pip == tuple(pip_pin_of(one, "linux-64", kind) for one in pip_part())


def test_conda_lock_is_read_with_its_dependencies() -> None:
    (text,) = texts(target(), target(where=ARM), formats=("conda-lock",)).values()
    file = parse_conda_file(text, "it")
    assert file.targets == ((PYTHON, "linux-64"), (PYTHON, "linux-aarch64"))
    for environment in file.environments:
        assert environment.channels == ("pytorch", "conda-forge")
        for pin, one in zip(environment.conda, records(environment.platform), strict=True):
            assert replace(pin, depends=(), noarch=None) == replace(
                pin_of(one, environment.platform, "explicit"), sha256=one.sha256, noarch=None)
            assert {line.partition(" ")[0] for line in pin.depends} == {line.partition(" ")[0] for line in one.depends}
        assert environment.pip == tuple(pip_pin_of(one, environment.platform, "conda-lock") for one in pip_part())
    numpy = next(pin for pin in file.environments[0].conda if pin.name == "numpy")
    assert "libblas >=3.9.0,<4.0a0 *mkl" in numpy.depends
    assert "__cuda" in numpy.depends


def test_pixi_is_read_with_each_python() -> None:
    (text,) = texts(target(), target(where=OTHER), target(where=ARM), formats=("pixi",)).values()
    read = {(one.name, one.platform): one for one in parse_conda_file(text, "it").environments}
    tag = f"cp{PYTHON.replace('.', '')}"
    assert set(read) == {(tag, "linux-64"), (tag, "linux-aarch64"), ("cp39", "linux-64")}


def test_the_second_step_is_read_from_the_header() -> None:
    later = (replace(pip_part()[0], step=2),)
    for kind in CONDA_FORMATS:
        files = texts(target(pip=later), formats=(kind,))
        text = next(text for path, text in files.items() if not path.startswith("requirements"))
        assert parse_conda_file(text, "it").second_steps == ("requirements-flash-attn.txt",)
        wrong = text.replace("# second step: requirements-flash-attn.txt", "# second step: ../../etc/passwd")
        assert parse_conda_file(wrong, "it").second_steps == ()


def test_what_conda_lock_itself_writes_is_read(tmp_path: Path) -> None:
    (ours,) = texts(target(), formats=("conda-lock",)).values()
    path = tmp_path / "conda-lock.yml"
    path.write_text(ours, encoding="utf-8")
    lockfile = part("lockfile")
    lockfile.write_conda_lock_file(lockfile.parse_conda_lock_file(path), path, metadata_choices=None)
    assert path.read_text(encoding="utf-8") != ours
    theirs = read_conda_file(path)
    assert (theirs.ours, theirs.targets, theirs.second_steps) == (False, (), ())
    assert theirs.environments == parse_conda_file(ours, "it").environments


def conda_lock_of(*packages: str) -> str:
    return ("version: 1\nmetadata:\n  content_hash: {}\n  channels: [{url: c, used_env_vars: []}]\n"
            "  platforms: [linux-64]\n  sources: []\npackage:\n" + "\n".join(packages) + "\n")


def entry(**changes: str | None) -> str:
    fields: dict[str, str | None] = {
        "name": "a", "version": "'1.0'", "manager": "conda", "platform": "linux-64", "dependencies": "{b: '>=1'}",
        "url": A, "hash": f"{{md5: '{MD5}', sha256: '{SHA}'}}", "category": "main", "optional": "false", **changes}
    lines = [f"{key}: {value}" for key, value in fields.items() if value is not None]
    return "- " + "\n  ".join(lines)


def test_a_package_of_several_categories_is_one() -> None:
    (environment,) = parse_conda_file(conda_lock_of(entry(category="dev"), entry()), "it").environments
    assert [(pin.name, pin.category) for pin in environment.conda] == [("a", "main")]
    (environment,) = parse_conda_file(conda_lock_of(entry(), entry(category="dev")), "it").environments
    assert [(pin.name, pin.category) for pin in environment.conda] == [("a", "main")]


@pytest.mark.parametrize(("packages", "line", "reason"), [
    ((entry(version="'2.0'"),), 8, "is a 2.0, but its address is of a-1.0-0.conda"),
    ((entry(name="b"),), 8, "is b 1.0, but its address is of a-1.0-0.conda"),
    ((entry(hash="{sha256: '" + SHA + "'}"),), 14, "has no md5"),
    ((entry(hash="{md5: abc}"),), 14, "abc is no md5"),
    ((entry(hash=f"{{md5: '{MD5}', sha256: xyz}}"),), 14, "xyz is no sha256"),
    ((entry(url=A.replace("linux-64", "linux-aarch64")),), 13, "its address is of linux-aarch64"),
    ((entry(url="https://channels.example/x/../linux-64/a-1.0-0.conda"),), 13, "no address of a conda package"),
    ((entry(url="https://channels.example/x/%2e%2e/linux-64/a-1.0-0.conda"),), 13, "no address of a conda package"),
    ((entry(url="https://channels.example/linux-64/..%2Fa-1.0-0.conda"),), 13, "no address of a conda package"),
    ((entry(url="ftp://channels.example/c/linux-64/a-1.0-0.conda"),), 13, "no address of a conda package"),
    ((entry(url="/c/linux-64/a-1.0-0.conda"),), 13, "no address of a conda package"),
    ((entry(url=f"{A}?x=y"),), 13, "no address of a conda package"),
    ((entry(url="'https://[/c/linux-64/a-1.0-0.conda'"),), 13, "is no address"),
    ((entry(url="https://u:hunter2@h.example/linux-64/a.zip"),), 13, "no address of a conda package"),
    ((entry(manager="npm"),), 10, "no such manager as npm"),
    ((entry(platform="linux-aarch64", url=A.replace("linux-64", "noarch")),), 8, "which the file does not name"),
    ((entry(platform="../x"),), 11, "is no platform"),
    ((entry(dependencies="[b]"),), 12, "dependencies is no mapping"),
    ((entry(dependencies="{'../b': x}"),), 12, "is no name of a package"),
    ((entry(), entry(url=A.replace("-0.conda", "-1.conda"))), 17, "a stands twice for linux-64"),
    ((entry(), entry()), 17, "a stands twice for linux-64"),
    ((entry(url=None),), 8, "has no url"),
    ((entry(name="[a]"),), 8, "name is no text"),
    (("- a",), 8, "a package is no mapping"),
    ((entry(manager="pip", name="../../x", url="https://f.example/x.whl"),), 8, "is no name of a package"),
    ((entry(manager="pip", url="'https://f.example/x y.whl'"),), 13, "is no address of a file"),
    ((entry(manager="pip", url="https://f.example/${HF_TOKEN}/x.whl"),), 13, "a variable of the environment"),
    ((entry(manager="pip", url="git+ssh://f.example/x"),), 13, "is no address of a file"),
])
def test_a_conda_lock_that_nobody_should_trust_is_one_error_about_its_line(
    packages: tuple[str, ...], line: int, reason: str,
) -> None:
    with pytest.raises(BadInput) as refused:
        parse_conda_file(conda_lock_of(*packages), "train/conda-lock.yml")
    assert refused.value.thing == f"train/conda-lock.yml line {line}"
    assert reason in refused.value.reason
    assert "hunter2" not in refused.value.what()
    assert "stackfix lock" in (refused.value.next_step() or "")


@pytest.mark.parametrize(("text", "reason"), [
    ("", "is no conda-lock.yml, pixi.lock, explicit file or environment.yml"),
    ("numpy==1.26.4\n", "is no conda-lock.yml, pixi.lock, explicit file or environment.yml"),
    (conda_lock_of().replace("version: 1", "version: 2"), "conda-lock's format 2 is not known here"),
    (conda_lock_of("  x: y"), "package is no list"),
    ("version: 7\nenvironments: {}\npackages: 1\n", "packages is no list"),
    ("version: 5\nenvironments: {}\npackages: []\n", "pixi.lock of version 5 is not known here"),
    ("dependencies:\n- numpy\n", "numpy is no pin of version and build"),
    ("dependencies:\n- numpy=1.26\n", "is no pin of version and build"),
    ("dependencies:\n- pip:\n  - numpy\n", "numpy is no pin"),
    ("dependencies:\n- npm:\n  - left-pad\n", "no such section as npm"),
    ("dependencies:\n- a=1=0\n- b=1=0\n- a=2=0\n", "a stands twice"),
    ("@EXPLICIT\n", "does not say its platform"),
    (f"@EXPLICIT\n{A}#nonsense\n", "nonsense is no md5"),
    (f"@EXPLICIT\n{A}#{MD5}\n{A}#{MD5}\n", "a stands twice"),
    (f"# platform: linux-aarch64\n@EXPLICIT\n{A}#{MD5}\n", "is for linux-64, the file for linux-aarch64"),
    (f"@EXPLICIT\n{A}#{MD5}\nnumpy\n", "numpy is no address of a conda package"),
    (f"@EXPLICIT\n{A}\n# pip x @ https://f.example/x.whl#sha256=abc\n", "abc is no sha256"),
    (f"@EXPLICIT\n{A}\n# pip x @ https://f.example/${{T}}/x.whl#sha256={SHA}\n", "a variable of the environment"),
    (f"dependencies:\n- pip:\n  - x @ https://f.example/${{T}}/x.whl#sha256={SHA}\n", "a variable of the environment"),
    (f"@EXPLICIT\n{A}\n# pip x @ file.whl\n", "is no address of a file"),
])
def test_other_files_that_are_no_locks_are_refused(text: str, reason: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_conda_file(text, "it")
    assert refused.value.thing.startswith("it")
    assert reason in refused.value.reason


PIXI = f"""\
version: 7
platforms:
- name: linux-64
environments:
  default:
    channels:
    - url: https://channels.example/conda-forge/
    packages:
      linux-64:
      - conda: {A}
packages:
- conda: {A}
  sha256: '{SHA}'
"""


@pytest.mark.parametrize(("old", "new", "reason"), [
    (f"{A}\npackages", f"{A.replace('a-1.0', 'b-1.0')}\npackages", "is not among the packages"),
    ("  sha256", "  name: b\n  sha256", "its name is not that of a-1.0-0.conda"),
    ("  sha256", "  version: '1.1'\n  sha256", "its version is not that of"),
    ("  sha256", "  subdir: noarch\n  sha256", "its subdir is not that of"),
    ("  sha256", "  noarch: java\n  sha256", "no such noarch as java"),
    ("  sha256", "  size: -1\n  sha256", "size is no whole number"),
    ("  sha256", "  size: 1e3\n  sha256", "size is no whole number"),
    ("  sha256", "  depends: a\n  sha256", "depends is no list"),
    ("  sha256", "  pypi: https://f.example/x.whl\n  sha256", "is no package of a channel or of pip"),
    (f"'{SHA}'", "abc", "abc is no sha256"),
    ("linux-64:\n", "linux-aarch64:\n", "is for linux-64, but stands under linux-aarch64"),
    ("linux-64:\n", "../x:\n", "is no platform"),
    ("packages:\n- conda", f"packages:\n- conda: {A}\n- conda", "stands twice"),
    ("linux-64:\n", f"linux-64:\n      - conda: {A}\n", "a stands twice in an environment"),
])
def test_a_pixi_lock_that_contradicts_itself_is_refused(old: str, new: str, reason: str) -> None:
    assert parse_conda_file(PIXI, "it").environments[0].conda[0].sha256 == SHA
    text = PIXI.replace(old, new, 1)
    assert text != PIXI
    with pytest.raises(BadInput) as refused:
        parse_conda_file(text, "it")
    assert reason in refused.value.reason
    assert re.fullmatch(r"it line \d+", refused.value.thing)


def test_a_pixi_lock_cannot_ask_for_variables() -> None:
    text = PIXI.replace(f"- conda: {A}\npackages:\n- conda: {A}\n",
                        "- pypi: URL\npackages:\n- pypi: URL\n  name: x\n  version: '1'\n")
    (environment,) = parse_conda_file(text.replace("URL", "https://f.example/$T/x.whl"), "it").environments
    assert [pin.url for pin in environment.pip] == ["https://f.example/$T/x.whl"]
    with pytest.raises(BadInput, match="a variable of the environment") as refused:
        parse_conda_file(text.replace("URL", "https://f.example/${T}/x.whl"), "it")
    assert refused.value.thing == "it line 12"


def test_every_cut_and_every_changed_byte_is_read_or_refused() -> None:
    """Never anything but BadInput, whatever a file has become."""
    for path, text in texts(target(records=records()[:4], pip=pip_part()[:1])).items():
        for place in range(0, len(text), 7):
            for damaged in (text[:place], f"{text[:place]}\x00{text[place + 1:]}", f"{text[:place]}: &x{text[place:]}",
                            f"{text[:place]}\n- [{text[place + 1:]}"):
                try:
                    parse_conda_file(damaged, path)
                except BadInput as refused:
                    assert refused.thing.startswith(path)  # noqa: PT017


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each value of a document."""
    yield way
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*way, key))


@pytest.mark.parametrize("kind", ["conda-lock", "pixi", "environment"])
def test_every_value_of_another_type_is_read_or_refused(kind: str) -> None:
    (text,) = texts(target(records=records()[6:9], pip=pip_part()[:2]), formats=(kind,)).values()
    document = yaml.load(text, Loader=yaml.CSafeLoader)
    refused = 0
    for way in places(document):
        for other in ([], {}, None, "", "x", 1, True, [["x"]], {"x": {"y": "z"}}):
            changed = copy.deepcopy({"root": document})
            inside: Any = changed
            for step in ("root", *way)[:-1]:
                inside = inside[step]
            inside[("root", *way)[-1]] = other
            try:
                parse_conda_file(yaml.dump(changed["root"], Dumper=yaml.CSafeDumper, sort_keys=False), "it")
            except BadInput as error:
                refused += 1
                assert error.thing.startswith("it")  # noqa: PT017
    assert refused > 100


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def test_kept_pins_are_those_of_conda_lock_else_pixi_else_explicit(tmp_path: Path) -> None:
    def kept_of(*kept: CondaRecord, pip: bool = True) -> tuple[tuple[tuple[str, str], ...], ...]:
        versions = (("a-server", "1.10"), ("b-client", "12"), ("flash-attn", "2.5.8"))
        return tuple(sorted((one.url, one.name) for one in kept)), versions if pip else ()

    one, other, third = (record(name, "1", "0") for name in "abc")
    arm = record("d", "1", "0", subdir="linux-aarch64")
    assert read_kept_conda(tmp_path / "nowhere", None) == ((), ())
    write(tmp_path, texts(target(records=(one,)), formats=("explicit",)))
    assert read_kept_conda(tmp_path, None) == kept_of(one, pip=False), "an explicit file has no versions of pip's"
    write(tmp_path, texts(target(records=(other,)), formats=("pixi",)))
    assert read_kept_conda(tmp_path, None) == kept_of(other)
    write(tmp_path, texts(target(records=(third,)), target(records=(arm,), where=ARM), formats=("conda-lock",)))
    assert read_kept_conda(tmp_path, None) == kept_of(third, arm)
    assert read_kept_conda(tmp_path, "train") == ((), ())
    (tmp_path / "conda-lock.yml").rename(tmp_path / "train.conda-lock.yml")
    assert read_kept_conda(tmp_path, "train") == kept_of(third, arm)
    assert read_kept_conda(tmp_path, None) == kept_of(other)


def test_a_damaged_file_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "conda-lock.yml").write_text("version: 1\nversion: 2\n", encoding="utf-8")
    assert read_kept_conda(tmp_path, None) == ((), ())
    (tmp_path / "conda-lock.yml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="is not UTF-8"):
        read_kept_conda(tmp_path, None)


def test_the_sample_is_what_pyyaml_reads() -> None:
    """The lines that the errors above name are counted in a file that is whole."""
    assert yaml.safe_load(conda_lock_of(entry()))["package"][0]["url"] == A
