"""A failure as a refusal: the fewest asks that cannot be met together, what ties them, what could be asked instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stackfix.errors import StackfixError
from stackfix.matrix.records import Rule
from stackfix.quick import replace
from stackfix.resolve.assemble import gives
from stackfix.resolve.changes import Change, changes_of, option, replaced, settled
from stackfix.resolve.clash import Clash
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashAttn
from stackfix.resolve.links import causes_of, involved_asks, resting_on
from stackfix.resolve.nightly_ask import names_nightly
from stackfix.resolve.question import parse_request, without
from stackfix.resolve.records import Asked, Cause, NoConsistentStack, Offer, StackRequest
from stackfix.resolve.roots import asked_by
from stackfix.resolve.solve import Failure, Solved, Solver, solve
from stackfix.resolve.torch_family import torch_path
from stackfix.resolve.trial import Trials
from stackfix.sources.errors import NoSuchProject, SdistNeedsBuild

MAX_OFFERS = 3
MAX_REDUCING = 40       # solves for the fewest asks
MAX_OFFERING = 60       # solves for the nearest changes
OFFERING_STEPS = 130_000
MAX_RULES = 12          # rules of the matrix that together stand in for one cause


def refuse(
    evidence: Evidence, flash: FlashAttn, failure: Failure, command: Callable[[StackRequest], str],
    solver: Solver = solve,
) -> StackfixError:
    """The error to raise for a failure; `solver` is what found it, and tells what a changed request would give."""
    plainer = _about_one_file(evidence, failure)
    if plainer is not None:
        return plainer
    reducing = Trials(evidence, flash, solver, bound=MAX_REDUCING)
    least, asks = _fewest_asks(reducing, failure)
    own = [ask.specifier for ask in failure.question.torch]
    causes = _whole_rules(reducing, least, causes_of(_as_asked(reducing, failure, least, asks), asks, own))
    causes = (*causes, *_of_rows_alone(evidence, least))
    offering = Trials(evidence, flash, solver, bound=MAX_OFFERING, steps=OFFERING_STEPS)
    request = failure.question.request
    single = tuple(_offers(offering, request, asks, command))
    nearest = single or tuple(_double_offers(offering, request, asks, command))
    unsure = reducing.spent or reducing.unreached or failure.unsure
    return NoConsistentStack(headline=_headline(asks, unsure=unsure), causes=causes, nearest=nearest)


def _of_rows_alone(evidence: Evidence, failure: Failure) -> Iterator[Cause]:
    """That a torch index which could not be reached may have more than the matrix knows of it."""
    away = evidence.torch_wheels.away if evidence.torch_wheels is not None else None
    stacks = (refusal.stack for refusal in failure.refusals)
    if away is not None and any(torch_path(build) for stack in stacks for build in stack.builds.values()):
        yield Cause(
            kind="index", source="rows of the torch index in the matrix",
            text=f"the torch index could not be reached ({away.reason}): what the matrix knows of its files stands in",
        )


def _headline(asks: list[Asked], *, unsure: bool) -> str:
    rest = " (there may be a shorter reason: not every part of the request was tried without)" if unsure else ""
    if not asks:
        return f"no stack of the matrix can be locked from this index{rest}"
    names = [option(asked) for asked in asks]
    if len(names) == 1:
        return f"no stack has {names[0]}{rest}"
    return f"no stack has {', '.join(names[:-1])} together with {names[-1]}{rest}"


def _about_one_file(evidence: Evidence, failure: Failure) -> StackfixError | None:
    """The plain error where all comes down to a project that no index has, or to an sdist that only a build reads."""
    if any(reason.kind == "channel" for refusal in failure.refusals for reason in refusal.reasons):
        return None                     # channels were asked, too, and what they lack is another thing
    clashes = [refusal.clash for refusal in failure.refusals if refusal.clash is not None]
    errors = [_plain_error(evidence, clash) for clash in clashes]
    return errors[0] if errors and all(error is not None for error in errors) else None


def _plain_error(evidence: Evidence, clash: Clash) -> StackfixError | None:
    """What stands behind one clash, where it is one project that cannot be had at all."""
    needs = clash.needs if not clash.refuted else tuple(case.need for case in clash.refuted)
    name = needs[0].name.removeprefix("!").partition(" ")[0] if needs else ""
    if any(need.name.removeprefix("!").partition(" ")[0] != name for need in needs):
        return None
    asker = ", ".join(sorted({asked_by(need) for need in needs}))
    missing, unbuilt = evidence.missing.get(name), evidence.unbuilt.get(name)
    if missing is not None:
        return NoSuchProject(name, missing.indexes, asker)
    if unbuilt is not None and not _has_wheel(clash, name):
        return SdistNeedsBuild(name, unbuilt.version, unbuilt.reason, asker)
    return None


def _has_wheel(clash: Clash, name: str) -> bool:
    """Whether the target takes a wheel of the project: then that wheel's misfit is the reason, and no sdist."""
    best = next(clash.problem.project(name).candidates(()), None)
    return best is not None and best.files[0].is_wheel


