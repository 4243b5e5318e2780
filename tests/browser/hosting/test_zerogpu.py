"""The studio on ZeroGPU, in its own process with the host's package: open, type and listen through Gradio."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from playwright.sync_api import Page, expect

from studio import ROOT
from tests.browser.hosting.intruder import META, called, result, traps, try_everything, upload
from tests.browser.screen import Screen, go
from tests.studio.server import Served
from tests.studio.sounds import tone, wav

Open = Callable[..., Screen]
TWO_SECONDS_24K = round(43 * 2048 * 24_000 / 44_100)


@pytest.fixture(scope="module")
def zerogpu(quick_checkpoint: Path, voices_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    model = shutil.copytree(quick_checkpoint, tmp_path_factory.mktemp("model") / "demo")
    (model / "card.json").write_text(json.dumps({"demo": True}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        "SPACES_ZERO_GPU": "stand-in",  # not a true value for the package `spaces`, so that it does not emulate CUDA
        "PORT": str(port),
        "MODEL": str(model),
        "STUDIO_VOICES": str(voices_folder),
        "STUDIO_HOME": str(tmp_path_factory.mktemp("home")),
        "STUDIO_THREADS": "1",
        "STUDIO_API_KEYS": "secret",
    }
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "app.py")], env=os.environ | environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout
        assert any(line.startswith("Ready") for line in process.stdout), "it did not start"
        url = f"http://127.0.0.1:{port}"
        with httpx.Client(transport=httpx.HTTPTransport(retries=10)) as client:
            assert client.get(f"{url}/health").status_code == 200
        yield Served(url, FastAPI())
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def screen(zerogpu: Served, new_page: Callable[..., Page]) -> Screen:
    """The page, signed in, with takes of two seconds."""
    page = new_page()
    page.goto(zerogpu.url)
    page.get_by_label("Key").fill("secret")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#pill")).to_have_attribute("data-status", "ready")
    screen = Screen(page, zerogpu)
    screen.cut_after(2)
    return screen


def count_requests(screen: Screen, path: str) -> int:
    return sum(path in url for url in screen.requests)


def test_zerogpu_page_speaks_only_through_gradio(screen: Screen) -> None:
    screen.script.fill("Two words")
    seed = str(2**60 + 1)  # JavaScript would round it
    screen.open_sampling()
    screen.page.locator("#seed input").fill(seed)
    expect(screen.page.locator("#kept-seed")).to_contain_text(seed)
    screen.speak.click()
    screen.until_over()
    assert screen.heard()["rendered"] == pytest.approx(TWO_SECONDS_24K, abs=1)
    assert count_requests(screen, "/gradio_api/call/synthesize_stream") == 2 and not count_requests(
        screen, "/v1/audio/speech"
    )
    assert screen.figure("Seed") == seed
    expect(screen.page.get_by_role("menuitem")).to_have_count(0)
    expect(screen.page.locator("#demo-line")).to_contain_text("This is a small demo model")
    for hidden in ("Projects", "API"):
        expect(screen.page.get_by_role("link", name=hidden)).to_have_count(0)


def test_zerogpu_page_compares_and_uses_an_uploaded_clip(screen: Screen, tmp_path: Path) -> None:
    screen.page.get_by_role("button", name="Hear this in other voices").click()
    area = screen.page.get_by_role("region", name="Compare")
    expect(area).to_contain_text("Ready: listen and vote")
    expect(area.locator("[data-cell=B]")).to_contain_text("Bert")
    go(screen.page, "Studio")
    (tmp_path / "me.wav").write_bytes(wav(tone(1.5)))
    screen.bring_clip(tmp_path / "me.wav")
    screen.page.get_by_label("Transcript of the clip").fill("A tone.")
    screen.speak.click()
    screen.page.wait_for_function("window.studio.current.voiceName === 'Your clip'")  # Compare's take played before
    screen.until_over()
    assert screen.heard()["rendered"] == pytest.approx(TWO_SECONDS_24K, abs=1)


def test_endpoints_read_only_their_callers_uploads(zerogpu: Served, tmp_path: Path) -> None:
    with zerogpu.client(headers={"Authorization": "Bearer secret"}) as client, traps(tmp_path / "traps") as laid:
        assert try_everything(client, laid, []) > 100
        clip = {"path": upload(client, "me.wav", wav(tone(2))), "meta": META}
        assert called(client, "/analyze_reference", [clip, "A tone.", 0, 0, 0, -1]).startswith("event: complete")
        sound = result(client, "/voice_preview", ["anna", 0])[0]
        assert client.get(sound["url"]).content[:4] == b"RIFF"
    assert httpx.get(sound["url"]).status_code == 401


def test_refusal_is_shown_and_stop_cancels_the_take(screen: Screen, zerogpu: Served) -> None:
    screen.page.evaluate("window.studio.fields.fill({ voice: 'nobody' })")
    screen.page.wait_for_function("window.studio.fields.values.voice === 'nobody'")
    screen.page.evaluate("window.studio.speak(Object.values(window.studio.fields.values), 1)")
    expect(screen.card).to_contain_text("there is no voice 'nobody'")
    screen.page.evaluate("window.studio.fields.fill({ voice: 'anna', cutAfter: 150 })")
    screen.page.wait_for_function("window.studio.fields.values.cutAfter === 150")
    screen.speak.click()
    screen.page.wait_for_function("window.studio.heard.rendered > 0")
    screen.stop.click()
    zerogpu.until(running=0, waiting=0)
