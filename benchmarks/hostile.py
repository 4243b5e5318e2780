"""The longest that a health check waits beside hostile texts: a real server in its own process, one text at a time.

python -m benchmarks.hostile [--out FILE] sends every text of tests/patterns/hostile_texts.py, with as many characters
as a request may have, to the routes that read texts, while another thread asks for /health every 5 ms. It prints the
slowest texts and one JSON object last. Other hostile things are further entries of REQUESTS.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

from benchmarks.common.report import Report, table
from benchmarks.serving.api_server import StudioProcess
from tests.patterns.hostile_texts import TEXTS

SIZE = 16_000
"""Characters; a request may have a few more."""
PERIOD = 0.005
PATIENCE = 2.0
"""Seconds until the caller leaves, since a batch answers only after its speech; a text is read much sooner."""
Request = tuple[str, str, dict[str, object]]
"""A name, the path, and the body in JSON."""


def _texts() -> Iterator[Request]:
    """Each text to the route that only reads it, and to one of those that speak it."""
    for number, (name, make) in enumerate(TEXTS.items()):
        text = make(SIZE)
        yield name, "/v1/audio/speech/reading", {"input": text}
        spoken: tuple[Request, ...] = (
            (name, "/v1/audio/speech", {"input": text}),
            (name, "/v1/tts", {"text": text}),
            (name, "/v1/audio/speech/batch", {"items": [{"input": text}]}),
        )
        yield spoken[number % 3]


REQUESTS: tuple[Callable[[], Iterator[Request]], ...] = (_texts,)


class Watch:
    """Asks for /health all the time, and keeps the longest answer since the last look."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._longest, self._asked = 0.0, 0.0
        self._stopped = threading.Event()
        threading.Thread(target=self._ask, daemon=True).start()

    def _ask(self) -> None:
        with httpx.Client(base_url=self._address, timeout=300) as client:
            while not self._stopped.wait(PERIOD):
                self._asked = time.perf_counter()
                client.get("/health")
                self._longest, self._asked = max(self._longest, time.perf_counter() - self._asked), 0.0

    def look(self) -> float:
        """Seconds, with those of the check that still waits."""
        waiting = time.perf_counter() - self._asked if self._asked else 0.0
        longest, self._longest = max(self._longest, waiting), 0.0
        return longest

    def stop(self) -> None:
        self._stopped.set()


def measure(address: str, report: Report) -> None:
    watch, waits = Watch(address), list[tuple[float, str, str]]()
    with httpx.Client(base_url=address, timeout=300) as client:
        for request in (request for make in REQUESTS for request in make()):
            name, path, body = request
            watch.look()
            with contextlib.suppress(httpx.ReadTimeout), client.stream("POST", path, json=body, timeout=PATIENCE):
                pass  # the first byte follows the reading
            time.sleep(4 * PERIOD)
            waits.append((watch.look(), name, path))
    watch.stop()
    waits.sort(reverse=True)
    table(
        "The longest waits for /health",
        [{"ms": round(1000 * seconds, 1), "text": name, "to": path} for seconds, name, path in waits[:10]],
    )
    report.add({"requests": len(waits), "texts": len(TEXTS), "health_worst_ms": round(1000 * waits[0][0], 1)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    report = Report(parser.parse_args().out)
    with tempfile.TemporaryDirectory() as home:
        studio = StudioProcess(STUDIO_HOME=home, STUDIO_PAGE="0")
        try:
            studio.wait_until_ready()
            measure(studio.address, report)
        finally:
            studio.stop()
    report.close()


if __name__ == "__main__":
    main()
