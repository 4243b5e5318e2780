"""What the page says during warm-up, after a refusal, and without an engine or a connection."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
from playwright.sync_api import expect

from engine import EngineConfig
from tests.browser.screen import Screen, go
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served
from tests.studio.sounds import tone, wav

Open = Callable[..., Screen]
Steer = Callable[..., Served]


def test_refused_speak_is_explained_until_its_cause_is_gone(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    for nothing in ("   ", ""):
        screen.script.fill(nothing)
        screen.speak.click()
        expect(screen.card).to_contain_text("There is nothing to say.")
        expect(screen.card).to_contain_text("Write a sentence, then press Speak.")
    assert not [url for url in screen.requests if url.endswith("/v1/audio/speech")], "the server was not asked"
    screen.page.wait_for_timeout(800)  # earlier input events arrive after the click
    screen.script.fill("Something")
    expect(screen.card).to_be_hidden()

    screen.script.fill("word " * 4000)
    screen.speak.click()
    expect(screen.card).to_contain_text("The studio could not generate this.")
    expect(screen.card).to_contain_text("“Script” has 20000 characters; at most 16384")
    expect(screen.card).to_contain_text("Change the script and press Speak again.")
    expect(screen.script).to_have_value("word " * 4000)
    expect(screen.speak).to_be_visible()
    screen.card.get_by_role("button", name="Close").click()
    expect(screen.card).to_be_hidden()

    attack = "<img src=x onerror=\"document.body.dataset.hacked='yes'\"> [<b>tag</b>]"
    screen.cut_after(2)
    screen.script.fill(attack)
    screen.speak.click()
    expect(screen.takes).to_contain_text(attack)
    expect(screen.takes).to_contain_text("Take 1")  # refused requests get no number
    screen.until_over()
    assert screen.page.locator("body").get_attribute("data-hacked") is None, "what people type is never run"


def test_speak_during_warm_up_waits_can_be_stopped_and_starts_once_ready(steered: Steer, open_page: Open) -> None:
    gate = threading.Event()

    def slow_start(config: EngineConfig) -> FakeEngine:
        gate.wait(60)
        return FakeEngine(config)

    screen = open_page(steered(slow_start, wait=False))
    expect(screen.page.locator("#pill")).to_contain_text("Warming up 40 % · tuning the fork")
    screen.speak.click()
    screen.stop.click()
    expect(screen.speak).to_be_visible()
    screen.script.fill("Two words")
    screen.speak.click()
    expect(screen.status).to_contain_text("spoken as soon as it is ready")
    assert not [url for url in screen.requests if url.endswith("/v1/audio/speech")]
    gate.set()
    screen.until_over()
    screen.ready()
    assert screen.heard()["rendered"] == 2 * 6 * 2048
    expect(screen.takes).to_contain_text("Take 1")
    expect(screen.takes.locator("[data-ending]")).to_have_count(0)
    assert len([url for url in screen.requests if url.endswith("/v1/audio/speech")]) == 1  # the stopped one sent none


def test_waiting_in_the_queue_is_shown(steered: Steer, open_page: Open) -> None:
    studio = steered()
    engine = studio.app.state.studio.speech.host.engine()
    engine.later_frames_gate.clear()
    screen = open_page(studio).ready()
    with ThreadPoolExecutor(engine.rows) as others:
        for _ in range(engine.rows):
            others.submit(httpx.post, f"{studio.url}/v1/audio/speech", json={"input": "Two words"}, timeout=60)
        studio.until(running=engine.rows)
        screen.script.fill("Two words")
        screen.speak.click()
        expect(screen.status).to_contain_text("All slots are busy; 1 in the queue")
        engine.later_frames_gate.set()
    screen.until_over()
    assert screen.heard()["rendered"] == 2 * 6 * 2048
    assert screen.figure("Waited").endswith(" ms")


def test_dead_engine_is_explained_and_the_script_is_kept(steered: Steer, open_page: Open) -> None:
    studio = steered()
    screen = open_page(studio).ready()
    studio.app.state.studio.speech.host.engine().dead = "the device fell off the bus"
    screen.script.fill("My words")
    screen.speak.click()
    expect(screen.card).to_contain_text("the device fell off the bus")
    expect(screen.card).to_contain_text("tell the person who runs the studio")
    expect(screen.script).to_have_value("My words")


def test_incomplete_take_is_explained_and_kept(steered: Steer, open_page: Open) -> None:
    studio = steered()
    engine = studio.app.state.studio.speech.host.engine()
    screen = open_page(studio).ready()
    empty = {"status": 200, "content_type": "audio/wav", "body": wav(tone(0))}
    screen.page.route("**/v1/audio/speech", lambda route: route.fulfill(**empty))
    screen.script.fill("…")
    screen.speak.click()
    expect(screen.card).to_contain_text("There is no audio.")
    expect(screen.status).to_contain_text("There is no audio.")
    expect(screen.speak).to_be_visible()
    screen.page.unroute_all()

    engine.spoilt = ["nan", "nan"]
    screen.script.fill("Two words")
    screen.speak.click()
    expect(screen.card).to_contain_text("invalid samples")
    first, second = (utterance.sampling.seed for utterance in engine.utterances)
    expect(screen.card).to_contain_text(f"with seed {first} and {second}")
    expect(screen.script).to_have_value("Two words")

    engine.later_frames_gate.clear()
    screen.script.fill("Five words for one take")
    with screen.page.expect_response("**/v1/audio/speech"):
        screen.speak.click()
    screen.page.wait_for_function("window.studio.current.samples > 0")
    engine.dead = "the device fell off the bus"
    engine.later_frames_gate.set()
    expect(screen.card).to_contain_text("The connection was lost.")
    expect(screen.takes.first).to_contain_text("Interrupted")


def test_lost_connection_is_shown_until_it_is_back(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    screen.page.context.set_offline(True)
    screen.speak.click()
    expect(screen.card).to_contain_text("The connection was lost.")
    expect(screen.page.locator("#pill")).to_contain_text("is not responding")
    lost = screen.page.get_by_text("Not connected to the studio. Trying again …")
    for area in ("Voices", "Projects", "History", "Compare", "Settings", "Activity"):
        go(screen.page, area)
        expect(lost).to_be_visible()
    go(screen.page, "Voices")
    expect(screen.page.get_by_role("button", name=re.compile(r"^Anna\b"))).to_have_count(0)
    screen.page.context.set_offline(False)
    expect(screen.page.get_by_role("button", name=re.compile(r"^Anna\b"))).to_be_visible()  # by itself
    expect(lost).to_be_hidden()
    go(screen.page, "Studio")
    expect(screen.card).to_be_hidden()
