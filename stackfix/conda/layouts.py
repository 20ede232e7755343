"""What each layout asks of the channels, and what it leaves to pip, for one target and one torch build."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stackfix.conda.candidates import Choice, bundled
from stackfix.conda.layouts_records import Lacking, Plan, Scene, Wish
from stackfix.conda.like_pip import favoured, like_pip, nearest_cuda
from stackfix.conda.own_lines import own_wishes
from stackfix.conda.records import Channel, Spec
from stackfix.conda.specs import Translated, Untranslated, translate
from stackfix.matrix.query import CPU
from stackfix.resolve.pep508 import parse_version
from stackfix.resolve.question import FLASH_ATTN, UserLine

SYSTEM = ("libstdcxx",)         # what wheels of the stack need of a system beside Python itself
FREE_THREADS_FROM = (3, 13)     # Pythons that are built twice: their build strings tell which


def plans_for(scene: Scene, layout: str, choices: Iterable[Choice]) -> Iterator[Plan | Lacking]:
    """The plans of one layout, best first."""
    if layout == "wheels":
        yield wheels_plan(scene)
        return
    for choice in choices:
        yield native_plan(scene, choice) if layout == "native" else mixed_plan(scene, choice)


def native_plan(scene: Scene, choice: Choice) -> Plan | Lacking:
    """Everything from channels."""
    wishes: list[Wish] = []
    for line in scene.lines:
        if line.requirement.constraint:
            continue
        found = _line_wishes(scene, choice, line)
        if isinstance(found, str):
            source = _channels_text(choice.channels)
            return Lacking(layout="native", kind="package", text=found, source=source, asks=(line.asked,))
        wishes.extend(found)
    if scene.flash_attn is not None and not any(line.name == FLASH_ATTN for line in scene.lines):
        lacking_flash = _flash_lacking(scene, choice)
        if lacking_flash is not None:
            return lacking_flash
        origin = f"flash-attn {scene.flash_attn} of the stack"
        wishes.append(Wish(
            spec=Spec(text=f"{FLASH_ATTN} =={scene.flash_attn}", origin=origin),
            asks=tuple(ask.asked for ask in scene.question.flash_attn),
        ))
    return _plan(scene, "native", choice, wishes, pip=())


def mixed_plan(scene: Scene, choice: Choice, left: tuple[str, ...] = ()) -> Plan | Lacking:
    """torch from a channel, and from pip what no channel has for it: `left` is known to be so."""
    wishes: list[Wish] = []
    pip: list[str] = []
    for line in scene.lines:
        if line.requirement.constraint:
            continue
        found = _line_wishes(scene, choice, line)
        if isinstance(found, str) or line.name in left:
            pip.append(line.name)
        else:
            wishes.extend(found)
    if scene.flash_attn is not None and FLASH_ATTN not in pip:
        pip.append(FLASH_ATTN)
    if pip:
        wishes.append(Wish(spec=Spec(text="pip", origin="layout mixed")))
    return _plan(scene, "mixed", choice, wishes, pip=tuple(pip))


def wheels_plan(scene: Scene) -> Plan:
    """Python and system libraries from channels, all else from pip."""
    channels = scene.channels.channels
    wishes = [python_wish(scene), Wish(spec=Spec(text="pip", origin="layout wheels"))]
    wishes.extend(
        Wish(spec=Spec(text=name, origin="layout wheels"))
        for name in SYSTEM if scene.channels.records(channels, scene.target.platform, name)
    )
    wishes.extend(own_wishes(scene, pip=None))
    return Plan(
        layout="wheels", target=scene.target, choice=None, channels=channels, wishes=tuple(wishes), limits=(),
        loose=(), pip=None,
    )


def _plan(scene: Scene, layout: str, choice: Choice, wishes: list[Wish], *, pip: tuple[str, ...]) -> Plan:
    torch = Wish(spec=Spec(text=choice.spec, origin=choice.label))
    limited = (_line_wishes(scene, choice, line) for line in scene.lines
               if line.requirement.constraint and line.name not in pip)
    limits = tuple(wish for found in limited if not isinstance(found, str) for wish in found)
    firm = (python_wish(scene), torch, *_repacked_cuda(choice), *wishes, *own_wishes(scene, pip=pip))
    nearest = nearest_cuda(scene, choice, (wish.spec.text for wish in (*firm, *limits)))
    cuda = nearest[0].spec.text.partition(" ")[2].removesuffix(".*") if nearest else None
    return Plan(
        layout=layout, target=scene.target, choice=choice, channels=choice.channels, wishes=firm, limits=limits,
        pip=pip, loose=tuple(like_pip(scene, choice, pip)), nearest=nearest,
        favoured=tuple(favoured(scene, choice, cuda)),
    )


def python_wish(scene: Scene) -> Wish:
    """`python 3.11.*`; of a Python that is built twice the build with the lock."""
    python = scene.target.python
    minor = tuple(int(part) for part in python.split("."))
    build = f" *_cp{python.replace('.', '')}" if minor >= FREE_THREADS_FROM else ""
    asks = scene.question.python_ask(python)
    origin = f"--python {python}" if asks else f"Python {python} of the stack"
    return Wish(spec=Spec(text=f"python {python}.*{build}", origin=origin), asks=asks)


def _repacked_cuda(choice: Choice) -> tuple[Wish, ...]:
    """What holds the libraries of a repacked wheel to its CUDA: its channel says so."""
    cuda = choice.torch.cuda
    if cuda == CPU or not choice.repacked:
        return ()
    return (Wish(spec=Spec(text=f"pytorch-cuda {cuda}.*", origin=f"CUDA {cuda} of this torch")),)


def _line_wishes(scene: Scene, choice: Choice, line: UserLine) -> tuple[Wish, ...] | str:
    """What a line asks of the channels, with what its extras need; a text that says why they cannot give it."""
    found = translate(
        line.requirement, scene.evidence.view(scene.target), lambda project: scene.package(choice, project),
        scene.lines_of_extra,
    )
    lacking = next((one for one in found if isinstance(one, Untranslated)), None)
    if lacking is not None:
        return f"{lacking.project} cannot come from {_channels_text(choice.channels)}: {lacking.reason}"
    return tuple(
        Wish(spec=one.spec, asks=(line.asked,), project=line.name) for one in found if isinstance(one, Translated))


def _flash_lacking(scene: Scene, choice: Choice) -> Lacking | None:
    """Why channels have no flash-attn of the stack's release for the Python, or None where they may."""
    records = scene.channels.records(choice.channels, scene.target.platform, FLASH_ATTN)
    wanted = parse_version(scene.flash_attn or "")
    fitting = [record for record in records if parse_version(record.version) == wanted]
    asks = tuple(ask.asked for ask in scene.question.flash_attn)
    if fitting:
        return None
    known = ", ".join(sorted({record.version for record in records}))
    have = f"they have {known}" if known else "they have none"
    text = f"flash-attn {scene.flash_attn} is in none of the channels {_channels_text(choice.channels)}: {have}"
    return Lacking(layout="native", kind="flash-attn", text=text,
                   source=f"records of flash-attn{bundled(scene.channels)}", asks=asks)


def _channels_text(channels: tuple[Channel, ...]) -> str:
    return ", ".join(channel.name for channel in channels)
