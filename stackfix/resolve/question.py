"""The request, parsed: what it asks of the stack level, and what it asks of everything else.

Every single thing that was asked is an `Asked`, can be taken out of the request, and is named where it stands in the
way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from packaging.requirements import InvalidRequirement
from packaging.requirements import Requirement as ParsedRequirement
from packaging.specifiers import SpecifierSet

from stackfix.errors import BadInput
from stackfix.nightly import Nightly
from stackfix.platforms import PLATFORMS, split_place
from stackfix.quick import dataclass, replace
from stackfix.resolve.needs import FromUser, Need
from stackfix.resolve.nightly_ask import kept_of_kind, nightly_asked, option_specifier
from stackfix.resolve.pep508 import normalise, parse_requirement, parse_specifier
from stackfix.resolve.problem import needs_of
from stackfix.resolve.records import Asked, CondaLine, Requirement, StackRequest, Target
from stackfix.resolve.target import TargetView

TORCH, FLASH_ATTN = "torch", "flash-attn"
STACK_LEVEL = frozenset({TORCH, FLASH_ATTN})
_DEFAULTS = StackRequest()
PLACES = {"no-driver": "CONDA_OVERRIDE_CUDA="}      # of what no option says


@dataclass(frozen=True, slots=True, kw_only=True)
class StackAsk:
    """A limit on the version of torch or flash-attn, from an option or from a requirement."""

    asked: Asked
    specifier: SpecifierSet
    line: str | None                # the requirement line with its marker; None for an option
    place: str
    constraint: bool = False

    def holds_for(self, view: TargetView) -> bool:
        """Whether it is asked on this target."""
        return self.line is None or view.applies(self.line, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserLine:
    """A requirement on any other project."""

    asked: Asked
    requirement: Requirement
    name: str

    def needs(self, view: TargetView) -> Iterator[Need]:
        """The needs it means on this target."""
        if view.applies(self.requirement.text, None):
            yield from needs_of(
                self.requirement.text, FromUser(asked=self.asked, place=self.requirement.origin)
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The parsed request."""

    request: StackRequest
    torch: tuple[StackAsk, ...]
    flash_attn: tuple[StackAsk, ...]
    lines: tuple[UserLine, ...]
    asks: tuple[Asked, ...]
    nightly: Nightly | None = None  # where torch is asked for as one

    def line_asks(self, line: CondaLine) -> tuple[Asked, ...]:
        """What asks for a line that is for channels alone."""
        return self.ask("cuda") if says_cuda(self.request, line) else (conda_line_ask(line),)

    @property
    def wants_flash_attn(self) -> bool:
        """Whether flash-attn must be in the stack. A constraint alone does not ask for it."""
        return any(not ask.constraint for ask in self.flash_attn)

    def ask(self, kind: str) -> tuple[Asked, ...]:
        """What was asked of this kind."""
        return tuple(asked for asked in self.asks if asked.kind == kind)

    def python_ask(self, python: str) -> tuple[Asked, ...]:
        """The ask for this Python, if it was asked for."""
        return tuple(asked for asked in self.ask("python") if asked.value == python)

    def platform_ask(self, place: str) -> tuple[Asked, ...]:
        """The ask for this place, if it was asked for."""
        return tuple(asked for asked in self.ask("platform") if asked.value == place)

    def file_asks(self) -> tuple[Asked, ...]:
        """What was asked that leaves files out for every target: glibc, macOS, upload date."""
        return (*self.ask("glibc"), *self.ask("macos"), *self.ask("exclude-newer"))

    def allowed_hashes(self, view: TargetView) -> dict[str, frozenset[str]]:
        """The only sha256 that the user's lines allow, by project, where a line states any."""
        allowed: dict[str, frozenset[str]] = {}
        for requirement in self.request.requirements:
            parsed = parse_requirement(requirement.text) if requirement.hashes else None
            if parsed is not None and view.applies(requirement.text, None):
                name, hashes = normalise(parsed.name), frozenset(requirement.hashes)
                allowed[name] = allowed.get(name, hashes) & hashes
        return allowed

    def target(self, python: str, place: str) -> Target:
        """The target of one Python and place."""
        platform, variant = split_place(place)
        return Target(python=python, platform=platform, glibc=self.request.glibc, macos=self.request.macos,
                      variant=variant)

    def targets(self, pythons: Iterable[str]) -> list[Target]:
        """The targets of these Pythons on all places, in the order asked."""
        return [self.target(python, place) for python in pythons for place in self.request.platforms]


