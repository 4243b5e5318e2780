"""The page in a real Chromium with the real studio: time to ready, click to sound, gaps, and memory over many takes.

python -m benchmarks.page [--takes 50] needs requirements-test.txt and a Chromium. The settings of app.py apply;
browser, server and engine share this machine, so the figures include all three.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from benchmarks.common.chromium import NoChromium, find
from benchmarks.serving.api_server import StudioProcess

if TYPE_CHECKING:
    from playwright.sync_api import BrowserType, Page

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
SCRIPT = "Hello, it is good to hear you."
PATIENCE_MS = 120_000
AT_REST_MS = 3000
"""A Chromium loads some hundred files for its address bar after its start, a second's work of one core."""
VISITS_UNTIL_KNOWN, WARM_VISITS = 3, 5
"""At the second visit the browser compiles the page's scripts and stores them on disk; a private context does not."""
READY = "addEventListener('studio-ready', () => (window.readyAt = performance.now()))"


@dataclass(frozen=True)
class Report:
    """The fields of the JSON line. Times are medians; ``added`` is the time added by browser, network and player."""

    takes: int
    interactive_ms: float
    """From opening the address in a fresh browser to a page that responds to clicks."""
    warm_ms: float
    """The same in a browser with a profile on disk that has cached the page."""
    server_ms: float
    """Request to first sound, by the server's clock."""
    heard_ms: float
    """Click to first sample played, by the browser's clock."""
    added_ms: float
    added_ms_worst: float
    gaps: int
    """How often the player ran dry, over all takes."""
    heap_mib_first: float
    """JavaScript memory in use after a tenth of the takes, garbage collected."""
    heap_mib_last: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--takes", type=int, default=50)
    takes = parser.parse_args().takes
    try:
        report = measure_in_chromium(takes)
    except NoChromium as missing:
        sys.exit(str(missing))
    print(table(report))
    print(json.dumps(asdict(report)))


def measure_in_chromium(takes: int) -> Report:
    """Start a studio, open its page and generate this many takes. Raises NoChromium."""
    program = find()
    if importlib.util.find_spec("playwright") is None:
        raise NoChromium("no playwright: install requirements-test.txt")
    from playwright.sync_api import sync_playwright

    studio = StudioProcess()
    try:
        studio.wait_until_ready()
        address = f"http://127.0.0.1:{studio.port}/"
        with sync_playwright() as playwright:
            warm = measure_warm(playwright.chromium, program, address)
            browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
            page = browser.new_page()
            page.set_default_timeout(PATIENCE_MS)
            page.wait_for_timeout(AT_REST_MS)
            report = measure(page, address, takes, warm)
            browser.close()
    finally:
        studio.stop()
    return report


def measure_warm(chromium: BrowserType, program: str, address: str) -> float:
    """Median milliseconds to a page that responds to clicks, in a browser that has cached it."""
    with tempfile.TemporaryDirectory() as profile:
        context = chromium.launch_persistent_context(profile, executable_path=program, args=list(FLAGS))
        context.set_default_timeout(PATIENCE_MS)
        times = []
        for _ in range(VISITS_UNTIL_KNOWN + WARM_VISITS):
            page = context.new_page()
            page.wait_for_timeout(AT_REST_MS)  # so that the tab's own start is not counted
            times.append(opened(page, address))
            page.wait_for_timeout(AT_REST_MS)  # compiled scripts are written once the page is idle
            page.close()
        context.close()
    return statistics.median(times[VISITS_UNTIL_KNOWN:])


def opened(page: Page, address: str) -> float:
    """Open the page; returns milliseconds until it responds to clicks, by its own clock."""
    page.add_init_script(READY)
    page.goto(address)
    page.wait_for_function("window.readyAt", polling=100)
    return float(page.evaluate("window.readyAt"))


def measure(page: Page, address: str, takes: int, warm_ms: float) -> Report:
    """Open the page and generate this many takes, one after the other."""
    interactive = opened(page, address)
    page.wait_for_selector("#pill[data-status=ready]")
    page.fill("#script textarea", SCRIPT)
    spoken = []
    heaps = []
    for number in range(1, takes + 1):
        spoken.append(speak(page, number))
        if number in (max(1, takes // 10), takes):
            heaps.append(heap_mib(page))
    added = [client - server for server, client, _ in spoken]
    return Report(
        takes=takes,
        interactive_ms=round(interactive),
        warm_ms=round(warm_ms),
        server_ms=round(statistics.median(server for server, _, _ in spoken), 1),
        heard_ms=round(statistics.median(client for _, client, _ in spoken), 1),
        added_ms=round(statistics.median(added), 1),
        added_ms_worst=round(max(added), 1),
        gaps=sum(gaps for _, _, gaps in spoken),
        heap_mib_first=heaps[0],
        heap_mib_last=heaps[-1],
    )


def speak(page: Page, number: int) -> tuple[float, float, int]:
    """Click Speak and play the take to its end; returns server ms, heard ms, gaps."""
    page.click("#speak")
    page.wait_for_function(
        "(number) => window.studio.current?.number === number && window.studio.current.rtf !== null"
        " && document.querySelector('#dock').dataset.state === 'over'",
        arg=number,
        polling=100,  # not at every animation frame, which would redraw the page
    )
    take = page.evaluate(
        "(({ serverMs, heardMs, underruns }) => [serverMs, heardMs, underruns])(window.studio.current)"
    )
    return take[0], take[1], take[2]


def heap_mib(page: Page) -> float:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return round(metrics["JSHeapUsedSize"] / 2**20, 1)


def table(report: Report) -> str:
    """The report as text."""
    return "\n".join(f"  {name:26} {value:>10}  {note}".rstrip() for name, value, note in rows(report))


def rows(report: Report) -> list[tuple[str, str, str]]:
    """Name, value and note of each figure."""
    return [
        ("page ready for clicks", f"{report.interactive_ms:.0f} ms", "fresh browser"),
        ("and opened again after", f"{report.warm_ms:.0f} ms", "a browser that has cached it, with a profile on disk"),
        ("first sound, server", f"{report.server_ms:.0f} ms", ""),
        ("click to first sample", f"{report.heard_ms:.0f} ms", ""),
        ("of that added by the page", f"{report.added_ms:.0f} ms", f"worst {report.added_ms_worst:.0f}"),
        ("gaps", str(report.gaps), f"in {report.takes} takes"),
        (
            "JavaScript memory",
            f"{report.heap_mib_last:.1f} MiB",
            f"{report.heap_mib_first:.1f} after a tenth of the takes",
        ),
    ]


if __name__ == "__main__":
    main()
