"""companions.toml, rules.toml, closures.toml and sources.toml to records."""

from __future__ import annotations

from stackfix.matrix.faults import Faults
from stackfix.matrix.records import Companion, Rule, Sources
from stackfix.matrix.rows import Origins, Row

SAME = ("minor", "major", "any")


def parse_companions(document: dict[str, object], faults: Faults) -> tuple[Companion, ...]:
    """Companions in file order: every table but `[defaults]` and `[sources]` is a package."""
    top = Row(document, "", faults)
    origins = Origins(top, faults)
    companions: list[Companion] = []
    for package in top.names():
        if package in {"defaults", "sources"}:
            continue
        faults.check(package, "name", package)
        table = top.table(package)
        same_cuda, on_windows = table.chosen("same_cuda", SAME), table.optional_flag("cuda_on_windows")
        source, confidence = origins.of(table)
        seen: set[str] = set()
        for row in table.rows("releases", name_by="version"):
            origin = origins.of(row, source, confidence)
            companion = _companion(row, package, same_cuda, origin, on_windows=on_windows)
            if companion.version in seen:
                row.fault("given twice")
            seen.add(companion.version)
            companions.append(companion)
        table.done()
    return tuple(companions)


def _companion(row: Row, package: str, same_cuda: str, origin: tuple[str, str], *, on_windows: bool) -> Companion:
    companion = Companion(
        package=package,
        version=row.text("version", "version"),
        torch=row.optional("torch", "specifier"),
        cuda=row.optional("cuda", "minor"),
        same_cuda=row.chosen("same_cuda", SAME, same_cuda),     # its own check may be another than the newest one's
        requires=row.lines("requires", "requirement", needed=False),
        cuda_on_windows=on_windows,
        source=origin[0],
        confidence=origin[1],
    )
    row.done()
    return companion


def parse_rules(document: dict[str, object], faults: Faults) -> tuple[Rule, ...]:
    """Rules in file order."""
    top = Row(document, "", faults)
    origins = Origins(top, faults)
    rules: list[Rule] = []
    seen: set[tuple[str, str, str]] = set()
    for group in top.rows("group", name_by="package"):
        package = group.text("package", "name")
        source, confidence = origins.of(group)
        for row in group.rows("rules", name_by="versions"):
            rule = _rule(row, package, origins.of(row, source, confidence))
            key = (package, rule.versions, rule.needs)
            if key in seen:
                row.fault(f"{rule.needs} given twice")
            seen.add(key)
            rules.append(rule)
        group.done()
    top.done()
    return tuple(rules)


def _rule(row: Row, package: str, origin: tuple[str, str]) -> Rule:
    rule = Rule(
        package=package,
        versions=row.text("versions", "specifier"),
        needs=row.text("needs", "requirement"),
        why=row.text("why"),
        source=origin[0],
        confidence=origin[1],
    )
    row.done()
    return rule


def parse_closures(document: dict[str, object], faults: Faults) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """(project, projects its closure usually holds), in file order."""
    top = Row(document, "", faults)
    table = top.table("closure")
    closures = []
    for project in table.names():
        faults.check(project, "name", f"closure {project}")
        closures.append((project, table.lines(project, "name")))
    top.done()
    return tuple(closures)


def parse_sources(document: dict[str, object], faults: Faults) -> Sources:
    """The base addresses."""
    top = Row(document, "", faults)
    torch, flash, conda = top.table("torch"), top.table("flash-attn"), top.table("conda")
    sources = Sources(
        torch_index=torch.text("index", "address"),
        release_api=flash.text("api", "address"),
        release_download=flash.text("download", "address"),
        conda_channels=tuple((name, conda.text(name, "address")) for name in conda.names()),
    )
    for table in (torch, flash, top):
        table.done()
    return sources
