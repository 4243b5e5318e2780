"""The user's own clip: recorded with the browser's microphone or uploaded, it becomes the voice with its transcript."""

from __future__ import annotations

import base64
import io
import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from tests.browser.screen import TWO_SECONDS, Screen, asks_before_leaving, posted
from tests.studio.server import Served
from tests.studio.sounds import tone, wav

Open = Callable[..., Screen]
Steer = Callable[..., Served]
WORDS = "Transcript of the clip"
DROP = """(card, [name, bytes]) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([Uint8Array.from(bytes)], name));
    card.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer }));
}"""
OPENED_LATER = """() => {
    const { Audio } = window, opened = new Promise((resolve) => (window.goOn = resolve));
    window.Audio = function () {
        const audio = new Audio(), listen = audio.addEventListener.bind(audio);
        audio.addEventListener = (type, does) => listen(type, async (event) => (await opened, does(event)));
        return audio;
    };
}"""
"""A file's duration is known only after window.goOn()."""
DECODED_LATER = """() => {
    const context = OfflineAudioContext.prototype, { decodeAudioData } = context;
    const asked = new Promise((resolve) => (window.goOn = resolve));
    context.decodeAudioData = async function (bytes) {
        const buffer = await decodeAudioData.call(this, bytes);
        return asked.then(() => buffer);
    };
}"""
"""A clip is decoded only after window.goOn()."""


def own_clip(screen: Screen) -> Locator:
    screen.page.get_by_role("radio", name="Your own clip").check()
    expect(screen.own_clip).to_be_visible()
    expect(screen.page.locator("#voice")).to_be_hidden()
    return screen.own_clip


def press(screen: Screen, name: str) -> None:
    screen.own_clip.get_by_role("button", name=name, exact=True).click()


def samples_of(data_url: str) -> tuple[int, np.ndarray]:
    with wave.open(io.BytesIO(base64.b64decode(data_url.partition(",")[2]))) as file:
        pcm = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        return file.getframerate(), pcm.reshape(-1, file.getnchannels())[:, 0] / 32768


