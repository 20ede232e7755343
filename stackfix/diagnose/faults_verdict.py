"""Who is to blame where a library is there and does not have what is needed: a foreign copy, or the regular one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stackfix.diagnose.families_parts import plain
from stackfix.diagnose.faults import file_at, find_faults, own_copies, serious
from stackfix.diagnose.faults_hidden import offered
from stackfix.diagnose.faults_records import Fault
from stackfix.diagnose.records import BadLibrary, Candidate, FoundVia, LoadedObject
from stackfix.diagnose.situation import Opening, View
from stackfix.inspect.records import ElfObject, FileAt

OWN_PATHS = frozenset({"RPATH", "RUNPATH"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One file that could be loaded under the name in question."""

    path: str
    real_path: str
    identity: str
    via: FoundVia | None            # None: no search comes to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a fault comes from."""

    # "shadow": another copy has all; "both": a foreign copy wins, and the environment's own would not do either;
    # "foreign": a foreign copy, and the environment has none; "own": the regular copy
    kind: str
    fault: Fault
    winner: Copy
    winner_object: LoadedObject | None  # None: it could not be loaded
    loser: Copy | None              # has all that is needed
    regular: Copy | None            # what the requester's own RPATH or RUNPATH gives, else the environment's copy
    is_requester: bool = False      # the winner is the requester itself: it does not fit with the rest


def verdicts(view: View) -> tuple[Verdict, ...]:
    """One for each fault of a library that is there; worked out once for a view."""
    remembered = vars(view)
    if "_verdicts" not in remembered:
        remembered["_verdicts"] = tuple(
            verdict for each in serious(find_faults(view))
            if each.category in {"symbol", "version", "bad"} and not each.is_system
            and (verdict := judge(view, each)) is not None)
    found: tuple[Verdict, ...] = remembered["_verdicts"]
    return found


def judge(view: View, fault: Fault) -> Verdict | None:
    """None where the file that ought to have it is not known."""
    winner = winner_of(view, fault)
    if winner is None:
        return None
    foreign_requester = shadowing_requester(view, fault)
    if foreign_requester is not None:
        return foreign_requester
    copies = tuple(search(view, fault.name, fault.opening, fault.first.number))
    regular = regular_copy(view, fault.name, copies)
    own = view.is_own(winner.path, winner.real_path)
    if regular is not None and regular.identity == winner.identity:
        meant = in_place_of(view, fault, winner, copies)
        return Verdict(kind="own" if meant is None else "shadow", fault=fault, winner=winner,
                       winner_object=fault.provider, loser=meant, regular=regular)
    others = (*copies, *own_files(view, fault.name))
    able = [each for each in others if each.identity != winner.identity and has_all(view, each.path, fault)]
    inside = [each for each in able if view.is_own(each.path, each.real_path)]
    loser = next(iter(inside if inside or own else able), None)
    if loser is not None:
        kind = "shadow"
    elif own:
        kind = "own"
    else:
        kind = "both" if regular is not None else "foreign"
    return Verdict(kind=kind, fault=fault, winner=winner, winner_object=fault.provider, loser=loser, regular=regular)


def in_place_of(view: View, fault: Fault, winner: Copy, copies: Iterable[Copy]) -> Copy | None:
    """What the requester would have but for a file of nobody's that lies in its way: copied or linked by hand.

    Another copy that a package has, else the next one in the same search; None where neither would do.
    """
    if not is_nobodys(view, winner.path, winner.real_path):
        return None
    others = [each for each in copies if each.identity != winner.identity]
    able = (each for each in (*others, *own_files(view, fault.name)) if each.identity != winner.identity
            and view.owners(each.path, each.real_path) and has_all(view, each.path, fault))
    return next(able, None) or next((each for each in others[:1] if has_all(view, each.path, fault)), None)


def is_nobodys(view: View, path: str, real_path: str) -> bool:
    """Whether a file, or a link, lies in the environment and no installer knows it. A link is not what it leads to."""
    is_link = any(each.path == path and each.link is not None for each in view.environment.shared_objects)
    return view.is_own(path) and not (view.owners(path) if is_link else view.owners(path, real_path))


def winner_of(view: View, fault: Fault) -> Copy | None:
    """The file that was taken."""
    if isinstance(fault.failure, BadLibrary):
        path, file = fault.failure.path, file_at(view, fault.failure.path)
        return Copy(path=plain(view, path), real_path=file.real_path if file else path,
                    identity=file.identity if file else path, via=fault.failure.found_via)
    return copy_of_object(view, fault.provider) if fault.provider else None


def copy_of_object(view: View, object_: LoadedObject) -> Copy:
    return Copy(path=plain(view, object_.path), real_path=object_.real_path, identity=object_.identity,
                via=object_.found_via)


def shadowing_requester(view: View, fault: Fault) -> Verdict | None:
    """The requester itself, where it is a foreign copy of a library that the environment has."""
    requester = fault.requester
    if requester is None or view.is_own(requester.path, requester.real_path):
        return None
    own = next(own_files(view, requester.elf.soname or ""), None)
    if own is None or any(view.is_own(each.path, each.real_path) for each in fault.requesters):
        return None
    return Verdict(kind="shadow", fault=fault, winner=copy_of_object(view, requester), winner_object=requester,
                   loser=own, regular=own, is_requester=True)


def search(view: View, name: str, opening: Opening, number: int | None) -> Iterator[Copy]:
    """Every file that a search for `name` comes to: of the object of this number, else of who made the opening."""
    state, caller = opening.outcome.attempted, opening.request.caller
    if number is None and caller is not None:
        number = next((at for at, each in enumerate(state.objects) if each.identity == caller), None)
    for each in view.candidates(name, number if number is not None else 0 if state.objects else None, state):
        if each.bad is None:
            yield copy_of_candidate(view, each)


def copy_of_candidate(view: View, found: Candidate) -> Copy:
    return Copy(path=plain(view, found.path), real_path=found.real_path, identity=found.identity, via=found.found_via)


def regular_copy(view: View, name: str, copies: Iterable[Copy]) -> Copy | None:
    """What would be taken without variables and without the system: the requester's own way, else the own copy."""
    by_itself = next((each for each in copies if each.via is not None and each.via.step in OWN_PATHS), None)
    return by_itself or next(own_files(view, name), None)


def own_files(view: View, soname: str) -> Iterator[Copy]:
    """The environment's files of a soname's name that can be opened."""
    for path in own_copies(view, soname):
        at = view.files.at(path)
        if isinstance(at, FileAt) and isinstance(at.elf, ElfObject):
            yield Copy(path=path, real_path=at.real_path, identity=at.identity, via=None)


def has_all(view: View, path: str, fault: Fault) -> bool:
    """Whether a file has every symbol and version that the fault is about, and can be loaded at all."""
    at = view.files.at(path)
    if not isinstance(at, FileAt) or not isinstance(at.elf, ElfObject):
        return False
    known = {*at.elf.defined_versions, at.elf.base_version}
    if at.elf.defined_versions and not known >= set(fault.versions):
        return False
    return not set(fault.symbols) - set(offered(view, path, fault.symbols))
