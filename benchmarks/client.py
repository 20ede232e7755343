"""The index client beside the clients it stands in for: `python benchmarks/client.py`.

A loopback server (another process) answers from recordings; each client fetches the same pages whole, in a process of
its own, 50 connections at most. Printed: medians of wall and processor seconds (imports counted, interpreter start not)
and the ratio to ours: why stackfix/sources/transport.py speaks HTTP/1.1 itself. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLIENTS = ("stackfix", "http.client", "httpx")
RUN = """
import sys, time
began, spent = time.perf_counter(), time.process_time()
{code}
size = fetch(sys.argv[1], sys.argv[2:])
print(time.perf_counter() - began, time.process_time() - spent, size)
"""
CODE = {
    "stackfix": """
from queue import SimpleQueue
from threading import Thread
from stackfix.sources.records import IndexSettings
from stackfix.sources.transport import Transport
def fetch(base, names):
    transport = Transport(IndexSettings(indexes=(base,), origin=("",), ignored=(), cert=None, proxies=(), no_proxy=None,
                                        timeout=30.0, retries=0))
    def ask(name):
        return len(transport.get(f"{base}/{name}/", limit=1 << 28, unpack=False).body)
    return spread(ask, names)
""",
    "http.client": """
import http.client
from queue import SimpleQueue
from threading import Thread, local
from urllib.parse import urlsplit
def fetch(base, names):
    parts, kept = urlsplit(base), local()
    def ask(name):
        if not hasattr(kept, "connection"):
            kept.connection = http.client.HTTPConnection(parts.netloc, timeout=30)
        kept.connection.request("GET", f"{parts.path}/{name}/")
        return len(kept.connection.getresponse().read())
    return spread(ask, names)
""",
    "httpx": """
import asyncio, httpx
def fetch(base, names):
    async def all_of_them():
        limits, plain = httpx.Limits(max_connections=50), {"Accept-Encoding": "identity"}
        async with httpx.AsyncClient(limits=limits, trust_env=False, timeout=30, headers=plain) as client:
            answers = await asyncio.gather(*(client.get(f"{base}/{name}/") for name in names))
        return sum(len(answer.content) for answer in answers)
    return asyncio.run(all_of_them())
""",
}
SPREAD = """
def spread(ask, names):
    waiting, sizes = SimpleQueue(), []
    for name in names:
        waiting.put(name)
    def work():
        while not waiting.empty():
            try:
                name = waiting.get_nowait()
            except Exception:
                return
            sizes.append(ask(name))
    threads = [Thread(target=work) for _ in range(min(50, len(names)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sizes) == len(names)
    return sum(sizes)
"""


@contextlib.contextmanager
def server(store: Path, delay: float) -> Iterator[str]:
    """The replay server as a process of its own; gives its address."""
    words = [sys.executable, "-m", "tests.replay.server", str(store), "--live", "--delay", str(delay)]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip() if process.stdout else ""
    finally:
        process.terminate()
        process.communicate()


def timed(client: str, url: str, names: list[str]) -> tuple[float, float, int]:
    """Wall and processor seconds of one client for all the pages, and the bytes it got."""
    code = RUN.format(code=SPREAD + CODE[client])
    words = [sys.executable, "-c", code, url, *names]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    wall, processor, size = done.stdout.split()
    return float(wall), float(processor), int(size)


def measure(url: str, names: list[str], runs: int) -> dict[str, tuple[float, float]]:
    """Medians of wall and processor seconds by client; the clients take turns."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for name in names:      # recorded before the clock runs
        opener.open(f"{url}/{name}/").read()
    found: dict[str, list[tuple[float, float, int]]] = {client: [] for client in CLIENTS}
    for _ in range(runs):
        for client in CLIENTS:
            found[client].append(timed(client, url, names))
    if len({size for times in found.values() for _, _, size in times}) != 1:
        raise SystemExit("the clients got different bytes")
    return {
        client: (statistics.median(wall for wall, _, _ in times), statistics.median(cpu for _, cpu, _ in times))
        for client, times in found.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--recordings", type=Path, help="keep the recorded pages here (else a temporary folder)")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from stackfix.matrix.hints import follow
    from stackfix.matrix.load import load_closures

    names = list(follow(dict(load_closures()), ("torch", "torchvision", "transformers")))
    print(f"{len(names)} pages, medians of {options.runs} runs, {os.cpu_count()} cores\n"
          f"{'client':12} {'ms added':>8} {'wall s':>8} {'ratio':>6} {'cpu s':>8} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as scratch:
        for delay in (0.0, 0.03):
            with server(options.recordings or Path(scratch), delay) as url:
                found = measure(url, names, options.runs)
            for client, (wall, processor) in found.items():
                ours = found["stackfix"]
                print(f"{client:12} {delay * 1000:8.0f} {wall:8.3f} {wall / ours[0]:6.2f} {processor:8.3f} "
                      f"{processor / ours[1]:6.2f}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
