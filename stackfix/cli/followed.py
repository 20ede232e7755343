"""What the settings of a project ask of its lock: limits, upload dates, and which indexes its projects come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackfix.cli.followed_torch_index import without_torch_index
from stackfix.errors import BadInput
from stackfix.quick import dataclass, replace

if TYPE_CHECKING:
    from pathlib import Path

    from stackfix.cli.common import CommonOptions
    from stackfix.resolve.records import Lock, StackRequest
    from stackfix.sources.records import IndexSettings, UploadLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A request and where to look, once settings are followed."""

    stack: StackRequest
    settings: IndexSettings
    torch_index: str | None         # where pages of the torch index are read; None: as the matrix says
    notes: tuple[str, ...] = ()
    date: UploadLimit | None = None     # the general one, where it is a setting's

    def beside(self, asked: StackRequest) -> tuple[StackRequest, tuple[str, ...]]:
        """What a command line has to ask for `asked` here, and what settings must be changed for it."""
        own = {(each.text, each.origin) for each in self.settings.constraints}
        left = {(each.text, each.origin) for each in asked.requirements}
        changes = [f"take {text} out of {origin}" for text, origin in sorted(own - left)]
        asked = asked.with_(requirements=tuple(
            each for each in asked.requirements if (each.text, each.origin) not in own))
        if self.date is not None and asked.exclude_newer is None:
            changes.append(f"take {self.date.written} out of {self.date.origin}")
        elif self.date is not None and asked.exclude_newer == self.date.moment:
            asked = asked.with_(exclude_newer=None)
        return asked, tuple(changes)


def follow_settings(
    stack: StackRequest, settings: IndexSettings, *, torch_index: str | None, directory: Path | None,
    common: CommonOptions,
) -> Followed:
    """The request with what its settings ask beside the options, which win. Raises BadInput."""
    if not settings.indexes:
        raise BadInput("the settings of uv", "keep the default index for pinned projects (default and explicit) and"
                       " name no other: most of a stack can be looked up nowhere", "name one with --index-url")
    settings = without_torch_index(settings, torch_index=torch_index, directory=directory)
    followed = Followed(stack=stack, settings=settings, torch_index=torch_index, notes=settings.notes)
    if settings.constraints:
        from stackfix.resolve.records import Requirement

        limits = (Requirement(text=each.text, origin=each.origin, constraint=True) for each in settings.constraints)
        followed = replace(followed, stack=stack.with_(requirements=(*stack.requirements, *limits)))
    if settings.uploaded_before:
        followed = with_dates(followed, common)
    if settings.pins:
        from stackfix.cli.followed_pins import with_pins

        followed = with_pins(followed, directory)
    return followed


def with_dates(followed: Followed, common: CommonOptions) -> Followed:
    """The request with the upload dates of settings: the general one where no option says one."""
    stack, limits = followed.stack, followed.settings.uploaded_before
    general = next((limit for limit in limits if limit.project is None and limit.index is None), None)
    own = tuple(limit for limit in limits if limit.project is not None or limit.index is not None)
    used = list(own)
    stack = stack.with_(upload_limits=own)
    notes = followed.notes
    if general is not None and stack.exclude_newer is None and general.moment is not None:
        used.append(general)
        place = f"{general.origin}: {general.written}"
        stack = stack.with_(exclude_newer=general.moment, places=(*stack.places, ("exclude-newer", place)))
        followed = replace(followed, date=general)
        notes += (f"only files uploaded before {general.moment} were taken ({place})",)
    if any(limit.relative for limit in used):
        common.seen.cannot_be_kept("a date that moves with the clock")
    return replace(followed, stack=stack, notes=notes)


def with_settings_notes(lock: Lock, followed: Followed) -> Lock:
    """The lock with notes on its settings, and on what came from another index than the default one."""
    notes = (*followed.notes, *origin_notes(lock, followed.settings))
    return replace(lock, notes=tuple(dict.fromkeys((*lock.notes, *notes)))) if notes else lock


def origin_notes(lock: Lock, settings: IndexSettings) -> list[str]:
    """A line for each other index that packages were taken from; those of the torch index have notes of their own."""
    if not settings.routes and len(settings.indexes) < 2:
        return []
    from stackfix.sources.address import shown, without_credentials

    origins = dict(zip(map(without_credentials, settings.indexes), settings.origin, strict=True))
    default = without_credentials(settings.indexes[-1])
    whys = {route.project: route.why for route in settings.routes}
    found: dict[tuple[str, str], list[str]] = {}
    for target in lock.targets:
        for package in target.packages:
            base = package.files[0].index
            if package.files[0].torch_path is None and (base in origins or package.name in whys) and base != default:
                why = "as its sources say" if package.name in whys else origins.get(base, "")
                labels = found.setdefault((base, why), [])
                labels += [package.name] if package.name not in labels else []
    return [f"taken from {shown(base)} ({why}), not from the default index, and installing needs it: {_few(names)}"
            for (base, why), names in found.items()]


def _few(names: list[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
