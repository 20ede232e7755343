"""Versions told as spans."""

from __future__ import annotations


def versions_text(versions: list[str], order: list[str]) -> str:
    """`2.3.0`, `2.3.0 and 2.3.1`, `2.1.0 to 2.4.1`: spans of `order` (newest first) without a gap."""
    places = sorted(order.index(version) for version in set(versions))
    spans: list[list[int]] = []
    for place in places:
        if spans and place == spans[-1][-1] + 1:
            spans[-1].append(place)
        else:
            spans.append([place])
    words = [word for span in reversed(spans) for word in _span_words(span, order)]
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def _span_words(span: list[int], order: list[str]) -> list[str]:
    newest, oldest = order[span[0]], order[span[-1]]
    return [f"{oldest} to {newest}"] if len(span) > 2 else list(dict.fromkeys((oldest, newest)))
