"""What loggers, launchers, containers and consoles put before a line, taken off: a message begins where it begins."""

from __future__ import annotations

import re

MOST = 6                        # prefixes of one line: a container's, a launcher's, a logger's, a worker's
DATE = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
LEVEL = r"(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL|[DIWEF])"
FRAMES = "│┃║"
BRANCHES = re.compile(r"[\s│┃║├└╰╭╮╯─━▶┬┤\u00d7╵✗❌]+")     # a word of text must follow: a line of dashes stays

PREFIX = re.compile("|".join((
    # a date, as CI services and container runtimes write it; then a logger's level and place
    rf"\[?{DATE}\]?(?: stderr| stdout)?(?: [FP](?= ))?(?:[:,|]| -)? +(?=\S)",
    rf"{LEVEL} {{3,8}}(?=\S)",
    rf"{LEVEL} {{1,8}}(?:\d\d-\d\d )?\d\d:\d\d:\d\d(?:[.,]\d+)? (?:\[[^\]\s]{{1,120}}:\d+\] ?)?",     # vLLM
    rf"\[?{LEVEL}\]? +(?:[-|] )?(?=\[?{DATE})",
    rf"(?:[-|] )?\[?{LEVEL}\]?(?::[\w.]{{1,80}}:| +[-|] +)(?=\S)",
    r"[DIWEF]\d{4} \d\d:\d\d:[\d.]+ +\d+ [\w./-]{1,200}:\d+\] ",                               # glog, absl
    r":? ?[DIWEF] [\w./-]{1,200}:\d+\] ",                                                      # TensorFlow
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,80} [\w./-]{1,80}(?:\[\d+\])?: ",              # syslog, journalctl
    r"\d\d:\d\d:\d\d(?:[.,]\d+)? +(?=\S)",
    # who of many wrote it
    r"\[rank ?\d+\](?::\[[A-Z]\d[^\]]{0,200}\])?:? ?",
    r"\[(?:default|node)?\d+\](?:<std(?:err|out)>)?: ?",
    r"\((?:[A-Za-z_]\w*[ ,]+)?(?:rank=\d+[ ,]+)?pid=\d+(?:, ?ip=[\d.]+)?\) ",                  # Ray, vLLM
    r"[\w.-]{1,80}(?:[-_]\d+ +| {2,})\| (?=\S)",                                               # docker compose
    r"#\d{1,4} \d+\.\d+ ",                                                                     # docker build
    r" ?=> => # ",
    r"\[[\w.-]{1,80}/[\w.-]{1,80}(?:/[\w.-]{1,80})?\] ",                                       # kubectl, act
    # who quotes it
    r"> +(?=\S)",
    r"E {3,}(?=\S)",                                                                           # pytest
    r"\| +(?=\S)",                                                                             # exception groups
    r"\[stderr\] ",
)))


def without_prefixes(line: str) -> str:
    """The line without what was put before it."""
    for _ in range(MOST):
        line = without_branch(line)
        found = PREFIX.match(line)
        if found is None or found.end() == len(line):
            break
        line = line[found.end():].lstrip()
    return line


def without_branch(line: str) -> str:
    """The line without the branches and arrows that resolvers draw before it."""
    if line[:1].isascii():
        return line
    found = BRANCHES.match(line)
    return line[found.end():].removeprefix(">").lstrip() if found and found.end() < len(line) else line


def without_frame(line: str) -> str:
    """The line without the box that it was drawn into."""
    inside = line.strip()
    if len(inside) < 2 or inside[0] not in FRAMES:
        return line
    return (inside[1:-1] if inside[-1] in FRAMES else inside[1:]).removeprefix(" ").rstrip()
