"""What a snapshot is known to lack, counted."""

from __future__ import annotations

from stackfix.snapshot.records import Made


def holes_of(made: Made) -> tuple[str, ...]:
    """A sentence each."""
    rows = [row for _, _, row in made.every_row()]
    bare = sum(1 for row in rows if not row.get("timestamp"))
    found: list[str] = []
    if bare:
        found.append(f"{bare} of {len(rows)} records state no time, no size and no constrains, as conda-lock.yml has"
                     " none: --exclude-newer leaves them out.")
    if made.inferred:
        found.append(f"The constrains of {len(made.inferred)} records were inferred from their siblings"
                     " (the table `inferred`).")
    return tuple(found)
