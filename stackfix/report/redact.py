"""Text without the logins of addresses in it: what is shown goes into logs."""

from __future__ import annotations

import re

# Quotes and blanks end an address, so it may run over JSON text; the last @ before the path ends the login (RFC 3986)
LOGIN = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*:/{1,2})[^/\s'\"]*@")


LONGEST = 2000          # letters of one line of what others say


def one_line(text: str) -> str:
    """`text` as it can be shown, whoever wrote it: nothing that moves, paints or turns what stands around it."""
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return cut if cut.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in cut)


def redacted(text: str) -> str:
    """`text` with `user:password@` taken out of every address."""
    return LOGIN.sub(lambda match: match["scheme"], text) if "@" in text else text
