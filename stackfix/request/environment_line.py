"""One dependency of an environment.yml: a MatchSpec, taken apart, and its version as pip writes it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stackfix.errors import BadInput

SPEC = re.compile(r"(?:(?P<channel>[^\s\[\]]+)::)?(?P<name>[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?)"
                  r"\s*(?P<rest>[^A-Za-z0-9_.\s-].*|(?<=\s)\S.*)?")
EXACT = re.compile(r"={1,2}(?P<version>[^=\s,|<>!~]+)=(?P<build>[^=\s]+)")
BRACKETS = re.compile(r"(?P<before>[^\[]*)\[(?P<inside>[^\]]*)\]")
PAIR = re.compile(r"\s*(?P<key>[a-z_0-9]+)\s*=\s*(?P<quote>['\"]?)(?P<value>[^'\"]*)(?P=quote)\s*")
CLAUSE = re.compile(r"(?P<operator>==|~=|!=|>=|<=|=|>|<)?\s*(?P<version>[0-9A-Za-z.!+_-]*)(?P<star>\*?)")
VERSION_TEXT = re.compile(r"[0-9A-Za-z.*!+<>=|,~()_ -]*")
BUILD_TEXT = re.compile(r"[0-9A-Za-z_.*+]*")
CHANNEL_TEXT = re.compile(r"[0-9A-Za-z_.:/+-]*")
BRACKET_KEYS = frozenset({"version", "build", "channel", "subdir", "md5", "sha256", "build_number", "url", "fn"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """A MatchSpec as it is written, and its parts."""

    text: str                       # as it is written
    name: str                       # lower case
    version: str | None             # ">=1.2,<2", "=1.2", "1.2"; None: any
    build: str | None
    channel: str | None


def parse_dependency(text: str, where: str) -> Dependency:
    """The parts. Raises BadInput for what is no MatchSpec of a named package."""
    stated = text.strip()
    found = SPEC.fullmatch(stated)
    if found is None or len(stated) > 500:
        raise BadInput(where, f"is no dependency: {stated[:80]!r}", "write it as `numpy>=1.26` or `numpy=1.26.4`")
    rest = (found["rest"] or "").strip()
    bracketed = BRACKETS.fullmatch(rest)
    pairs = dict(bracket_pairs(bracketed["inside"], where)) if bracketed else {}
    rest = bracketed["before"].strip() if bracketed else rest
    exact = EXACT.fullmatch(rest)
    if exact is not None:
        version, build = exact["version"], exact["build"]
    else:
        version, _, build = rest.partition(" ") if not re.search(r"[,|<>!~=]\s", rest) else (rest, "", "")
    version = pairs.get("version", version.strip())
    build = pairs.get("build", build.strip())
    channel = pairs.get("channel", found["channel"] or "")
    for part, allowed in ((version, VERSION_TEXT), (build, BUILD_TEXT), (channel, CHANNEL_TEXT)):
        if allowed.fullmatch(part) is None:
            raise BadInput(where, f"is no dependency: {stated[:80]!r}", "write it as `numpy>=1.26` or `numpy=1.26.4`")
    return Dependency(
        text=stated, name=found["name"].lower(), version=version or None,
        build=build or None, channel=channel or None)


def conda_text(one: Dependency) -> str:
    """The MatchSpec in the one form in which specs are passed on here: `name version build`, and a channel."""
    version = conda_version(one)
    parts = [one.name, *([version or "*", one.build] if one.build else [version] if version else [])]
    channel = f"[channel='{one.channel}']" if one.channel else ""
    return " ".join(parts) + channel


def conda_version(one: Dependency) -> str | None:
    """The version as rattler reads it behind a blank: `1.2.*` of `=1.2`, `==1.2` of a bare one; None for any."""
    version = "".join((one.version or "").split())
    if version in {"", "*"}:
        return None
    if re.fullmatch(r"=[^=].*", version):
        text = version[1:].removesuffix("*").rstrip(".")
        return f"{text}.*"
    return f"=={version}" if re.fullmatch(r"[0-9A-Za-z.!+_-]+", version) else version


def bracket_pairs(inside: str, where: str) -> list[tuple[str, str]]:
    """The pairs of `[version='>=1', build='py*']`."""
    pairs = []
    for part in re.split(r",(?=\s*[a-z_0-9]+\s*=)", inside):
        found = PAIR.fullmatch(part)
        if found is None or found["key"] not in BRACKET_KEYS:
            raise BadInput(where, f"is no dependency: {part.strip()[:80]!r} in brackets")
        pairs.append((found["key"], found["value"]))
    return pairs


def pip_specifier(one: Dependency) -> str | None:
    """The version as pip writes it: `==1.26.*` of `=1.26`; "" for any; None where pip has no words for it."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    if one.version is None or one.version == "*":
        return ""
    if "|" in one.version or "(" in one.version:
        return None
    clauses = [pip_clause(part.strip()) for part in one.version.split(",")]
    known = [clause for clause in clauses if clause is not None]
    try:
        SpecifierSet(",".join(known))
    except InvalidSpecifier:
        return None
    return ",".join(clause for clause in known if clause) if len(known) == len(clauses) else None


def pip_clause(text: str) -> str | None:
    """One clause; "" for any version, None for what is none."""
    found = CLAUSE.fullmatch(text)
    if found is None:
        return None
    version = found["version"].rstrip(".")
    starred = bool(found["star"])
    operator = found["operator"]
    if not version:
        return "" if starred else None
    if operator is None:
        return f"=={version}.*" if starred else f"=={version}"
    if operator == "=":
        return f"=={version}.*"
    if operator in {"==", "!="}:
        return f"{operator}{version}{'.*' if starred else ''}"
    return f"{operator}{version}"
