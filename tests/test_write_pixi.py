"""pixi.lock: py-rattler reads it back as the records it was made of, and would write the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from stackfix.conda.records import CondaRecord, CondaTarget
from stackfix.errors import BadInput
from stackfix.write.pixi import render_pixi
from tests.conda_samples import ARM, COMMAND, FORGE, SNAPSHOT, TORCH, X86, pip_part, record, target
from tests.judges import conda_rattler

OTHER_PYTHON = replace(X86, python="3.9")


def pixi_file(folder: Path, *targets: CondaTarget) -> Path:
    path = folder / "pixi.lock"
    path.write_text(render_pixi(targets, command=COMMAND), encoding="utf-8")
    return path


def document(*targets: CondaTarget) -> Any:
    return yaml.load(render_pixi(targets, command=COMMAND), Loader=yaml.CSafeLoader)


def as_ours(read: Any) -> CondaRecord:
    """py-rattler's record as ours."""
    return CondaRecord(
        name=read.name.normalized, version=str(read.version), build=str(read.build), build_number=read.build_number,
        subdir=read.subdir, channel=str(read.channel).rstrip("/"), file_name=read.file_name, url=read.url,
        md5=read.md5.hex() if read.md5 else None, sha256=read.sha256.hex() if read.sha256 else None,
        depends=tuple(read.depends), constrains=tuple(read.constrains),
        noarch=None if read.noarch.none else "python" if read.noarch.python else "generic", size=read.size,
        timestamp=int(read.timestamp.timestamp() * 1000) if read.timestamp else None, license=read.license,
        license_family=read.license_family, features=read.features, track_features=tuple(read.track_features),
        python_site_packages_path=read.python_site_packages_path)


ODD = (
    record("a-build", "1.0", "3_some", build_number=3), record("b-build", "1.0", "some", build_number=7),
    record("c-build", "1.0", "5"), record("d-build", "1.0", "py_0", subdir="noarch", noarch="generic"),
    record("e-build", "1.0", "0", subdir="noarch", noarch="python"), record("f-build", "1!2.0", "h_12", md5=None),
    record("g-build", "1.0_1", "0", sha256=None, features="mkl", track_features=("one", "two")),
    record("i-build", "1", "5_cp311", build_number=5), record("j-build", "1", "xpyx_0", subdir="noarch"),
    record("k-build", "1", "py_0", subdir="noarch", noarch=None), record("l-build", "1", "py_0", noarch=None),
    record("h-build", "1.0+x", "0", "a *  x*", "b=1.0=2", constrains=("c   3   4*_x",), license="None: yes"),
)


@pytest.mark.parametrize("targets", [
    (target(),), (target(pip=()),), (target(), target(where=ARM)), (target(), target(where=OTHER_PYTHON)),
    (target(records=ODD),), (target(priority="disabled", snapshot=SNAPSHOT),), (target(records=(), channels=(FORGE,)),),
], ids=["mixed", "no pip", "two platforms", "two Pythons", "odd records", "priority disabled", "pip alone"])
def test_rattler_writes_it_again_as_it_is(targets: tuple[CondaTarget, ...], tmp_path: Path) -> None:
    assert list(conda_rattler.pixi_complaints(pixi_file(tmp_path, *targets), tmp_path)) == []


def test_rattler_reads_the_records_that_were_written(tmp_path: Path) -> None:
    targets = (target(), target(where=ARM), target(where=OTHER_PYTHON, records=ODD))
    path = pixi_file(tmp_path, *targets)
    read, pypi = conda_rattler.pixi_records(path), conda_rattler.pixi_pypi(path)
    assert len(read) == len(targets)
    for one in targets:
        key = f"cp{one.target.python.replace('.', '')}", one.target.platform
        assert {name: as_ours(each) for name, each in read[key].items()} == {each.name: each for each in one.records}
        for package in one.pip:
            found = pypi[key][package.name]
            assert found.hashes.sha256.hex() == package.files[0].sha256
            assert found.version == package.version
            assert found.location.replace("%2B", "+") == package.files[0].url.replace("%2B", "+")
            assert found.requires_dist == sorted(set(package.requires) - {package.name})
            assert found.requires_python == package.requires_python


def test_the_judge_sees_what_rattler_would_write_otherwise(tmp_path: Path) -> None:
    path = pixi_file(tmp_path, target())
    text = path.read_text(encoding="utf-8")
    for wrong in (text.replace("  md5:", "  md6:", 1), text.replace("  name: flash-attn", "  name: Flash_Attn"),
                  text.replace("version: 7", "version: 6")):
        assert wrong != text
        path.write_text(wrong, encoding="utf-8")
        assert list(conda_rattler.pixi_complaints(path, tmp_path))


def test_one_environment_a_python_and_default_for_one() -> None:
    assert list(document(target())["environments"]) == ["default"]
    both = document(target(), target(where=OTHER_PYTHON))
    tag = f"cp{X86.python.replace('.', '')}"
    assert list(both["environments"]) == sorted([tag, "cp39"])
    assert both["platforms"] == [{"name": "linux-64"}]
    assert len(both["packages"]) == len(document(target())["packages"])


def test_channels_options_and_hashes() -> None:
    made = document(target(priority="disabled"))
    default = made["environments"]["default"]
    assert default["channels"] == [{"url": f"{TORCH.url}/"}, {"url": f"{FORGE.url}/"}]
    assert default["options"] == {"channel-priority": "disabled"}
    assert "options" not in document(target())["environments"]["default"]
    assert all(len(package["sha256"]) == 64 for package in made["packages"])


def test_the_second_step_is_no_package_of_it() -> None:
    later = replace(pip_part()[0], step=2)
    text = render_pixi((target(pip=(later,)),), command=COMMAND, second_steps=("requirements-flash-attn.txt",))
    assert "# second step: requirements-flash-attn.txt\n" in text
    assert later.name not in text.partition("version: 7")[2]


@pytest.mark.parametrize(("records", "reason"), [
    ((record("a", "1", "0", md5=None, sha256=None),), "no usable hash"),
    ((record("a", "1", "0", md5="nonsense", sha256=None),), "no usable hash"),
    ((record("a", "1", "0", sha256="nonsense"),), "a sha256 that is none"),
])
def test_a_package_without_hash_is_named(records: tuple[CondaRecord, ...], reason: str) -> None:
    with pytest.raises(BadInput, match=reason) as refused:
        render_pixi((target(records=records),), command=COMMAND)
    assert refused.value.thing == "a-1-0.conda"


def test_two_records_of_one_address_are_refused() -> None:
    one, other = record("a", "1", "0"), record("a", "1", "0", "b")
    with pytest.raises(BadInput, match="two different records"):
        render_pixi((target(records=(one,)), target(records=(other,), where=OTHER_PYTHON)), command=COMMAND)
