"""What can go wrong at the network's edge. Fields, not sentences; addresses are shown without credentials."""

from __future__ import annotations

from stackfix.errors import AnswerIsNo, Unreachable
from stackfix.sources.address import shown

_REPORT = "report it to whoever runs this index, or use another"


class NoSuchProject(AnswerIsNo):
    """No index that was asked has the project."""

    reference = "no-such-project"

    def __init__(
        self, project: str, indexes: tuple[str, ...], asked_by: str | None = None, why: str | None = None,
    ) -> None:
        """`why`: what says that these indexes alone are asked for it."""
        super().__init__(project, indexes, asked_by)
        self.project, self.indexes, self.asked_by, self.why = project, indexes, asked_by, why

    def what(self) -> str:
        wanted = f", which {self.asked_by} asks for," if self.asked_by else ""
        asked = ", ".join(map(shown, self.indexes)) or "none is set"
        return f"{self.project}{wanted} is on no index that was asked ({asked}{f': {self.why}' if self.why else ''})"

    def next_step(self) -> str | None:
        if self.why is not None:
            return "correct that source, or set UV_NO_SOURCES_PACKAGE to this project"
        return "check the spelling, or name the index that has it with --extra-index-url"


class NotFromIndex(AnswerIsNo):
    """The project's own settings say that it comes from no index: one of that name there would be another's."""

    reference = "not-from-index"

    def __init__(self, project: str, why: str) -> None:
        super().__init__(project, why)
        self.project, self.why = project, why

    def what(self) -> str:
        return f"{self.project} is looked up on no index: {self.why}"

    def next_step(self) -> str | None:
        return "ask for it by address (`--with 'NAME @ URL'`), or set UV_NO_SOURCES_PACKAGE to take it from an index"


class NoUploadTimes(AnswerIsNo):
    """An index says of no file when it was uploaded, and files are wanted that are known to be old enough."""

    reference = "no-upload-times"

    def __init__(self, *, project: str, index: str, before: str) -> None:
        super().__init__(project, index, before)
        self.project, self.index, self.before = project, index, before

    def what(self) -> str:
        return (f"{shown(self.index)} does not say when files of {self.project} were uploaded, and only files from"
                f" before {self.before} are to be taken (--exclude-newer, or a setting like it)")

    def next_step(self) -> str | None:
        return ("name an index that states upload times (PEP 700), leave the date out, or exempt this index:"
                " exclude-newer = false in its [[tool.uv.index]]")


class SdistNeedsBuild(AnswerIsNo):
    """The version comes only as an sdist whose metadata would need a build, which the user has not allowed."""

    reference = "sdist-needs-build"

    def __init__(self, project: str, version: str, reason: str, requested_by: str | None = None) -> None:
        super().__init__(project, version, reason, requested_by)
        self.project, self.version, self.reason, self.requested_by = project, version, reason, requested_by

    def what(self) -> str:
        wanted = f" (asked for by {self.requested_by})" if self.requested_by else ""
        return f"{self.project} {self.version}{wanted} has no usable wheel, and its sdist {self.reason}"

    def next_step(self) -> str | None:
        return (f"ask for a version of {self.project} that has wheels, or an index that has a wheel of {self.version};"
                f" --allow-builds {self.project} builds the sdist to read its requirements, which runs its code here")


class SdistBuildFailed(Unreachable):
    """The user allowed a build of the sdist, and it did not tell its metadata."""

    reference = "sdist-build-failed"

    def __init__(self, project: str, version: str, reason: str, hint: str | None = None) -> None:
        super().__init__(f"the sdist of {project} {version}", reason,
                         hint or f"ask for a version of {project} that has wheels, or an index that has a wheel of it")
        self.project, self.version = project, version


class NotAllowedOffline(Unreachable):
    """`--offline`, and the cache does not hold it."""

    reference = "not-in-cache"

    def __init__(self, thing: str) -> None:
        super().__init__(thing, "not in the cache, and --offline forbids asking for it", "run once without --offline")


class RequestFailed(Unreachable):
    """One request to one address failed for good. `status` is the HTTP status, when there was an answer."""

    reference = "request-failed"

    def __init__(self, url: str, reason: str, *, hint: str | None = None, status: int | None = None) -> None:
        super().__init__(shown(url), reason, hint)
        self.status = status


class IndexUnreachable(RequestFailed):
    """Nobody answered: no such host, refused, no route, cut off, too slow."""

    reference = "index-unreachable"


class RateLimited(RequestFailed):
    """The server asked to be left alone for longer than we are ready to wait."""

    reference = "rate-limited"


class TooLarge(RequestFailed):
    """The answer is larger than what such an answer may be."""

    reference = "too-large"


class TooManyProjects(Unreachable):
    """What is asked for leads to more projects than any stack has."""

    reference = "too-many-projects"

    def __init__(self, last: str, most: int) -> None:
        super().__init__(last, f"it would be one more than the {most} projects that one lock may read",
                         "an index that has every project may be to blame; look at what was asked for")


class BadPage(Unreachable):
    """A project page that cannot be trusted or understood."""

    reference = "bad-index-page"

    def __init__(self, project: str, index: str, reason: str) -> None:
        super().__init__(f"page of {project} on {shown(index)}", reason, _REPORT)
        self.project, self.index = project, index


class NoIndexPage(BadPage):
    """HTML that says nothing of the project: a login, a portal, a welcome."""

    def __init__(self, project: str, index: str) -> None:
        super().__init__(project, index, f"is no index page: it lists no file of {project}; a login page answers so")


class BadMetadata(Unreachable):
    """Metadata of one file that is missing, damaged, or about something else."""

    reference = "bad-metadata"

    def __init__(self, filename: str, url: str, reason: str) -> None:
        super().__init__(f"metadata of {filename} at {shown(url)}", reason, _REPORT)
        self.filename = filename


class HashMismatch(Unreachable):
    """Bytes that are not those that were promised."""

    reference = "hash-mismatch"

    def __init__(self, thing: str, url: str, *, stated: str, found: str) -> None:
        super().__init__(f"{thing} at {shown(url)}", f"its sha256 is {found}, stated is {stated}",
                         "do not use this file; try again later or use another index")
        self.stated, self.found = stated, found


class BadRelease(Unreachable):
    """The release source answered something that is no release."""

    reference = "bad-release"


class Closed(Unreachable):
    """The client was closed while something was still asked of it."""

    reference = "closed"

    def __init__(self, thing: str) -> None:
        super().__init__(thing, "the index client was closed")