def test_recorded_clip_is_sent_unprocessed_and_used_as_the_voice(served: Served, open_page: Open) -> None:
    screen = open_page(served, permissions=["microphone"]).ready()
    screen.cut_after(2)
    screen.page.evaluate(DECODED_LATER)
    card = own_clip(screen)
    reading = card.locator("[data-part=reading]").inner_text()
    card.get_by_role("button", name="Record", exact=True).press("Enter")
    expect(card.locator(".recording-time")).to_contain_text(TWO_SECONDS)
    assert asks_before_leaving(screen.page)
    screen.speak.click()
    expect(screen.card).to_contain_text("Stop the recording first.")
    stop = card.get_by_role("button", name="Stop recording")
    stop.focus()
    stop.press("Enter")
    expect(card).to_contain_text("out of 100")
    expect(screen.card).to_be_hidden()
    screen.page.evaluate("goOn()")
    expect(card.get_by_role("button", name="Listen to the clip")).to_be_focused()  # its button is gone
    expect(card.get_by_label(WORDS)).to_have_value(reading)
    card.get_by_label(WORDS).fill("A long tone.")
    with screen.page.expect_request("**/v1/audio/speech") as request:
        screen.speak.click()
    sent = posted(request.value)
    assert sent["ref_text"] == "A long tone."
    assert "voice" not in sent
    rate, pcm = samples_of(sent["ref_audio"])
    assert len(pcm) > rate
    steady = pcm[rate // 2 : rate // 2 * 2]
    pitch = np.argmax(np.abs(np.fft.rfft(steady))) * rate / len(steady)
    assert pitch == pytest.approx(440, abs=5)
    halves = [np.sqrt(np.mean(half**2)) for half in np.array_split(pcm[rate // 2 :], 2)]
    assert halves[1] == pytest.approx(halves[0], rel=0.1)  # a browser's level control would pull them apart
    screen.until_over()
    expect(screen.takes).to_contain_text("Your clip")
    assert asks_before_leaving(screen.page)  # the recording is nowhere else

    card.locator(".capture").evaluate(DROP, ["other.wav", list(wav(tone(2)))])
    expect(card.locator("[data-part=clip-words]")).to_have_text("other.wav")
    screen.speak.click()
    expect(screen.takes).to_have_count(2)
    screen.until_over()
    screen.page.locator("#undo-toast").get_by_role("button", name="Undo").click()
    expect(card.locator("[data-part=clip-words]")).to_contain_text("Recorded")
    screen.takes.first.get_by_role("button", name="Reuse").click()
    expect(card.locator("[data-part=clip-words]")).to_have_text("other.wav")
    screen.script.press_sequentially("Other words")  # which can no longer be undone together with the clip
    screen.script.blur()
    screen.page.keyboard.press("Control+z")
    expect(card.locator("[data-part=captured] [data-part=playback]")).to_be_enabled()
    expect(card.get_by_label(WORDS)).to_have_value("A long tone.")
    assert asks_before_leaving(screen.page)


def test_unplugged_microphone_ends_the_recording_and_keeps_it(served: Served, open_page: Open) -> None:
    screen = open_page(served, permissions=["microphone"]).ready()
    screen.page.evaluate(
        """() => { const media = navigator.mediaDevices, ask = media.getUserMedia.bind(media);
        media.getUserMedia = async (wanted) => (window.stream = await ask(wanted)); }"""
    )
    card = own_clip(screen)
    card.get_by_role("button", name="Record", exact=True).click()
    expect(card.locator(".recording-time")).to_contain_text(TWO_SECONDS)
    screen.page.evaluate("stream.getTracks()[0].dispatchEvent(new Event('ended'))")
    words = card.locator("[data-part=clip-words]")
    expect(words).to_contain_text("The microphone stopped")
    expect(card).to_contain_text("out of 100")
    press(screen, "Remove")
    card.locator(".recording-time").evaluate("(time) => (time.textContent = '')")
    card.get_by_role("button", name="Record", exact=True).click()
    expect(card.locator(".recording-time")).to_contain_text(TWO_SECONDS)
    card.get_by_role("button", name="Stop recording").click()
    expect(words).not_to_contain_text("The microphone stopped")
    expect(card).to_contain_text("out of 100")
    screen.page.evaluate("document.activeElement.blur()")
    screen.page.keyboard.press("Control+z")
    expect(words).to_contain_text("The microphone stopped")
    screen.page.keyboard.press("Control+z")  # the second recording is not lost
    expect(words).not_to_contain_text("The microphone stopped")
    expect(words).to_contain_text("Recorded")
    expect(card.locator("[data-part=captured]")).to_be_visible()


def test_uploaded_clip_is_sent_unchanged_replaced_removed_and_restored_from_its_take(
    served: Served, open_page: Open, tmp_path: Path
) -> None:
    screen = open_page(served).ready()
    screen.cut_after(2)
    first, second = (wav(tone(2.0, hertz=hertz)) for hertz in (220, 330))
    (tmp_path / "me.wav").write_bytes(first)
    screen.bring_clip(tmp_path / "me.wav")
    card, requests = screen.own_clip, screen.asked_for_speech()
    card.get_by_label(WORDS).fill("A lower tone.")

    def speak(count: int) -> bytes:
        screen.speak.click()
        screen.until_over()
        expect(screen.takes).to_have_count(count)
        return base64.b64decode(requests[-1]["ref_audio"].partition(",")[2])

    (tmp_path / "me.wav").unlink()  # the browser has it
    assert speak(1) == first
    card.locator(".capture").evaluate(DROP, ["other.wav", list(second)])
    expect(card.locator("[data-part=clip-words]")).to_have_text("other.wav")
    expect(card.get_by_role("button", name="Record", exact=True)).to_be_hidden()
    assert speak(2) == second
    press(screen, "Remove")
    expect(card.get_by_role("button", name="Record", exact=True)).to_be_visible()
    expect(card.get_by_role("button", name="Keep this voice …")).to_be_hidden()
    expect(card.get_by_label(WORDS)).to_have_value("A lower tone.")  # typed by the user
    screen.speak.click()
    expect(screen.card).to_contain_text("There is no clip yet.")
    screen.takes.last.get_by_role("button", name="Use").click()
    expect(card.locator("[data-part=clip-words]")).to_have_text("me.wav")
    assert speak(3) == first
    screen.page.reload()
    screen.page.wait_for_selector("body[data-studio=ready]")
    expect(card.get_by_label(WORDS)).to_have_value("A lower tone.")
    expect(card.get_by_role("button", name="Record", exact=True)).to_be_visible()


def test_speak_waits_for_a_clip_being_opened(steered: Steer, open_page: Open, tmp_path: Path) -> None:
    (tmp_path / "me.wav").write_bytes(wav(tone(2.0, hertz=220)))
    screen = open_page(steered()).ready()
    screen.page.evaluate(OPENED_LATER)
    own_clip(screen).locator("input[type=file]").set_input_files(tmp_path / "me.wav")
    screen.speak.click()
    expect(screen.status).to_contain_text("Opening the file")
    screen.stop.click()
    expect(screen.status).to_have_text("Stopped")
    screen.speak.click()
    expect(screen.status).to_contain_text("Opening the file")
    screen.page.get_by_label(WORDS).fill("A lower tone.")
    screen.page.wait_for_function("window.studio.fields.values.clipText === 'A lower tone.'")
    with screen.page.expect_request("**/v1/audio/speech") as request:
        screen.page.evaluate("goOn()")
    sent = posted(request.value)
    assert base64.b64decode(sent["ref_audio"].partition(",")[2]) == (tmp_path / "me.wav").read_bytes()
    assert sent["ref_text"] == "A lower tone."  # written while the clip was being opened
    screen.until_over()


def test_long_recording_is_cut_to_the_maximum_clip_length(steered: Steer, open_page: Open, tmp_path: Path) -> None:
    (tmp_path / "long.wav").write_bytes(wav(tone(41, rate=16_000), 16_000))
    screen = open_page(steered()).ready()
    card = own_clip(screen)
    card.locator("input[type=file]").set_input_files(tmp_path / "long.wav")
    expect(card).to_contain_text("long.wav is 41 s long. Choose 30 seconds")
    screen.speak.click()
    expect(screen.card).to_contain_text("Choose a part of the recording.")
    card.get_by_label("Starts at").fill("0:00.7")
    card.get_by_label("Starts at").press("Tab")
    press(screen, "Use this part")
    expect(card.locator("[data-part=clip-words]")).to_have_text("long.wav, 0:00.7 to 0:30.7")
    expect(screen.card).to_be_hidden()
    card.get_by_label(WORDS).fill("A long tone.")
    with screen.page.expect_response("**/v1/audio/speech") as answer:
        screen.speak.click()
    assert answer.value.ok
    rate, pcm = samples_of(posted(answer.value.request)["ref_audio"])
    assert (len(pcm), rate) == (30 * 44_100, 44_100)
    screen.until_over()


def test_missing_clip_is_requested_and_an_unusable_one_refused_with_a_message(
    served: Served, open_page: Open, tmp_path: Path
) -> None:
    screen = open_page(served).ready()
    card = own_clip(screen)
    screen.speak.click()
    expect(screen.card).to_contain_text("There is no clip yet.")
    expect(screen.card).to_contain_text("Record or upload 10 to 30 seconds")

    message = card.locator("[data-part=capture-said]")
    sounds = {"noise": (b"RIFF" + bytes(400), "not readable audio"), "silence": (wav(tone(6) * 0), "is silent")}
    for name, (sound, why) in sounds.items():
        (tmp_path / f"{name}.wav").write_bytes(sound)
        screen.bring_clip(tmp_path / f"{name}.wav")
        expect(message).to_contain_text(why)
        expect(card.get_by_role("button", name="Keep this voice …")).to_be_hidden()
        expect(card.get_by_role("button", name="Record", exact=True)).to_be_visible()
    card.get_by_label(WORDS).fill("Nothing.")
    with screen.page.expect_response("**/v1/audio/speech") as answer:
        screen.speak.click()
    assert answer.value.status == 400
    expect(screen.card).to_contain_text("Record or upload 10 to 30 seconds of one person speaking")
    (tmp_path / "good.wav").write_bytes(wav(tone(6)))
    screen.bring_clip(tmp_path / "good.wav")
    expect(card).to_contain_text("out of 100")
    expect(message).to_be_empty()
    expect(screen.card).to_be_hidden()
    card.get_by_label(WORDS).fill("")
    screen.speak.click()
    expect(screen.card).to_contain_text("The transcript is missing.")
    expect(card.get_by_label(WORDS)).to_be_focused()
    expect(card.get_by_label(WORDS)).to_have_attribute("aria-invalid", "true")


def test_playback_stops_for_a_recording(served: Served, open_page: Open) -> None:
    screen = open_page(served, permissions=["microphone"]).ready()
    screen.cut_after(120)
    screen.speak.click()
    screen.page.wait_for_function("window.studio.heard.rendered > 0")
    card = own_clip(screen)
    card.get_by_role("button", name="Record", exact=True).click()
    expect(card.get_by_role("button", name="Stop recording")).to_be_visible()
    expect(screen.page.locator("#dock")).to_have_attribute("data-state", "paused")
    screen.stop.click()