def _fewest_asks(trials: Trials, failure: Failure) -> tuple[Failure, list[Asked]]:
    """Asks none of which can be missed, and the failure that they alone lead to."""
    asks = list(failure.question.asks)
    least = failure
    kept = [ask.asked for ask in failure.question.torch if names_nightly(ask.specifier)]     # else another question
    involved = [asked for asked in asks if asked in {*involved_asks(failure), *kept}]
    if len(involved) < len(asks):
        alone = trials.solve(_only(failure.question.request, involved))
        if isinstance(alone, Failure):
            least, asks = alone, involved
    for asked in reversed([one for one in asks if one not in kept]):
        fewer = [one for one in asks if one != asked]
        request = _only(failure.question.request, fewer)
        found = trials.solve(without(request, asked) if asked.kind == "no-flash-attn" else request)
        if isinstance(found, Failure) and not (asked.kind == "cuda" and _is_of_usual_builds(found)):
            least, asks = found, fewer
    return least, asks


def _is_of_usual_builds(failure: Failure) -> bool:
    """Whether it is about builds that are taken only where no CUDA is asked for: that is no part of one that is."""
    return any(reason.usual for refusal in failure.refusals for reason in refusal.reasons)


def _as_asked(trials: Trials, failure: Failure, least: Failure, asks: list[Asked]) -> Failure:
    """The least failure on the targets that were asked for, if it is the same there: files named are then theirs."""
    targets = [asked for asked in failure.question.asks if asked.kind in {"python", "platform"}]
    found = trials.solve(_only(failure.question.request, [*asks, *targets])) if targets else None
    same = found if isinstance(found, Failure) else least
    kept = [refusal for one in same.refusals if (refusal := resting_on(one, same, asks)) is not None]
    return replace(same, refusals=tuple(kept)) if len(kept) == len(same.refusals) else least


def _only(request: StackRequest, asks: list[Asked]) -> StackRequest:
    """The request with nothing asked but these. `--no-flash-attn` stays: it makes nothing impossible that is not so."""
    for asked in parse_request(request).asks:
        if asked not in asks and asked.kind != "no-flash-attn":
            request = without(request, asked)
    return request


def _whole_rules(trials: Trials, least: Failure, causes: tuple[Cause, ...]) -> tuple[Cause, ...]:
    """The causes, each rule of the matrix joined by the others that would stand in the way without it."""
    return tuple(
        _joined(trials, least, cause) if any(isinstance(row, Rule) for row in cause.rows) else cause
        for cause in causes
    )


def _joined(trials: Trials, least: Failure, cause: Cause) -> Cause:
    for _ in range(MAX_RULES):
        smaller = trials.evidence.without_rules(cause.rows)
        found = Trials(smaller, trials.flash, trials.solver, bound=1).solve(least.question.request)
        if not isinstance(found, Failure):
            return cause
        new = [
            other for other in causes_of(found, least.question.asks)
            if any(isinstance(row, Rule) and row not in cause.rows for row in other.rows)
        ]
        if not new:
            return cause
        text = f"{cause.text}; likewise {_joining_words(new[0])}"
        cause = replace(cause, text=text, rows=(*cause.rows, *new[0].rows))
    return cause


