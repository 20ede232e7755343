"""Stacks of real records, decided over the bundled ones: what must hold does, what cannot says the true reason."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stackfix.conda.matching import admits
from stackfix.conda.records import CondaTarget
from stackfix.resolve.records import NoConsistentStack
from tests.conda_servers import Answer, opened, serving
from tests.conda_stacks import Asked, Decider, channel_name
from tests.judges.table import STACKS

FORGE, PYTORCH = "conda-forge", "pytorch"
ARM, BOTH = ("linux-aarch64",), ("linux-64", "linux-aarch64")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One stack that the channels have: the release, the channel of torch, cuDNN's major, packages that are there."""

    asked: Asked
    torch: str
    cuda: str
    channel: str = FORGE
    cudnn: str | None = "9"
    packages: tuple[str, ...] = ()
    priority: str = "strict"
    python: str = "3.11"


HELD = (
    Held(asked=Asked(torch="2.1", cuda="11.8", python=("3.10",)), torch="2.1.0", cuda="11.8", channel=PYTORCH,
         cudnn="8", python="3.10"),
    Held(asked=Asked(torch="2.1", cuda="11.8", python=("3.11",)), torch="2.1.2", cuda="11.8", cudnn="8"),
    Held(asked=Asked(torch="2.1", cuda="12.0", python=("3.11",)), torch="2.1.2", cuda="12.0", cudnn="8"),
    Held(asked=Asked(torch="2.2", cuda="11.8", python=("3.10",)), torch="2.2.2", cuda="11.8", channel=PYTORCH,
         cudnn="8", python="3.10"),
    Held(asked=Asked(torch="2.2", python=("3.11",)), torch="2.2.2", cuda="11.8", channel=PYTORCH, cudnn="8"),
    Held(asked=Asked(torch="2.3", cuda="11.8", python=("3.11",)), torch="2.3.1", cuda="11.8", channel=PYTORCH,
         cudnn="8"),
    Held(asked=Asked(torch="2.3", cuda="12.0", python=("3.12",)), torch="2.3.1", cuda="12.0", cudnn="8",
         python="3.12"),
    Held(asked=Asked(torch="2.3", cuda="12.1", python=("3.11",)), torch="2.3.1", cuda="12.1", channel=PYTORCH,
         cudnn="8", packages=("pytorch-cuda",)),
    Held(asked=Asked(torch="2.3", cuda="12.1", python=("3.11",), with_=("torchvision",)), torch="2.3.1", cuda="12.1",
         channel=PYTORCH, cudnn="8", packages=("torchvision", "pytorch-cuda")),
    Held(asked=Asked(torch="2.4", cuda="11.8", python=("3.11",)), torch="2.4.0", cuda="11.8", cudnn="8"),
    Held(asked=Asked(torch="2.4", cuda="11.8", python=("3.11",), with_=("xformers",)), torch="2.4.0", cuda="11.8",
         cudnn="8", packages=("xformers",)),
    Held(asked=Asked(torch="2.4", cuda="12.0", python=("3.12",)), torch="2.4.1", cuda="12.0", python="3.12"),
    Held(asked=Asked(torch="2.4", cuda="12.4", python=("3.12",)), torch="2.4.0", cuda="12.4", channel=PYTORCH,
         python="3.12"),
    Held(asked=Asked(torch="2.4", cuda="12.4", python=("3.12",), with_=("torchvision",)), torch="2.4.0", cuda="12.4",
         channel=PYTORCH, packages=("torchvision", "libjpeg-turbo"), priority="disabled", python="3.12"),
    Held(asked=Asked(torch="2.5", cuda="11.8", python=("3.12",)), torch="2.5.1", cuda="11.8", channel=PYTORCH,
         python="3.12"),
    Held(asked=Asked(torch="2.5", cuda="12.1", python=("3.11",)), torch="2.5.1", cuda="12.1", channel=PYTORCH),
    Held(asked=Asked(torch="2.5", cuda="12.4", python=("3.12",)), torch="2.5.1", cuda="12.4", channel=PYTORCH,
         python="3.12"),
    Held(asked=Asked(torch="2.5", cuda="12.6", python=("3.10",)), torch="2.5.1", cuda="12.6", python="3.10"),
    Held(asked=Asked(torch="2.5", cuda="12.6", python=("3.12",), flash_attn="2.7.2"), torch="2.5.1", cuda="12.6",
         packages=("flash-attn",), python="3.12"),
    Held(asked=Asked(flash_attn="2.7.2"), torch="2.5.1", cuda="12.6", packages=("flash-attn",), python="3.12"),
    Held(asked=Asked(torch="2.5", cuda="12.6", python=("3.12",), with_=("torchvision", "transformers>=4.40")),
         torch="2.5.1", cuda="12.6", packages=("torchvision", "transformers"), python="3.12"),
    Held(asked=Asked(torch="2.6", cuda="12.6", python=("3.10",)), torch="2.6.0", cuda="12.6", python="3.10"),
    Held(asked=Asked(torch="2.6", python=("3.12",), with_=("transformers", "accelerate")), torch="2.6.0", cuda="12.6",
         packages=("transformers", "accelerate"), python="3.12"),
    Held(asked=Asked(torch="2.7", cuda="12.6", python=("3.13",)), torch="2.7.1", cuda="12.6", python="3.13"),
    Held(asked=Asked(torch="2.7", cuda="12.9", python=("3.12",), with_=("torchvision",)), torch="2.7.1", cuda="12.9",
         packages=("torchvision",), python="3.12"),
    Held(asked=Asked(torch="2.8", cuda="12.9", python=("3.13",)), torch="2.8.0", cuda="12.9", python="3.13"),
    Held(asked=Asked(torch="2.8", driver="580.65.06", python=("3.12",)), torch="2.8.0", cuda="12.9", python="3.12"),
    Held(asked=Asked(torch="2.9", cuda="12.9"), torch="2.9.1", cuda="12.9"),
    Held(asked=Asked(torch="2.10", cuda="12.9", python=("3.14",)), torch="2.10.0", cuda="12.9", python="3.14"),
    Held(asked=Asked(torch="2.10", cuda="13.0"), torch="2.10.0", cuda="13.0", python="3.13"),
    Held(asked=Asked(torch="2.11", cuda="12"), torch="2.11.0", cuda="12.9"),
    Held(asked=Asked(torch="2.12", cuda="12.9", python=("3.13",)), torch="2.12.0", cuda="12.9", python="3.13"),
    Held(asked=Asked(torch="2.12", cuda="cpu"), torch="2.12.0", cuda="cpu", cudnn=None),
    Held(asked=Asked(with_=("transformers", "accelerate")), torch="2.12.0", cuda="12.9",
         packages=("transformers", "accelerate")),
    Held(asked=Asked(torch="2.5", platform=ARM, python=("3.11",)), torch="2.5.1", cuda="12.6"),
    Held(asked=Asked(torch="2.8", platform=ARM, python=("3.12",)), torch="2.8.0", cuda="12.9", python="3.12"),
    Held(asked=Asked(torch="2.5", platform=BOTH, python=("3.11",)), torch="2.5.1", cuda="12.6"),
    Held(asked=Asked(torch="2.5", cuda="12.6", python=("3.11", "3.12")), torch="2.5.1", cuda="12.6"),
)