def parse_request(request: StackRequest) -> Question:
    """The question. Raises BadInput with all faults of the request's own text."""
    torch: list[StackAsk] = []
    flash_attn: list[StackAsk] = []
    lines: list[UserLine] = []
    asks = list(_option_asks(request))
    for option, found in ((request.torch, torch), (request.flash_attn, flash_attn)):
        if option is not None:
            asked = next(asked for asked in asks if asked.kind == (TORCH if found is torch else FLASH_ATTN))
            found.append(
                StackAsk(asked=asked, specifier=_option_specifier(option, asked), line=None, place=_option(asked))
            )
    for requirement in request.requirements:
        parsed = _parse(requirement)
        name = normalise(parsed.name)
        asked = requirement_ask(requirement)
        asks.append(asked)
        if name in STACK_LEVEL and parsed.url is None:
            (torch if name == TORCH else flash_attn).append(StackAsk(
                asked=asked, specifier=parsed.specifier, line=requirement.text, place=requirement.origin,
                constraint=requirement.constraint,
            ))
        else:
            lines.append(UserLine(asked=asked, requirement=requirement, name=name))
    asks.extend(conda_line_ask(line) for line in request.conda_lines if not says_cuda(request, line))
    lines.extend(limit for line in request.conda_lines for limit in _limits(line))
    question = Question(
        request=request, torch=tuple(torch), flash_attn=tuple(flash_attn), lines=tuple(lines),
        asks=tuple(dict.fromkeys(asks)),
    )
    nightly = nightly_asked((ask.specifier, ask.place) for ask in torch if _holds_somewhere(question, ask))
    kept = kept_of_kind(request.kept, nightly)
    return replace(question, nightly=nightly, request=replace(request, kept=kept)) if nightly or kept else question


def _holds_somewhere(question: Question, ask: StackAsk) -> bool:
    """Whether a limit is asked on any target; its marker may leave all of them out."""
    request = question.request
    return ask.line is None or ";" not in ask.line or any(
        ask.holds_for(TargetView(question.target(python, place)))
        for python in request.pythons or (request.default_python,) for place in request.platforms)


def requirement_ask(requirement: Requirement) -> Asked:
    """The ask of one requirement: `--with` and its text, or the place and the text."""
    option = requirement.origin.partition(" ")[0]
    flag = option if option in {"--with", "--constraint"} else requirement.origin
    return Asked(kind="requirement", value=requirement.text, flag=flag)


def conda_line_ask(line: CondaLine) -> Asked:
    """The ask of a line of an environment.yml that is for channels alone."""
    return Asked(kind="conda-line", value=line.text, flag=line.origin)


def _limits(line: CondaLine) -> Iterator[UserLine]:
    """What the line means to pip: a bound on what brings the same library, if anything brings it."""
    platform = PLATFORMS.get(line.platform or "")
    marker = f" ; platform_machine == '{platform.machine}'" if platform else ""
    for text in line.limits:
        parsed = parse_requirement(text)
        if parsed is not None and parsed.specifier:
            requirement = Requirement(text=f"{text}{marker}", origin=line.origin, constraint=True)
            yield UserLine(asked=conda_line_ask(line), requirement=requirement, name=normalise(parsed.name))


def says_cuda(request: StackRequest, line: CondaLine) -> bool:
    """Whether it is this very line that asks for the CUDA: the two stand and fall together."""
    place = dict(request.places).get("cuda", "")
    return line.cuda and request.cuda is not None and place.startswith(f"{line.origin}: ")


def with_cuda(request: StackRequest, cuda: str | None) -> StackRequest:
    """The request with another CUDA, said by the same line; None: with none."""
    lines: list[CondaLine] = []
    for line in request.conda_lines:
        if not says_cuda(request, line):
            lines.append(line)
        elif cuda is not None and cuda != "cpu":
            lines.append(replace(line, text=f"{line.text.partition(' ')[0]} {cuda}.*"))
    return request.with_(cuda=cuda, conda_lines=tuple(lines))


