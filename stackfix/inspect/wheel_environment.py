"""An environment's record as it would be with a wheel installed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from stackfix.inspect.environment_judge import PASSING, Claim, hexadecimal
from stackfix.inspect.environment_objects import library_folders
from stackfix.inspect.environment_records import Copies, Distribution, Environment, FileClaim, Owner, SharedFile
from stackfix.inspect.wheel_file import WheelOverlay, is_replaced
from stackfix.quick import replace


class Claims(Protocol):
    """Who claims a file, and what is said of it: environment_files.InstalledFiles."""

    def owners(self, path: str) -> tuple[Owner, ...]: ...

    def claims(self, path: str) -> list[Claim]: ...


class ClaimsOver:
    """Owners with a wheel's over those below; what it replaces owns nothing any more."""

    def __init__(self, wheel: WheelOverlay, below: Claims) -> None:
        self.wheel, self.below = wheel, below

    def claims(self, path: str) -> list[Claim]:
        """In the order of an inspection: conda's, then by name."""
        found = [each for each in self.below.claims(path) if not is_replaced(each[:1], self.wheel.replaces)]
        if path in self.wheel.claims:
            found.append(self.wheel.claims[path])
            found.sort(key=lambda each: (each[0].manager != "conda", each[0].name))
        return found

    def owners(self, path: str) -> tuple[Owner, ...]:
        """Who claims the path, each once."""
        return tuple(dict.fromkeys(owner for owner, _, _ in self.claims(path)))


def with_wheel(environment: Environment, wheel: WheelOverlay, claims: ClaimsOver) -> Environment:
    """The environment with the wheel's project, files and shared objects, without what an installer would remove."""
    gone = {each.metadata for each in wheel.replaces}
    kept = [each for each in environment.distributions if each.metadata not in gone]
    order = {each.path: place for place, each in enumerate(environment.sites)}
    distributions = tuple(sorted([*kept, wheel.distribution],
                                 key=lambda each: (order.get(each.site, len(order)), each.name)))
    ours = {each.path for each in wheel.shared_objects}
    objects = [each for each in environment.shared_objects
               if each.path not in ours and not is_replaced(each.owners, wheel.replaces)]
    objects += [replace(each, owners=claims.owners(each.path)) for each in wheel.shared_objects
                if is_searched(environment, each.path)]
    objects.sort(key=lambda each: each.path)
    return replace(
        environment, distributions=distributions, copies=tuple(copies_with(environment, wheel, distributions)),
        shared_objects=tuple(objects), library_folders=library_folders(objects),
        shared_files=tuple(shared_with(environment, wheel, claims)),
        file_faults=tuple(each for each in environment.file_faults
                          if each.path not in wheel.claims and not is_replaced((each.owner,), wheel.replaces)),
        notes=(*environment.notes, *wheel.notes),
    )


def is_searched(environment: Environment, path: str) -> bool:
    """Whether a shared object lies where an inspection looks for them; a venv's own lib folder is no such place."""
    folders = [each.path for each in environment.sites] + [f"{environment.prefix}/lib"] * bool(environment.conda)
    return any(path.startswith(f"{folder}/") for folder in folders)


def copies_with(environment: Environment, wheel: WheelOverlay,
                distributions: Sequence[Distribution]) -> Iterator[Copies]:
    """Projects that are there more than once; of the wheel's own what is then true."""
    name = wheel.distribution.name
    yield from (each for each in environment.copies if each.project != name)
    replaced = {each.conda_package for each in wheel.replaces}
    conda = tuple(package.name for package in (environment.conda.packages if environment.conda else ())
                  if name in package.projects and package.name not in replaced)
    several = tuple(each.metadata for each in distributions if each.name == name)
    if len(several) > 1 or conda:
        yield Copies(project=name, distributions=several, conda_packages=conda)


def shared_with(environment: Environment, wheel: WheelOverlay, claims: ClaimsOver) -> Iterator[SharedFile]:
    """Files that several would own, by path."""
    paths = {each.path for each in environment.shared_files}
    paths |= {path for path in wheel.claims if not path.endswith(PASSING) and claims.below.claims(path)}
    for path in sorted(paths):
        stated = tuple(FileClaim(owner=owner, size=size, sha256=hexadecimal(digest))
                       for owner, size, digest in claims.claims(path))
        if len({each.owner for each in stated}) > 1:
            hashes = {each.sha256 for each in stated}
            yield SharedFile(path=path, claims=stated, same=len(hashes) == 1 and None not in hashes)
