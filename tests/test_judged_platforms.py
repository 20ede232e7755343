"""Locks for Windows, macOS and, on Linux, for the CPU alone, judged by what we did not write.

What fits the platform is for packaging's tags and for uv with `--python-platform` to say; that torch and what is built
for it come from one place, for this release, is for their addresses and their METADATA.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.judges import pylock, tags, torch_index
from tests.judges.lockfile import Entry, read_entries
from tests.judges.pages import Pages
from tests.judges.table import VERDICTS, Verdict
from tests.judges.uv import UvJudge, compiled_set, locked_set
from tests.replay.server import ReplayServer
from tests.replay.store import Store
from tests.replay.torch_index import TorchReplica
from tests.test_judged_locks import complaint
from tests.variant_locks import Locked, Locker, both_ways, settle

pytestmark = pytest.mark.recorded

WINDOWS, MACOS, LINUX_CPU = "win-64", "osx-arm64", "linux-64-cpu"
ASKED = (       # place, torch, CUDA ("": the place says it), Python, what is asked beside torch
    (WINDOWS, "1.13", "cpu", "3.10"), (WINDOWS, "2.1", "cpu", "3.10", "torchvision"),
    (WINDOWS, "2.3", "cpu", "3.11", "torchvision", "torchaudio"), (WINDOWS, "2.4", "cpu", "3.12"),
    (WINDOWS, "2.6", "cpu", "3.13", "torchvision"), (WINDOWS, "2.8", "cpu", "3.12", "transformers"),
    (WINDOWS, "2.15", "cpu", "3.14", "torchvision"), (WINDOWS, "2.0", "11.7", "3.10", "torchvision"),
    (WINDOWS, "2.1", "11.8", "3.11", "torchvision"), (WINDOWS, "2.2", "12.1", "3.12"),
    (WINDOWS, "2.3", "12.1", "3.11", "torchvision", "xformers"), (WINDOWS, "2.3", "11.8", "3.10"),
    (WINDOWS, "2.5", "12.4", "3.12", "torchvision"), (WINDOWS, "2.6", "12.6", "3.11", "torchvision"),
    (WINDOWS, "2.7", "11.8", "3.13"), (WINDOWS, "2.7", "12.8", "3.12", "torchvision", "torchaudio"),
    (WINDOWS, "2.8", "12.8", "3.11", "torchvision", "transformers"), (WINDOWS, "2.8", "12.9", "3.13", "torchvision"),
    (WINDOWS, "2.9", "13.0", "3.14", "torchvision"), (WINDOWS, "2.10", "12.8", "3.12", "torchvision", "xformers"),
    (MACOS, "1.13", "cpu", "3.9"), (MACOS, "2.0", "cpu", "3.11", "torchvision"),
    (MACOS, "2.2", "cpu", "3.12", "torchaudio"), (MACOS, "2.3", "cpu", "3.11", "torchvision", "transformers"),
    (MACOS, "2.5", "cpu", "3.12"), (MACOS, "2.8", "cpu", "3.13", "torchvision", "torchaudio"),
    (MACOS, "2.10", "cpu", "3.14", "torchvision"), (MACOS, "2.12", "cpu", "3.12"), (MACOS, "2.15", "", "3.13"),
    (LINUX_CPU, "2.1", "", "3.10"), (LINUX_CPU, "2.3", "", "3.11", "torchvision"),
    (LINUX_CPU, "2.6", "", "3.12", "transformers"), (LINUX_CPU, "2.9", "", "3.14", "torchvision"),
)
FAMILY = ("torch", "torchvision", "torchaudio", "xformers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request."""

    place: str
    torch: str
    cuda: str
    python: str
    with_: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((f"torch {self.torch}+{self.cuda or 'cpu'}", f"py{self.python}", self.place, *self.with_))

    @property
    def platform(self) -> str:
        return self.place.removesuffix("-cpu")

    @property
    def words(self) -> tuple[str, ...]:
        """The options."""
        cuda = ("--cuda", self.cuda) if self.cuda else ()
        return ("--torch", self.torch, *cuda, "--python", self.python, "--platform", self.place, "--no-flash-attn",
                *(word for name in self.with_ for word in ("--with", name)))

    @property
    def path(self) -> str | None:
        """Of the torch index; None where the default index has the build."""
        if self.cuda in {"", "cpu"}:
            return "cpu" if self.platform == "linux-64" else None
        return f"cu{self.cuda.replace('.', '')}"