@pytest.fixture(scope="module")
def decider(tmp_path_factory: pytest.TempPathFactory) -> Decider:
    return Decider(folder=tmp_path_factory.mktemp("bundled"))


def complaints(target: CondaTarget, decider: Decider) -> list[str]:
    """What is wrong with the packages of a target, by the records that the channels have."""
    found = []
    virtual = {one.name for one in target.virtual}
    by_name = {record.name: record for record in target.records}
    for record in target.records:
        own = decider.channels().records(target.channels, target.target.platform, record.name)
        if record not in own:
            found.append(f"{record.file_name} is no record of the channels")
        for line in (*record.depends, *record.constrains):
            name = line.split()[0].lower()
            there = by_name.get(name)
            needed = line in record.depends
            if (needed and there is None and name not in virtual) or (
                there is not None and admits(line, there) is False
            ):
                found.append(f"{record.file_name} has {line}, and there is {there.file_name if there else 'nothing'}")
    return found


@pytest.mark.parametrize("held", HELD, ids=lambda held: held.asked.label)
def test_a_stack_that_the_channels_have(held: Held, decider: Decider, pytestconfig: pytest.Config) -> None:
    lock = decider.decide(held.asked)
    assert len(lock.conda) == max(len(held.asked.platform), len(held.asked.python), 1)
    target = lock.conda[0]
    torch = target.torch
    assert torch is not None
    names = {record.name for record in target.records}
    assert (torch.record.version, torch.cuda, channel_name(torch.record)) == (held.torch, held.cuda, held.channel)
    assert (target.layout, target.priority, target.pip) == ("native", held.priority, ())
    assert target.target.python == held.python
    assert {record.version.rpartition(".")[0] for record in target.records if record.name == "python"} == {held.python}
    assert set(held.packages) <= names
    assert (torch.cudnn or "").partition(".")[0] == (held.cudnn or "") or torch.cudnn is None
    assert (lock.stack.cudnn or "").partition(".")[0] == (held.cudnn or "")
    assert target.snapshot is not None
    assert [line for one in lock.conda for line in complaints(one, decider)] == []
    assert not [one for each in lock.conda for one in each.departures if one.breaks]
    row = (held.asked.label, f"torch {torch.record.version}", torch.record.build, held.channel, target.priority,
           f"cuDNN {lock.stack.cudnn}", f"{len(target.records)} packages")
    pytestconfig.stash[STACKS].append(row)


def test_there_are_thirty_stacks() -> None:
    assert len(HELD) >= 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """One request without an answer: what is to blame, and what the causes must say."""

    asked: Asked
    blamed: tuple[str, ...]         # kinds of asks that are named
    says: tuple[str, ...]
    environ: dict[str, str] = field(default_factory=dict)