def _joining_words(cause: Cause) -> str:
    """The cause; of two projects that cannot stand beside each other, as after another such pair, only their names."""
    rule = cause.rows[0]
    if isinstance(rule, Rule) and rule.needs.endswith("<0"):
        return f"{rule.package} and {rule.needs.removesuffix('<0')}"
    return cause.text


def _offers(
    trials: Trials, request: StackRequest, asks: list[Asked], command: Callable[[StackRequest], str]
) -> Iterator[Offer]:
    """Up to three changes that were solved: the nearest for each ask in turn, then the next nearest."""
    found = 0
    queues = {asked: _solved_changes(trials, request, asked) for asked in asks}
    told: set[tuple[str, str]] = set()
    while queues and found < MAX_OFFERS:
        for changed, queue in list(queues.items()):
            entry = next(queue, None)
            if entry is None:
                del queues[changed]
                continue
            change, solved = entry
            line = command(change.request)
            if (line, _in_the_file(change.request, changed) and change.text) not in told and found < MAX_OFFERS:
                told.add((line, _in_the_file(change.request, changed) and change.text))
                found += 1
                text = change.text + _in_the_file(change.request, changed) + _not_read(solved)
                yield Offer(change=text, command=line, gives=gives(trials.evidence, solved))


def _in_the_file(request: StackRequest, changed: Asked) -> str:
    """That the change is one of a file, where the command asks by that file."""
    of_file = any(line.origin.partition(" line ")[0] == changed.flag.partition(" line ")[0]
                  for line in request.conda_lines)
    return ", once the file says so" if of_file else ""


def _not_read(solved: Solved) -> str:
    """` (not read: auto-gptq 0.7.0)`: versions that nobody knows to load with the torch of the offer."""
    guesses = {
        candidate.label: None for closure in solved.closures.values() for candidate in closure.chosen.values()
        if candidate.extra is None and closure.problem.is_guess(candidate)
    }
    return f" (not read: {', '.join(sorted(guesses))})" if guesses else ""


def _double_offers(
    trials: Trials, request: StackRequest, asks: list[Asked], command: Callable[[StackRequest], str]
) -> Iterator[Offer]:
    """Where no single change helps, since something else clashes too: one ask left out, and a change for the rest."""
    for asked in asks:
        rest = without(request, asked)
        found = trials.solve(rest)
        if not isinstance(found, Failure):
            continue
        for offer in _offers(trials, rest, involved_asks(found), command):
            yield replace(offer, change=f"without {option(asked)}, and {offer.change}")
            break


def _solved_changes(trials: Trials, request: StackRequest, asked: Asked) -> Iterator[tuple[Change, Solved]]:
    for change in (*_other_nightlies(trials, request, asked), *changes_of(trials.evidence.matrix, request, asked)):
        solved = trials.solve(change.request)
        if not isinstance(solved, Solved):
            continue
        if change.settle is None:
            yield change, solved
            continue
        version = _found_version(solved, change.settle)
        if version is None:
            continue
        exact = settled(change.request if asked.kind == "flash-attn" else request, asked, change.settle, version)
        again = trials.solve(exact.request)
        if isinstance(again, Solved):
            yield exact, again


def _other_nightlies(trials: Trials, request: StackRequest, asked: Asked) -> Iterator[Change]:
    """Other days, where this asks for a nightly by its day."""
    question = parse_request(request)
    if not any(ask.asked == asked and names_nightly(ask.specifier) for ask in question.torch):
        return
    from stackfix.resolve.nightly_reasons import other_days

    for version in other_days(trials.evidence, question):
        if asked.kind == "torch":
            changed, text = request.with_(torch=f"=={version}"), f"{asked.flag} {version} in place of {asked.value}"
        else:
            changed = replaced(request, asked, f"torch=={version}")
            text = f"torch=={version} in place of {option(asked)}"
        yield Change(request=changed, text=text)


def _found_version(solved: Solved, project: str) -> str | None:
    """The version of a project in the solution, where all targets agree."""
    if project == "flash-attn":
        return solved.plan.version if solved.plan is not None else None
    found = {
        str(closure.chosen[project].version) for closure in solved.closures.values() if project in closure.chosen
    }
    return found.pop() if len(found) == 1 else None