TABLE = tuple(Asked(place=place, torch=torch, cuda=cuda, python=python, with_=tuple(with_))
              for place, torch, cuda, python, *with_ in ASKED)


@pytest.fixture(scope="module")
def replica(store: Store) -> Iterator[TorchReplica]:
    with TorchReplica(store) as served:
        yield served


@pytest.mark.parametrize("asked", TABLE, ids=str)
def test_what_is_locked_for_a_platform_fits_it(
    asked: Asked, tmp_path: Path, lock: Locker, index: ReplayServer, replica: TorchReplica, pages: Pages,
    uv_cache: Path, request: pytest.FixtureRequest,
) -> None:
    found, _, seconds = both_ways(lock, asked.words, tmp_path, replica.url)
    said = verdicts(asked, found, tmp_path, index=index, replica=replica, pages=pages, uv_cache=uv_cache)
    request.config.stash[VERDICTS].append(Verdict(
        combination=str(asked), packages=len(read_entries(found.requirements)), seconds=seconds, said=said))
    assert {name: text for name, text in said.items() if text} == {}


def verdicts(
    asked: Asked, found: Locked, scratch: Path, *, index: ReplayServer, replica: TorchReplica, pages: Pages,
    uv_cache: Path,
) -> dict[str, str]:
    """What each judge says of the lock: "" for yes."""
    judged = torch_index.led_to(replica, found.requirements, scratch / "led-to-loopback.txt")
    entries = read_entries(judged)
    uv = UvJudge(index_url=index.url, cache=uv_cache, python=asked.python, platform=asked.platform)
    urls = {entry.name: f"{entry.name} @ {entry.url}" for entry in entries if entry.url}
    compiled = uv.compile([urls.get(name, name) for name in ("torch", *asked.with_)], entries, scratch)
    different = compiled_set(compiled.stdout) ^ locked_set(entries)
    return {
        "index page": "\n".join(pages.complaints(found.requirements)),
        "torch index": "\n".join(torch_index.complaints(found.requirements)),
        "tags": "\n".join(tags.complaints(found.requirements, pages, python=asked.python, platform=asked.platform)),
        "family": "\n".join(strangers(asked, found.requirements, replica, pages)),
        "uv dry-run": complaint(uv.dry_run(judged, scratch)),
        "uv compile": complaint(compiled) or (f"differs in {sorted(different)}" if different else ""),
        "pylock": "\n".join(pylock.complaints(found.folder / "pylock.toml", read_entries(found.requirements),
                                              python=asked.python, platform=asked.platform, glibc="2.28")),
    }


def strangers(asked: Asked, requirements: Path, replica: TorchReplica, pages: Pages) -> Iterator[str]:
    """What of torch's family is from another place than asked, or for another torch; and CUDA libraries off Linux."""
    entries = read_entries(requirements)
    family = {entry.name: entry for entry in entries if entry.name in FAMILY}
    torch = version_of(family["torch"])
    for name, entry in family.items():
        path = entry.url.removeprefix(f"{torch_index.BASE}/").partition("/")[0] if entry.url else None
        if path != asked.path:
            yield f"{name} is from {path or 'the default index'}"
        for line in requires_of(entry, replica, pages):
            needed = Requirement(line)
            if needed.name == "torch" and not needed.specifier.contains(torch.partition("+")[0]) \
                    and not needed.specifier.contains(torch):
                yield f"{name} requires {line}, and torch is {torch}"
    if asked.platform != "linux-64" or asked.path == "cpu":
        yield from (f"{entry.name} beside {asked.place}" for entry in entries
                    if entry.name.startswith(("nvidia-", "triton", "cuda-")))


