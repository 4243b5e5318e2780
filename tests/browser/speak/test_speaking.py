"""Speak on the real app: the audio, its figures, stopping, and saving."""

from __future__ import annotations

import io
import wave
from collections.abc import Callable
from pathlib import Path

import httpx
from playwright.sync_api import expect

from tests.browser.screen import Held, Screen, posted
from tests.studio.server import Served

FRAME = 2048
RATE = 44_100
Open = Callable[..., Screen]
NOTE_SUSPENDED = """() => {
    const { suspend } = AudioContext.prototype;
    AudioContext.prototype.suspend = function () {
        window.suspended = this;
        return suspend.call(this);
    };
}"""


def test_take_is_played_seeked_replayed_and_saved(served: Served, open_page: Open, tmp_path: Path) -> None:
    screen = open_page(served).ready()
    screen.cut_after(2)
    screen.page.evaluate(NOTE_SUSPENDED)
    with screen.page.expect_response("**/v1/audio/speech") as answer:
        screen.speak.click()
    expect(screen.takes).to_have_count(1)
    screen.until_over()
    screen.page.wait_for_function("window.suspended?.state === 'suspended'")  # a silent page releases the sound device
    headers = answer.value.headers
    record = httpx.get(f"{served.url}/v1/takes/{headers['x-request-id']}").json()
    assert record["frames"] == round(2 * RATE / FRAME)
    whole = screen.heard()["rendered"]
    assert whole == record["frames"] * FRAME
    expect(screen.takes).to_contain_text("Cut off before the end")
    expect(screen.takes).to_contain_text("Press Continue to hear the rest")

    server = int(screen.figure("Server").removesuffix(" ms"))
    assert abs(server - float(headers["x-first-audio-ms"])) <= 0.5  # the page rounds halves up, Python to even
    assert screen.figure("Seed") == headers["x-seed"]
    heard_ms = int(screen.figure("Heard").removesuffix(" ms"))
    assert heard_ms > float(headers["x-first-audio-ms"])
    assert abs(float(screen.figure("RTF")) - record["rtf"]) <= 0.005 + 1e-9
    assert screen.figure("Gaps") == str(screen.heard()["underruns"])

    screen.page.get_by_label("Position", exact=True).evaluate(
        "(slider) => { slider.value = slider.max / 2; slider.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    screen.page.get_by_role("button", name="Play", exact=True).click()
    screen.until_over()
    second = screen.heard()["rendered"] - whole
    assert abs(second - whole / 2) < RATE * 0.02
    screen.page.get_by_role("button", name="Play take 1").click()
    screen.page.wait_for_function("window.studio.heard.rendered > 0")
    screen.until_over()
    assert screen.heard()["rendered"] == whole

    with screen.page.expect_download() as saving:
        screen.takes.get_by_text("Download", exact=True).click()
        screen.page.get_by_role("menuitem", name="WAV").click()
    saving.value.save_as(tmp_path / "take.wav")
    with wave.open(str(tmp_path / "take.wav")) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2)
        saved = file.readframes(file.getnframes())
    body = {
        "input": screen.script.input_value(),
        "voice": "anna",
        "seed": int(headers["x-seed"]),
        "max_new_tokens": round(2 * RATE / FRAME),
        "response_format": "wav",
    }
    again = httpx.post(f"{served.url}/v1/audio/speech", json=body, timeout=60).content
    with wave.open(io.BytesIO(again)) as file:
        assert file.readframes(len(again)) == saved


def test_stop_and_page_close_free_the_row_and_stopped_takes_are_kept(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    cancelled = served.load()["cancelled"]
    screen.speak.click()
    screen.page.wait_for_function("window.studio.heard.rendered > 0")
    screen.stop.click()
    served.until(running=0, cancelled=cancelled + 1)
    expect(screen.takes).to_contain_text("Stopped by you")
    expect(screen.speak).to_be_visible()
    expect(screen.stop).to_be_hidden()

    screen.script.fill("A sentence to be stopped.")
    screen.script.press("Control+Enter")
    screen.page.wait_for_function("window.studio.current.number === 2 && window.studio.heard.rendered > 0")
    for sign in ("isComposing: true", "keyCode: 229"):  # ends a conversion of an input method
        event = f"new KeyboardEvent('keydown', {{ key: 'Escape', bubbles: true, {sign} }})"
        stays = screen.script.evaluate(
            f"(field) => {{ field.dispatchEvent({event}); return document.body.dataset.speaking; }}"
        )
        assert stays == "yes"
    screen.page.keyboard.press("Escape")
    served.until(running=0)
    expect(screen.takes.first).to_contain_text("A sentence to be stopped.")
    expect(screen.takes.first).to_contain_text("Stopped by you")

    screen.speak.click()
    screen.page.wait_for_function("window.studio.current.number === 3 && window.studio.heard.rendered > 0")
    screen.page.close()
    served.until(running=0)


def test_kept_seed_repeats_a_take_and_an_unkept_one_is_blank(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    screen.cut_after(2)
    screen.script.fill("The first words.")
    screen.speak.click()
    expect(screen.takes).to_have_count(1)
    screen.until_over()
    seed = screen.figure("Seed")
    screen.script.fill("Other words.")
    voices = Held(screen.page, "**/v1/audio/voices")  # fetched by Reuse
    screen.takes.first.get_by_role("button", name="Reuse").click()
    expect(screen.script).to_have_value("The first words.")
    chip = screen.page.locator("#kept-seed")
    expect(chip).to_be_hidden()
    screen.takes.first.get_by_role("button", name="Keep seed").click()
    expect(screen.page.locator("#seed input")).to_have_value(seed)
    voices.answer(0)
    screen.page.unroute("**/v1/audio/voices")
    with screen.page.expect_request("**/v1/audio/speech") as request:
        screen.speak.click()
    assert posted(request.value)["seed"] == int(seed)
    assert posted(request.value)["input"] == "The first words."
    expect(screen.takes).to_have_count(2)
    for name, take_off in {"chip": chip.click, "field": lambda: screen.page.locator("#seed input").fill("")}.items():
        expect(chip).to_have_text(f"Seed {seed} kept ×")
        take_off()
        expect(chip, name).to_be_hidden()
        with screen.page.expect_request("**/v1/audio/speech") as request:
            screen.speak.click()
        assert "seed" not in posted(request.value)
        expect(screen.speak).to_be_visible()  # it is made
        screen.open_sampling()
        seed = str(2**60 + 3)  # JavaScript would round it
        screen.page.locator("#seed input").fill(seed)
    # a seed of an old draft that was not kept is blank
    for draft, shown in (
        ({"seed": None}, ""),
        ({"seed": seed}, seed),
        ({"seed": 0}, "0"),
    ):
        screen.reopen_with(draft)
        expect(screen.page.locator("#seed input")).to_have_value(shown)
        expect(screen.page.locator("#kept-seed")).to_be_visible(visible=bool(shown))
