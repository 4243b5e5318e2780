"""A real Chromium, started once per run, with the real app, served once per file; each test is a new visitor."""

from __future__ import annotations

import contextlib
import socket
import sys
import types
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from benchmarks.common.chromium import NoChromium, find
from engine import Engine, EngineConfig
from studio.i18n import page_phrases
from studio.settings import Settings
from tests.browser.screen import PATIENCE_MS, Screen
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, serve
from tests.studio.sounds import tone, wav

WITHOUT = "WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "SpareRendererForSitePerProcess", "ScriptStreaming"
"""Address bar suggestions, which are pages that cost more than the studio's, spare renderer processes, and parsing of
scripts while they arrive, even of those that are compiled already."""
WITHOUT_IN_PLAYWRIGHT = (
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades", "LensOverlay"),
    *("HttpsFirstBalancedModeAutoEnable", "MediaRouter", "PaintHolding", "ThirdPartyStoragePartitioning"),
    *("AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints", "NetworkTimeServiceQuerying", "AimEnabled"),
    "PreconnectToSearch",
)
"""Features that Playwright disables: Chromium obeys only the last of two such flags."""
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--process-per-site",  # scripts compiled for one page serve the next
    f"--disable-features={','.join((*WITHOUT, *WITHOUT_IN_PLAYWRIGHT))}",
)


@pytest.fixture(scope="session", autouse=True)
def _page_files() -> Iterator[None]:
    """Read, bundle and compress the page's files once per run, not per studio."""
    # Gradio takes seconds to import, and the process that only distributes the tests does not need it.
    from studio.ui.bundle import PageFiles
    from studio.ui.page import PAGE_FILES

    files = PageFiles.read(PAGE_FILES, page_phrases().texts)
    served = files.app()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PageFiles, "read", lambda *what: files)
        patch.setattr(PageFiles, "app", lambda self: served)
        yield