def version_of(entry: Entry) -> str:
    """The version of a pin, by its file's name where it is an address."""
    if entry.version is not None:
        return entry.version
    return str(entry.url).rpartition("/")[2].split("-")[1].replace("%2B", "+")


def requires_of(entry: Entry, replica: TorchReplica, pages: Pages) -> list[str]:
    """Requires-Dist of a pinned file."""
    if entry.url is not None:
        row = torch_index.row_of(entry.url)
        assert row is not None
        text = replica.site.metadata_of(row)
    else:
        text = pages.metadata(pages.stated(entry.name)[entry.hashes[0]][1])
    return re.findall(r"^Requires-Dist: *(.+?)\s*$", text, re.MULTILINE)


def test_the_table_spans_the_platforms() -> None:
    assert len(set(TABLE)) == len(ASKED) >= 24
    assert {one.place for one in TABLE} == {WINDOWS, MACOS, LINUX_CPU}
    assert {one.cuda for one in TABLE if one.place == WINDOWS} >= {"11.7", "11.8", "12.1", "12.4", "13.0", "cpu"}


@pytest.mark.parametrize("spoiled", ["a file for Linux", "torch from elsewhere", "another torchvision", "a library"])
def test_the_judges_see_what_does_not_fit(
    spoiled: str, tmp_path: Path, index: ReplayServer, replica: TorchReplica, pages: Pages, stackfix_cache: Path,
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
) -> None:
    settle(monkeypatch)
    asked = next(one for one in TABLE if (one.place, one.torch, one.cuda) == (WINDOWS, "2.6", "cpu"))
    found = Locker(index=index.url, cache=stackfix_cache, capfd=capfd)(asked.words, tmp_path, replica.url)
    assert found.status == 0, found.said
    judged, text = tmp_path / "spoiled.txt", found.requirements.read_text(encoding="utf-8")
    pins = {entry.name: entry for entry in read_entries(found.requirements)}
    linux = "torch-2.6.0-cp313-cp313-manylinux1_x86_64.whl"
    stated = {name: digest for digest, (name, _) in pages.stated("torch").items()}
    vision = {name: digest for digest, (name, _) in pages.stated("torchvision").items()}
    cpu = torch_index.row_of(f"{torch_index.BASE}/cpu/torch-2.6.0%2Bcpu-cp313-cp313-win_amd64.whl")
    assert cpu is not None
    judged.write_text({
        "a file for Linux": text.replace(pins["torch"].hashes[0], stated[linux]),
        "torch from elsewhere": text.replace(pins["torch"].hashes[0], str(cpu.sha256)).replace(
            "torch==2.6.0 ", f"torch @ {torch_index.BASE}/cpu/{cpu.file.replace('+', '%2B')} "),
        "another torchvision": text.replace("torchvision==0.21.0", "torchvision==0.20.1").replace(
            pins["torchvision"].hashes[0], vision["torchvision-0.20.1-cp312-cp312-win_amd64.whl"]),
        "a library": f"{text}nvidia-cublas-cu12==12.4.5.8 \\\n    --hash=sha256:{'0' * 64}\n",
    }[spoiled], encoding="utf-8")
    fit = tags.complaints(judged, pages, python=asked.python, platform=asked.platform)
    foreign = list(strangers(asked, judged, replica, pages))
    assert (fit, foreign) != ([], []), spoiled
    said = "\n".join((*fit, *foreign))
    assert {"a file for Linux": f"{linux} is for no Python 3.13 on win-64", "torch from elsewhere": "torch is from cpu",
            "another torchvision": "requires torch", "a library": "nvidia-cublas-cu12 beside win-64"}[spoiled] in said
    assert not tags.complaints(found.requirements, pages, python=asked.python, platform=asked.platform)
    assert not list(strangers(asked, found.requirements, replica, pages))
