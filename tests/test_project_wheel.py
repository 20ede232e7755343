"""The built wheel, installed elsewhere, carries the matrix and works without the checkout."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(*command: str | Path, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """The finished program, started without what points to the checkout or to the machine's pip settings."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_", "COV_"))}
    environ["PIP_CONFIG_FILE"] = os.devnull
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=300)
    assert not check or done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
    return done


def digests(directory: Path) -> dict[str, str]:
    """sha256 of each file under `directory`, by its name in it."""
    return {
        path.relative_to(directory).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    [built] = out.iterdir()
    return built


@pytest.fixture(scope="module")
def elsewhere(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Environment that holds the wheel and sees this environment's packages, but none of its .pth files.

    The line in dependencies.pth puts a folder on the path without running the .pth files in it, so that an editable
    install of the checkout here stays out of sight there.
    """
    prefix = tmp_path_factory.mktemp("elsewhere") / "venv"
    venv.create(prefix)
    python = prefix / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", wheel, cwd=prefix)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=prefix).stdout.strip())
    places = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (site / "dependencies.pth").write_text("\n".join(places) + "\n", encoding="utf-8")
    found = run(python, "-c", "import stackfix; print(stackfix.__file__)", cwd=prefix).stdout.strip()
    assert Path(found).parent == site / "stackfix"
    return prefix


def test_the_wheel_holds_the_matrix_byte_for_byte(elsewhere: Path) -> None:
    [installed] = elsewhere.glob("lib/python*/site-packages/stackfix/_matrices")
    assert digests(installed) == digests(ROOT / "matrices")
    assert "torch.toml" in digests(installed)


def test_the_wheel_holds_only_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = {name.partition("/")[2]: name for name in names if ".dist-info/" in name}
        script = archive.read(info["entry_points.txt"]).decode()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"stackfix"}
    assert {"stackfix/py.typed", "stackfix/errors.py"} <= set(names)
    assert "licenses/LICENSE" in info
    assert "stackfix = stackfix.cli:main" in script


def test_the_source_archive_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    # without --wheel or --sdist `build` makes the wheel from the archive, not from the checkout
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, ROOT, cwd=tmp_path)
    [again] = tmp_path.glob("*.whl")
    assert hashlib.sha256(again.read_bytes()).hexdigest() == hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_the_installed_command_shows_the_matrix_from_any_folder(elsewhere: Path, tmp_path: Path) -> None:
    shown = run(elsewhere / "bin" / "stackfix", "matrix", "show", cwd=tmp_path).stdout
    assert "2.3.1" in shown
    assert "12.1" in shown


def test_a_wheel_without_the_matrix_says_so(elsewhere: Path, tmp_path: Path) -> None:
    [installed] = elsewhere.glob("lib/python*/site-packages/stackfix/_matrices")
    moved = installed.rename(tmp_path / "_matrices")
    try:
        done = run(elsewhere / "bin" / "stackfix", "matrix", "show", cwd=tmp_path, check=False)
    finally:
        moved.rename(installed)
    assert done.returncode in (2, 3)
    assert "matri" in done.stderr
    assert "Traceback" not in done.stderr