def without(request: StackRequest, asked: Asked) -> StackRequest:
    """The request without this one thing."""
    if asked.kind in {"requirement", "conda-line"}:
        kept = tuple(one for one in request.requirements if requirement_ask(one) != asked)
        lines = tuple(line for line in request.conda_lines if conda_line_ask(line) != asked)
        return replace(request, requirements=kept, conda_lines=lines)
    if asked.kind == "cuda":
        return with_cuda(request, None)
    if asked.kind == "python":
        return replace(request, pythons=tuple(python for python in request.pythons if python != asked.value))
    if asked.kind == "platform":
        platforms = tuple(platform for platform in request.platforms if platform != asked.value)
        return replace(request, platforms=platforms or _DEFAULTS.platforms)
    if asked.kind in {"gpu-arch", "channel"}:
        several = "gpu_archs" if asked.kind == "gpu-arch" else "channels"
        return request.with_(**{several: tuple(one for one in getattr(request, several) if one != asked.value)})
    field = asked.kind.replace("-", "_")
    return request.with_(**{field: getattr(_DEFAULTS, field)})


def _option_asks(request: StackRequest) -> Iterator[Asked]:
    """The asks of all options, in the order of the command line."""
    values: dict[str, tuple[str | None, ...]] = {
        "torch": (request.torch,),
        "cuda": (request.cuda,),
        "python": request.pythons,
        "platform": request.platforms if request.platforms != _DEFAULTS.platforms else (),
        "glibc": (request.glibc,) if request.glibc != _DEFAULTS.glibc else (),
        "macos": (request.macos,) if request.macos != _DEFAULTS.macos else (),
        "flash-attn": (request.flash_attn,),
        "no-flash-attn": ("",) if request.no_flash_attn else (),
        "driver": (request.driver,),
        "no-driver": ("",) if request.no_driver and request.driver is None else (),
        "gpu-arch": request.gpu_archs,
        "exclude-newer": (request.exclude_newer,),
        "layout": (request.layout,),
        "channel": request.channels,
    }
    places = dict(request.places)
    for kind, given in values.items():
        for value in given:
            if value is not None:
                yield Asked(kind=kind, value=_as_written(value), flag=places.get(kind, PLACES.get(kind, f"--{kind}")))


def _as_written(specifier: str) -> str:
    """`2.3` for `==2.3.*`, which is how the option was read."""
    if specifier.startswith("==") and "," not in specifier:
        return specifier.removeprefix("==").removesuffix(".*")
    return specifier


def _option(asked: Asked) -> str:
    return f"{asked.flag} {asked.value}".strip()


def _option_specifier(text: str, asked: Asked) -> SpecifierSet:
    specifier = option_specifier(text, _option(asked)) if asked.kind == TORCH else None
    specifier = specifier or parse_specifier(text)
    if specifier is None:
        raise BadInput(_option(asked), "is no version and no PEP 440 specifier", "write it as 2.3 or '>=2.3,<2.5'")
    return specifier


def _parse(requirement: Requirement) -> ParsedRequirement:
    """The parsed requirement. Raises BadInput for what is none, and for what cannot be pinned by a hash."""
    text = requirement.text.strip()
    hint = "write it as a name with a specifier (PEP 508), such as 'transformers>=4.40'"
    if text.startswith(("-e", "--editable", ".", "/", "~", "file:")):
        raise BadInput(requirement.origin, "a local project has no hash that a lock could carry",
                       "leave it out of the lock and install it afterwards with --no-deps")
    parsed = parse_requirement(text)
    if parsed is None:
        raise BadInput(requirement.origin, f"{text!r} is no requirement: {_fault(text)}", hint)
    if parsed.url is not None:
        _check_address(requirement, parsed.url)
    return parsed


def _fault(text: str) -> str:
    try:
        ParsedRequirement(text)
    except InvalidRequirement as error:
        return str(error).splitlines()[0]
    return "it cannot be read"


def _check_address(requirement: Requirement, url: str) -> None:
    """Raises BadInput for an address that cannot stand in a lock."""
    scheme = url.partition(":")[0].lower()
    if scheme not in {"https", "http"} or "+" in scheme:
        raise BadInput(requirement.origin, "only a https address of a wheel can be locked", "name a wheel on an index")
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise BadInput(requirement.origin, "the address holds a credential, and a lock may not", "use netrc")
