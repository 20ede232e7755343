"""Libraries that a foreign copy hides: those that lack what is needed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from stackfix.diagnose.faults_text import (
    capital,
    file_name,
    found_line,
    lacks,
    level_of,
    needs_lines,
    offer_text,
    placed,
    requester_of,
    seen_error,
    shown_way,
    via_text,
    who_needs,
    why_unusable,
)
from stackfix.diagnose.faults_verdict import OWN_PATHS, Copy, Verdict, is_nobodys, verdicts
from stackfix.diagnose.finding_records import Culprit, Finding
from stackfix.diagnose.install_lines import export_line, update_line
from stackfix.diagnose.library_symbols import since_lines
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.provenance import LIBRARY_PATH, PRELOAD, Provenance, folder_of, named, owner_of, trace
from stackfix.diagnose.records import BadLibrary, FoundVia
from stackfix.diagnose.releases import release_of
from stackfix.diagnose.situation import View

# torch 2.6 and later open the wheel's nvJitLink by its path before cuSPARSE asks for it (torch/__init__.py)
TORCH_OPENS_NVJITLINK = (2, 6)
NO_COPY = "no copy in the environment has what is needed"
NOT_AT_HAND = "is neither in the environment's prefix nor in a folder that its Python always imports from"


def find_shadows(view: View) -> Iterator[Finding]:
    """SF101: a copy wins that another one in the loader's reach, or in the environment, should have been."""
    for verdict in verdicts(view):
        if verdict.kind in {"shadow", "both"}:
            yield shadow(view, verdict)


def shadow(view: View, verdict: Verdict) -> Finding:
    """The finding of one shadow."""
    fault, winner, loser = verdict.fault, verdict.winner, verdict.loser
    via = winner.via or FoundVia(step="path")
    cause = trace(view, verdict.winner_object, winner.path, via)
    inside = loser is not None and (view.is_at_hand(loser.path) or (
        loser.via is not None and view.is_inside(winner.path) and is_nobodys(view, winner.path, winner.real_path)))
    return make_finding(
        "SF101", fault.severity, level=level_of(fault), summary=summary(view, verdict, cause),
        why=why(view, verdict, cause),
        culprit=Culprit(path=winner.path, variable=cause.variable,
                        package=named(owner_of(view, winner.path, winner.real_path))),
        requester=requester_of(view, fault), symbols=lacking(verdict), evidence=tuple(evidence(view, verdict, cause)),
        error=seen_error(fault.failure), winner=winner.path, loser=loser.path if loser else None,
        cure=tuple(dict.fromkeys(cures(view, verdict, cause))),
        why_not=None if inside else NO_COPY if loser is None else f"{loser.path} {NOT_AT_HAND}",
    )


def summary(view: View, verdict: Verdict, cause: Provenance) -> str:
    """Who wins and what it lacks; whole paths are in the fields."""
    fault = verdict.fault
    winner = placed(view, verdict.winner.path, shown_way(cause, verdict.winner.via))
    if verdict.is_requester:
        return f"{winner} wins, and does not fit {fault.name}, which {lacks(fault)}"
    return f"{winner} wins, and {lacks(fault, who_needs(fault))}"


def why(view: View, verdict: Verdict, cause: Provenance) -> str:
    """How the winner comes to win, what the loser is, and what is wrong with the winner."""
    offers, failure = offer_text(view, verdict), verdict.fault.failure
    if isinstance(failure, BadLibrary):
        offers = f"the file that wins cannot be loaded: {why_unusable(failure)}"
    nobodys = is_nobodys(view, verdict.winner.path, verdict.winner.real_path)
    put = ("no package of the environment has the file, so somebody has put it there",) if nobodys else ()
    sentences = (f"{cause.how}{beside(verdict.loser, verdict.winner)}", *put, *((offers,) if offers else ()))
    return " ".join(f"{capital(each)}." for each in sentences)


def lacking(verdict: Verdict) -> tuple[str, ...]:
    """Symbols that the winner lacks; nobody knows what a file has that cannot be loaded."""
    return () if verdict.fault.category == "bad" else verdict.fault.symbols


def beside(loser: Copy | None, winner: Copy) -> str:
    """Why the loser loses."""
    if loser is None:
        return ", before the environment's own copy, which does not have what is needed either"
    if loser.via is None:
        return f"; the environment's own copy, {loser.path}, is not where the requester looks"
    if loser.via.step in OWN_PATHS and (winner.via is None or winner.via.step not in OWN_PATHS):
        asks = file_name(loser.via.owner or "")
        return f", and the loader looks there before the {loser.via.step} of {asks}, which leads to {loser.path}"
    return f", and the loader comes to {loser.path} only later, via {via_text(loser.via)}"


def evidence(view: View, verdict: Verdict, cause: Provenance) -> Iterator[str]:
    """Who needs it, what is taken, what would do, and who put the winner there."""
    fault = verdict.fault
    yield from needs_lines(view, fault)
    yield found_line(view, verdict.winner, "taken")
    if isinstance(fault.failure, BadLibrary):
        yield f"{verdict.winner.path}: {why_unusable(fault.failure)}"
    if verdict.loser is not None:
        whole = lacking(verdict) or fault.versions
        yield found_line(view, verdict.loser, "has all of it" if whole else "can be loaded")
    elif verdict.regular is not None:
        yield found_line(view, verdict.regular, "lacks it too" if lacking(verdict) else "lacks what is needed")
    yield from since_lines(view, fault.name, lacking(verdict))
    yield from cause.lines


def cures(view: View, verdict: Verdict, cause: Provenance) -> Iterator[str]:
    """What to do by hand, best first."""
    yield from cause.undo
    loser, winner = verdict.loser, verdict.winner
    owner = owner_of(view, winner.path, winner.real_path)
    if loser is not None and loser.via is not None and is_nobodys(view, winner.path, winner.real_path):
        yield f"{shlex.join(('mv', winner.path, f'{winner.path}.aside'))}  # then {loser.path} is found"
    # a path comes too late for what is preloaded, and the system's whole folder is nothing to put first
    own = loser is not None and view.is_own(loser.path, loser.real_path)
    if loser is not None and own and not verdict.is_requester and cause.variable != PRELOAD and not (
            winner.via is not None and winner.via.step == "RPATH"):      # which goes before the variable
        yield put_first(loser)
        if view.environment.kernels:
            yield 'a running notebook cannot change it: put the variable into "env" of its kernel.json and restart it'
    if owner is not None and owner.manager == "conda" and loser is not None:
        yield f"{update_line(view, owner)}  # or bring {owner.name} to a newer version"
    torch = view.distributions.get("torch")
    if torch is not None and verdict.fault.name.startswith("libnvJitLink") and loser is not None and \
            cause.variable == LIBRARY_PATH and (release_of(torch.version) or ()) < TORCH_OPENS_NVJITLINK:
        yield "or upgrade torch to 2.6 or later, which loads its own nvJitLink first"


def put_first(copy: Copy) -> str:
    """The line that makes one folder the first of LD_LIBRARY_PATH."""
    return export_line([folder_of(copy.path)])