@pytest.fixture(scope="session")
def voices_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two bundled voices."""
    folder = tmp_path_factory.mktemp("voices")
    for name, hertz in (("anna", 300), ("bert", 150)):
        (folder / f"{name}.wav").write_bytes(wav(tone(1.5, hertz=hertz)))
        (folder / f"{name}.txt").write_text(f"My name is {name}.\n")
    return folder


@pytest.fixture(scope="session")
def ports() -> tuple[int, int]:
    """Two free ports, reused by successive studios, so that the browser can reuse its compiled scripts."""
    with socket.socket() as one, socket.socket() as other:
        for probe in (one, other):
            probe.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


@pytest.fixture(scope="module")
def served(
    quick_checkpoint: Path, voices_folder: Path, ports: tuple[int, int], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """The studio with its page and the real engine on a small random checkpoint."""
    home = str(tmp_path_factory.mktemp("home"))
    settings = Settings(model=str(quick_checkpoint), voices=str(voices_folder), home=home, max_rows=2, threads=1)
    with serve(settings, Engine.start, page=True, port=ports[0]) as studio:
        yield studio


@pytest.fixture
def steered(
    voices_folder: Path, ports: tuple[int, int], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Served]]:
    """Starts a studio with its page, whose start and engine the test controls."""
    free = iter([ports[1]])
    with contextlib.ExitStack() as stack:

        def make(
            engine: Callable[[EngineConfig], FakeEngine] = FakeEngine, wait: bool = True, **options: Any
        ) -> Served:
            def start(config: EngineConfig, progress: Callable[[str, float], None]) -> FakeEngine:
                progress("tuning the fork", 0.4)
                return engine(config)

            home = str(tmp_path_factory.mktemp("home"))
            assert options.keys() <= Settings.model_fields.keys()
            settings = Settings(model="test/model", voices=str(voices_folder), home=home, **options)
            served = serve(settings, start, wait=wait, page=True, port=next(free, 0))
            return stack.enter_context(served)

        yield make


@pytest.fixture
def recogniser(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in recogniser that needs no weights and hears "A steady tone." in everything."""

    class WhisperModel:
        supported_languages = ("en",)

        def __init__(self, name: str, **options: object) -> None:
            pass

        def transcribe(self, audio: np.ndarray, **options: object) -> tuple[list[SimpleNamespace], SimpleNamespace]:
            words = [
                SimpleNamespace(word=f" {word}", start=i / 10, end=(i + 1) / 10, probability=0.9)
                for i, word in enumerate(("A", "steady", "tone."))
            ]
            return [SimpleNamespace(text=" A steady tone.", words=words)], SimpleNamespace(language="en")

    module = types.ModuleType("faster_whisper")
    module.__spec__ = types.SimpleNamespace(name="faster_whisper")  # type: ignore[assignment]
    module.WhisperModel = WhisperModel  # type: ignore[attr-defined]
    module.download_model = lambda name, local_files_only: name  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "faster_whisper", module)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A Chromium whose microphone records a repeated three-second 440 Hz tone."""
    try:
        program = find("chromium-headless-shell")  # draws no windows around the pages: a third less CPU
    except NoChromium as missing:
        pytest.fail(str(missing), pytrace=False)
    recording = tmp_path_factory.mktemp("microphone") / "tone.wav"
    recording.write_bytes(wav(tone(3.0, rate=48_000, hertz=440, level=0.4), 48_000))
    flags = [*FLAGS, f"--use-file-for-fake-audio-capture={recording}"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        yield browser
        browser.close()


DESK: dict[str, Any] = {"viewport": {"width": 1280, "height": 860}}


class Visits:
    """A context for successive visitors with the same kind of screen; each starts without the previous one's data.

    It keeps only fetched and compiled scripts, which would cost seconds per page.
    """

    def __init__(self, browser: Browser, screen: dict[str, Any]) -> None:
        self.context = browser.new_context(**DESK | screen)
        self._own = self.context.new_page()
        self._own.route("**", lambda route: route.fulfill(body=""))
        self._own.goto("http://127.0.0.1/")  # on the studios' site: keeps their renderer process alive
        self._cleaner = self.context.new_cdp_session(self._own)
        self._seen: list[Page] = []  # including closed ones
        self.context.on("page", lambda page: self._seen.append(page))

    def new_page(self) -> Page:
        """An empty page in the renderer process of the others; otherwise each page would start one and leave it."""
        with self.context.expect_page() as opened:
            self._own.evaluate("void open('about:blank')")
        return opened.value

    def end(self) -> None:
        """Close all pages and clear their stored data and permissions."""
        origins = {"/".join(page.url.split("/")[:3]) for page in self._seen if page.url.startswith("http")}
        for page in self._seen:
            page.close()
        self._seen.clear()
        kinds = "cookies,indexeddb,cache_storage,file_systems,service_workers"
        for origin in origins:
            self._cleaner.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": kinds})
            self._own.goto(f"{origin}/")
            # Not by the command above: a page's last write may still be on its way from this process to the disk.
            self._own.evaluate("localStorage.clear()")
        self.context.clear_cookies()
        self.context.clear_permissions()
        self.context.set_offline(False)


@pytest.fixture(scope="session")
def visits(chromium: Browser) -> Callable[..., Visits]:
    """Returns the Visits for a screen with these differences from a desktop's, by number: visitors at the same time."""
    by_screen: dict[str, Visits] = {}

    def of(number: int, **screen: object) -> Visits:
        kind = f"{number} {sorted(screen.items())}"
        return by_screen.get(kind) or by_screen.setdefault(kind, Visits(chromium, screen))

    return of


@pytest.fixture
def new_page(visits: Callable[..., Visits]) -> Iterator[Callable[..., Page]]:
    """Opens an empty page for a new visitor, with further arguments for the context.

    Errors of the page fail the test.
    """
    present: list[Visits] = []
    problems: list[str] = []

    def make(
        permissions: list[str] | None = None,
        color_scheme: Literal["light", "dark"] | None = None,
        reduced_motion: Literal["reduce"] | None = None,
        viewport: ViewportSize | None = None,
        **screen: object,
    ) -> Page:
        visitor = next(one for one in (visits(number, **screen) for number in count()) if one not in present)
        present.append(visitor)
        page = visitor.new_page()
        page.context.set_default_timeout(PATIENCE_MS)
        if permissions:
            page.context.grant_permissions(permissions)
        if viewport:  # not the context's: the page then shares its process, and what is compiled there
            page.set_viewport_size(viewport)
        page.emulate_media(color_scheme=color_scheme, reduced_motion=reduced_motion)
        page.on("pageerror", lambda error: problems.append(str(error)))
        return page

    yield make
    for visitor in present:
        visitor.end()
    assert not problems, f"errors on the page: {problems}"


@pytest.fixture
def open_page(new_page: Callable[..., Page]) -> Callable[..., Screen]:
    """Opens a studio's page in its own context."""

    def make(studio: Served, **options: object) -> Screen:
        return Screen(new_page(**options), studio)

    return make