REFUSED = (
    Refused(asked=Asked(torch="2.6", python=("3.12",), with_=("nvidia-cudnn-cu12<9",)), blamed=("requirement",),
            says=("cudnn", "<9a0")),
    Refused(asked=Asked(torch="2.7", flash_attn="2.7.2"), blamed=("torch", "flash-attn"),
            says=("no channel has flash-attn 2.7.2 for torch 2.7.1", "torch 2.7.0 likewise")),
    Refused(asked=Asked(torch="2.10", cuda="13.0", driver="535.104"), blamed=("cuda", "driver"),
            says=("torch 2.10.0 is built for CUDA 13, which needs driver 580.65.06 or newer",)),
    Refused(asked=Asked(torch="2.6", python=("3.12",)), blamed=("torch",), environ={"CONDA_OVERRIDE_CUDA": ""},
            says=("__cuda",)),
    Refused(asked=Asked(torch="2.4", cuda="12.4", python=("3.12",), with_=("torchvision==0.18.*",)),
            blamed=("requirement",), says=("torchvision 0.18.0 needs libtorch >=2.3.0,<2.4.0a0",)),
    Refused(asked=Asked(torch="2.5", python=("3.8",)), blamed=("torch", "python"),
            says=("torch 2.5.1 has no build for Python 3.8 on linux-64",)),
    Refused(asked=Asked(torch="2.2", cuda="12.1"), blamed=("torch", "cuda"),
            says=("torch 2.2.1 and 2.2.2 are built for CUDA 11.8 in the channel pytorch",)),
    Refused(asked=Asked(torch="2.6", python=("3.12",), with_=("xformers",)), blamed=("torch", "requirement"),
            says=("xformers 0.0.27 needs libtorch >=2.4.0,<2.5.0a0", "pytorch ==2.6.0 cuda126*")),
    Refused(asked=Asked(torch="2.6", python=("3.12",), with_=("numpy<1.20",)), blamed=("requirement",),
            says=("numpy 1.18.5 needs python >=3.8,<3.9.0a0",)),
    Refused(asked=Asked(torch="2.3", python=("3.11",), channel=("pytorch",)), blamed=("channel",),
            says=("no channel that was asked has a package python",)),
    Refused(asked=Asked(torch="2.10", python=("3.12",), glibc="2.17"), blamed=("torch", "glibc"),
            says=("needs __glibc >=2.28", "the lock is for a machine with __glibc 2.17")),
    Refused(asked=Asked(torch="2.8", platform=ARM, with_=("xformers",)), blamed=("torch", "requirement"),
            says=("xformers cannot come from conda-forge: no channel has a package for it",)),
)


@pytest.mark.parametrize("refused", REFUSED, ids=lambda refused: refused.asked.label)
def test_what_cannot_be_says_the_true_reason(refused: Refused, decider: Decider) -> None:
    own = Decider(folder=decider.folder, environ=refused.environ, _opened=decider._opened)  # noqa: SLF001 - shared
    with pytest.raises(NoConsistentStack) as caught:
        own.decide(refused.asked)
    text = "\n".join(cause.text for cause in caught.value.causes if cause.kind != "asked")
    for words in refused.says:
        assert words in text
    blamed = {cause.asked.kind for cause in caught.value.causes if cause.asked is not None}
    assert set(refused.blamed) <= blamed


def test_the_priority_that_a_stack_needs_is_told(decider: Decider) -> None:
    from stackfix.conda.notes import conda_notes

    lock = decider.decide(Asked(torch="2.4", cuda="12.4", python=("3.12",), with_=("torchvision",)))
    assert any("channel priority is disabled" in note for note in conda_notes(lock.conda, beside=False))


def test_arm_means_servers(decider: Decider) -> None:
    from stackfix.conda.notes import conda_notes

    lock = decider.decide(Asked(torch="2.8", platform=ARM, python=("3.12",)))
    assert any("Jetson" in note for note in conda_notes(lock.conda, beside=False))


def test_with_one_record_less_the_same_channel_gives_another_answer(decider: Decider, tmp_path: Path) -> None:
    """A live channel is asked where there is one; the bundled records only stand in."""
    asked = Asked(torch="2.6", cuda="12.6", python=("3.12",))
    bundled = decider.decide(asked).conda[0]
    assert bundled.torch is not None
    gone = bundled.torch.record.file_name
    folder = decider.folder.glob("conda-snapshot-*/conda-forge-*.json")
    texts = {path.stem.removeprefix("conda-forge-"): json.loads(path.read_bytes()) for path in folder}
    for key in ("packages", "packages.conda"):
        texts["linux-64"][key].pop(gone, None)
    bodies = {subdir: json.dumps(text).encode() for subdir, text in texts.items()}

    def reply(path: str) -> Answer:
        subdir = path.split("/")[-2]
        return Answer(body=bodies[subdir]) if path.endswith("/repodata.json") else Answer(status=404)

    with serving(reply) as served:
        channels = opened(tmp_path, f"{served.url}/conda-forge", condarc="remote_read_timeout_secs: 30\n")
        live = decider.decide(asked, lambda _: channels).conda[0]
    assert live.torch is not None
    assert live.snapshot is None
    assert (live.torch.record.version, live.torch.cuda) == (bundled.torch.record.version, bundled.torch.cuda)
    assert live.torch.record.file_name != gone
