"""Links under names that are missing or lead nowhere."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from stackfix.errors import BadInput
from stackfix.plan.records import MakeLink
from stackfix.plan.relink_paths import check_inside


def relink_steps(links: Mapping[str, str]) -> tuple[MakeLink, ...]:
    """Relative links, each after the one that it leads to. Raises BadInput for a path outside, or a circle.

    links: where the link goes -> what it leads to, both relative to the prefix. The folders of both are to be real
    ones: behind a folder that is itself a link, ".." leads elsewhere than the text says.
    """
    for path, target in links.items():
        check_inside(path)
        check_inside(target)
    order: dict[str, None] = {}
    for path in sorted(links):
        chain = [path]
        while links[chain[-1]] in links and links[chain[-1]] not in order:
            ahead = links[chain[-1]]
            if ahead in chain:
                raise BadInput(path, f"would lead to itself: {' -> '.join((*chain, ahead))}")
            chain.append(ahead)
        if links[path] == path:
            raise BadInput(path, "would lead to itself")
        order.update(dict.fromkeys(reversed(chain)))
    return tuple(MakeLink(path=path, target=relative(links[path], path)) for path in order)


def relative(target: str, link: str) -> str:
    """What a link says to lead to `target`."""
    return posixpath.relpath(target, posixpath.dirname(link) or ".")
