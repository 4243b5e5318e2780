"""A new voice, step by step: recorded or uploaded, checked, corrected, transcribed, named, saved, played and used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Dialog, Locator, Route, expect

from engine import Engine
from studio.settings import Settings
from tests.browser.screen import TWO_SECONDS, Held, Screen, asks_before_leaving, go, posted
from tests.browser.test_looks import PHONE, looks_right_in_both_windows, serious_violations
from tests.studio.server import Served, serve
from tests.studio.sounds import tone, wav
from tests.tiny_qwen import write_qwen

Open = Callable[..., Screen]
Steer = Callable[..., Served]


@pytest.fixture
def studio(steered: Steer) -> Iterator[Served]:
    yield steered()


def area(screen: Screen) -> Locator:
    return screen.page.locator("#area-new-voice")


def new_voice(screen: Screen) -> Locator:
    go(screen.page, "New voice")
    return area(screen)


def press(screen: Screen, name: str) -> None:
    area(screen).get_by_role("button", name=name, exact=True).click()


def bring(screen: Screen, folder: Path, pcm: np.ndarray, rate: int = 44_100) -> None:
    """Upload a file in step 1, continue to step 2 and wait for the assessment."""
    (folder / "me.wav").write_bytes(wav(pcm, rate))
    area(screen).get_by_label("A recording of the voice").set_input_files(folder / "me.wav")
    press(screen, "Next")
    expect(area(screen).locator("[data-part=advice]")).to_contain_text("out of 100")


def save(screen: Screen, name: str) -> None:
    """Fill in step 4 and save."""
    area(screen).get_by_label("Name", exact=True).fill(name)
    area(screen).get_by_label("This is my voice").check()
    press(screen, "Save the voice")


def picked(screen: Screen) -> Locator:
    return screen.page.locator("#voice input")


def test_voice_is_recorded_checked_transcribed_named_saved_and_used(
    studio: Served, open_page: Open, tmp_path: Path
) -> None:
    screen = open_page(studio, permissions=["microphone"]).ready()
    steps = new_voice(screen)
    reading = steps.locator("[data-part=reading]").inner_text()
    press(screen, "Another text")
    expect(steps.locator("[data-part=reading]")).not_to_have_text(reading)
    clip = steps.locator("[data-part=clip-words]")
    press(screen, "Record")
    press(screen, "Stop recording")
    expect(clip).to_contain_text("Recorded")
    press(screen, "Record")
    expect(steps.locator("[data-part=recording]")).to_contain_text("Good level")
    screen.page.wait_for_timeout(2000)  # the recording's length, not a wait for something to happen
    press(screen, "Pause")
    expect(steps.locator("[data-part=recording]")).to_contain_text("Paused")
    press(screen, "Continue")
    press(screen, "Stop recording")
    expect(clip).to_contain_text("Recorded")
    looks_right_in_both_windows(screen)
    (tmp_path / "other.wav").write_bytes(wav(tone(3)))
    steps.get_by_label("A recording of the voice").set_input_files(tmp_path / "other.wav")
    expect(clip).to_have_text("other.wav")
    screen.page.get_by_role("button", name="Undo", exact=True).click()
    expect(clip).to_contain_text("Recorded")
    press(screen, "Next")
    expect(steps.locator("[data-part=advice]")).to_contain_text("out of 100")
    looks_right_in_both_windows(screen)
    press(screen, "Next")
    words = steps.get_by_label("Transcript")
    expect(words).not_to_have_value("")  # what was read
    advice = Held(screen.page, "**/v1/voices/advise")
    words.fill("A tone")
    advice.wait_for(1)
    with screen.page.expect_event("requestfailed"):  # the clip is not uploaded several times at once
        words.fill("A tone, and nothing else.")
    advice.answer_all()
    looks_right_in_both_windows(screen)
    press(screen, "Next")
    steps.get_by_label("Tags").fill("flat, electric")
    save(screen, "Toni")
    expect(steps.locator("[data-part=saved-title]")).to_have_text("Toni is in the library")
    expect(screen.page.locator("#dock")).to_contain_text("Toni speaking")
    looks_right_in_both_windows(screen)
    used = clip.inner_text()
    screen.page.keyboard.press("Control+z")
    assert clip.inner_text() == used, "the first recording was brought back into a voice that is saved"
    press(screen, "Open the Studio")
    expect(picked(screen)).to_have_value("Toni")
    screen.script.fill("Two words")
    with screen.page.expect_request("**/v1/audio/speech") as request:
        screen.speak.click()
    assert posted(request.value)["voice"] == "toni"
    screen.until_over()
    voice = studio.client().get("/v1/voices/toni").json()
    assert voice["tags"] == ["flat", "electric"] and voice["samples"][0]["text"] == "A tone, and nothing else."
    assert voice["consent"] and voice["language"] == "en"


def test_voice_is_described_heard_three_times_kept_and_named(
    voices_folder: Path, open_page: Open, tmp_path: Path
) -> None:
    model = str(write_qwen(tmp_path / "model", "voice_design"))
    settings = Settings(model=model, voices=str(voices_folder), home=str(tmp_path / "home"), threads=1)
    with serve(settings, Engine.start, page=True) as studio:
        screen = open_page(studio, **PHONE).ready()
        new_voice(screen)
        form = screen.page.locator("#describe")
        form.get_by_label("What it says").fill("Good evening. The sea is calm tonight.")
        press(screen, "Make up three voices")
        expect(form).to_contain_text("Describe the voice first.")
        form.get_by_label("The voice in words").fill("An old sailor, hoarse, warm.")
        screen.page.evaluate("Math.random = () => 6 / 2 ** 31")  # seeds with which the random weights speak long enough
        press(screen, "Make up three voices")
        expect(form.get_by_role("button", name="Keep this voice")).to_have_count(3)
        expect(screen.page.locator("#dock")).to_contain_text("Take 1")
        assert serious_violations(screen) == []
        assert screen.page.evaluate("document.documentElement.scrollWidth") <= screen.width()
        screen.page.reload()
        screen.page.wait_for_selector("body[data-studio=ready]")
        expect(form.get_by_label("The voice in words")).to_have_value("An old sailor, hoarse, warm.")
        go(screen.page, "Studio")
        screen.takes.nth(1).get_by_role("button", name="Keep this voice").click()
        expect(area(screen).locator("[data-part=advice]")).to_contain_text("out of 100")
        press(screen, "Next")
        press(screen, "Next")
        expect(area(screen).get_by_label("Description")).to_have_value("An old sailor, hoarse, warm.")
        expect(area(screen).get_by_label("This is my voice")).to_be_hidden()
        area(screen).get_by_label("Name", exact=True).fill("Sailor")
        press(screen, "Save the voice")
        expect(area(screen)).to_contain_text("Sailor is in the library")
        expect(area(screen)).to_contain_text("load a model that clones voices")
        with studio.client() as client:
            voice = client.get("/v1/voices/sailor").json()
        assert voice["samples"][0]["text"] == "Good evening. The sea is calm tonight." and voice["consent"] is None


def test_late_microphone_is_released_and_recordings_are_lossless_and_unprocessed(
    studio: Served, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = open_page(studio, permissions=["microphone"]).ready()
    new_voice(screen)
    screen.page.wait_for_function("performance.getEntries().some(({ name }) => name.endsWith('recorder-worklet.js'))")
    from studio.ui.bundle import PageFiles  # imports Gradio, which the process that distributes the tests does not need

    monkeypatch.delitem(PageFiles.read(Path()).files, "capture/recorder-worklet.js")  # as if the studio was upgraded
    screen.page.context.new_cdp_session(screen.page).send("Network.setCacheDisabled", {"cacheDisabled": True})
    screen.page.evaluate("""() => {
        const devices = navigator.mediaDevices, ask = devices.getUserMedia.bind(devices);
        const allowed = new Promise((resolve) => (window.allow = resolve));
        devices.getUserMedia = async (wishes) => (await allowed, (window.stream = await ask(wishes)));
    }""")
    press(screen, "Record")
    expect(area(screen)).to_contain_text("Requesting the microphone …")
    go(screen.page, "Settings")
    screen.page.evaluate("allow()")
    screen.page.wait_for_function("window.stream?.getTracks().every(({ readyState }) => readyState === 'ended')")
    new_voice(screen)
    expect(area(screen).get_by_role("button", name="Record", exact=True)).to_be_enabled()

    press(screen, "Record")
    expect(area(screen).locator(".recording-time").first).to_contain_text(TWO_SECONDS)
    screen.page.evaluate(
        """() => {
          const { append } = FormData.prototype;
          FormData.prototype.append = function (name, value, ...more) {
            if (value instanceof Blob) window.sent = value;
            return append.call(this, name, value, ...more);
          };
          const { close } = AudioContext.prototype;
          const released = new Promise((resolve) => (window.release = resolve));
          AudioContext.prototype.close = async function () { await released; return close.call(this); };
        }"""
    )
    area(screen).get_by_role("button", name="Stop recording", exact=True).dblclick()  # while the sound device is closed
    go(screen.page, "Settings")
    new_voice(screen)
    screen.page.evaluate("release()")
    screen.page.wait_for_function("window.sent")
    recording = screen.page.evaluate(
        """async () => {
          const bytes = await window.sent.arrayBuffer();
          return { rate: new DataView(bytes).getUint32(24, true), pcm: [...new Int16Array(bytes, 44)] };
        }"""
    )
    pcm, rate = np.array(recording["pcm"]) / 32768, recording["rate"]
    press(screen, "Listen to the clip")
    expect(screen.page.locator("#dock")).to_contain_text("Your clip")
    assert screen.page.evaluate("window.studio.current.seconds") == pytest.approx(len(pcm) / rate, abs=0.01)
    steady = pcm[rate // 2 : rate // 2 * 3]
    assert np.argmax(np.abs(np.fft.rfft(steady))) * rate / len(steady) == pytest.approx(440, abs=3)
    halves = [np.sqrt(np.mean(half**2)) for half in np.array_split(pcm[rate // 2 :], 2)]
    assert halves[1] == pytest.approx(halves[0], rel=0.1)  # a browser's level control would pull them apart


def test_a_denied_microphone_is_explained_and_a_file_can_be_uploaded_instead(
    studio: Served, open_page: Open, tmp_path: Path
) -> None:
    screen = open_page(studio).ready()
    new_voice(screen)
    denied = "() => Promise.reject(new DOMException('no', 'NotAllowedError'))"
    screen.page.evaluate(f"() => {{ navigator.mediaDevices.getUserMedia = {denied} }}")
    press(screen, "Record")
    message = area(screen).locator("[data-part=recording]")
    expect(message).to_contain_text("This page may not use the microphone.")
    expect(message).to_contain_text("upload a recording instead")
    bring(screen, tmp_path, tone(6))


def test_page_without_https_explains_it_and_offers_a_file(studio: Served, open_page: Open) -> None:
    screen = open_page(studio)
    screen.page.add_init_script("Object.defineProperty(window, 'isSecureContext', { value: false })")
    screen.page.reload()
    screen.page.wait_for_selector("body[data-studio=ready]")
    new_voice(screen)
    expect(area(screen)).to_contain_text("only over HTTPS or on localhost")
    expect(area(screen).get_by_role("button", name="Record", exact=True)).to_be_disabled()
    expect(screen.page.locator("#describe")).to_contain_text("The loaded model cannot do this; load one that can")
    press(screen, "Choose a model")
    able = screen.page.get_by_role("dialog", name="Models").get_by_role("listitem").filter(has_text="VoiceDesign")
    expect(able).to_contain_text("makes up voices from a description")


def test_quiet_clip_with_silence_is_fixed_by_mouse_and_keyboard(
    studio: Served, open_page: Open, tmp_path: Path
) -> None:
    screen = open_page(studio).ready()
    steps = new_voice(screen)
    bring(screen, tmp_path, np.concatenate([np.zeros(3 * 44_100, np.float32), tone(6, level=0.005)]))
    advice = steps.locator("[data-part=advice]")
    expect(advice).to_contain_text("Speech is quiet")
    with screen.page.expect_response("**/v1/voices/advise"):
        steps.get_by_role("button", name="Trim the beginning").click()
    expect(advice).not_to_contain_text("silence at the beginning")
    steps.get_by_role("button", name="Raise by").click()
    expect(advice).not_to_contain_text("Speech is quiet")
    expect(steps.locator("[data-part=treatment]")).to_contain_text("dB")
    press(screen, "Listen as it will be used")
    end = steps.get_by_role("slider", name="End of the part")
    end.focus()
    end.press("PageDown")
    expect(end).to_have_attribute("aria-valuetext", "8.00 seconds")
    expect(steps.get_by_label("to", exact=True)).to_have_value("8.00")
    mark, wave = steps.locator(".cut-start").bounding_box(), steps.locator(".cut-wave").bounding_box()
    assert mark and wave
    screen.page.mouse.move(mark["x"] + mark["width"] / 2, mark["y"] + 30)
    screen.page.mouse.down()
    screen.page.mouse.move(wave["x"] + wave["width"] / 2, mark["y"] + 30)
    with screen.page.expect_response("**/v1/voices/advise"):
        screen.page.mouse.up()
    press(screen, "Next")
    steps.get_by_label("Transcript").fill("A steady tone.")
    press(screen, "Next")
    save(screen, "Quiet one")
    expect(picked(screen)).to_have_value("Quiet one")
    cut = studio.client().get("/v1/voices/quiet-one").json()["samples"][0]["cut"]
    assert cut["gain_db"] > 10 and cut["end"] == 8 and cut["start"] == pytest.approx(4.5, abs=0.1)


def test_going_back_and_forth_keeps_input_and_skips_no_step(studio: Served, open_page: Open, tmp_path: Path) -> None:
    screen = open_page(studio).ready()
    steps = new_voice(screen)
    tabs = steps.get_by_role("list", name="Steps").get_by_role("button")
    expect(tabs.nth(1)).to_be_disabled()
    bring(screen, tmp_path, tone(6))
    press(screen, "Next")
    expect(steps.get_by_role("button", name="Next", exact=True)).to_be_disabled()
    steps.get_by_label("Transcript").fill("A steady tone.")
    press(screen, "Next")
    steps.get_by_label("Description").fill("Flat.")
    tabs.nth(0).press("Enter")
    expect(tabs.nth(0)).to_have_attribute("aria-current", "step")
    go(screen.page, "Activity")
    go(screen.page, "New voice")
    tabs.nth(3).click()
    expect(steps.get_by_label("Description")).to_have_value("Flat.")
    press(screen, "Save the voice")
    expect(steps.get_by_role("status").filter(has_text="Give the voice a name.")).to_be_visible()
    expect(steps.locator("label:has([data-part=name]) + [data-part=naming-said]")).to_have_count(1)  # below the field
    steps.get_by_label("Name", exact=True).fill("Anna")
    press(screen, "Save the voice")
    expect(steps).to_contain_text("confirm that the voice is yours")
    steps.get_by_label("This is my voice").check()
    press(screen, "Save the voice")
    expect(steps).to_contain_text("A voice named 'Anna' already exists")
    press(screen, "Back")
    expect(steps.get_by_label("Transcript")).to_have_value("A steady tone.")
    tabs.nth(0).click()
    bring(screen, tmp_path, tone(7))
    expect(screen.page.locator("#undo-toast")).to_contain_text("The clip and its transcript were discarded.")
    screen.page.get_by_role("button", name="Undo", exact=True).click()
    tabs.nth(2).click()
    expect(steps.get_by_label("Transcript")).to_have_value("A steady tone.")
    tabs.nth(0).click()
    press(screen, "Remove")
    assert asks_before_leaving(screen.page)  # because of the name


def test_unusable_and_too_long_clips_are_refused_with_the_reason(
    studio: Served, open_page: Open, tmp_path: Path
) -> None:
    screen = open_page(studio).ready()
    steps = new_voice(screen)
    nav = steps.locator("[data-part=nav]")
    expect(nav).to_contain_text("Record or upload a clip first.")
    sounds = {"noise": (b"RIFF" + bytes(400), "not readable audio"), "silence": (wav(tone(6) * 0), "is silent")}
    sounds |= {"short": (wav(tone(0.6)), "at least 1 s")}
    for name, (sound, why) in sounds.items():
        (tmp_path / f"{name}.wav").write_bytes(sound)
        steps.get_by_label("A recording of the voice").set_input_files(tmp_path / f"{name}.wav")
        expect(steps.locator("[data-part=capture-said]")).to_contain_text(why)
        expect(nav).to_contain_text("Record again, or choose another file.")
        expect(nav.get_by_role("button", name="Next", exact=True)).to_be_disabled()
    busy = {"error": {"message": "the studio is busy"}}
    again = {"retry-after": "1"}
    screen.page.route("**/v1/voices/advise", lambda route: route.fulfill(status=503, json=busy, headers=again), times=1)
    bring(screen, tmp_path, tone(6))  # advice is asked for again
    press(screen, "Back")
    (tmp_path / "large.wav").write_bytes(bytes(11 * 2**20))
    steps.get_by_label("A recording of the voice").set_input_files(tmp_path / "large.wav")
    expect(steps).to_contain_text(
        "large.wav is 11.0 MB, and this browser cannot open it. Files up to 10.0 MB can be uploaded"
    )
    hours = wav(np.zeros(66 * 60 * 8_000, np.float32), 8_000)
    (tmp_path / "hours.wav").write_bytes(hours)
    steps.get_by_label("A recording of the voice").set_input_files(tmp_path / "hours.wav")
    expect(steps).to_contain_text("hours.wav is 1 h 6 min long; the limit is 1 h 5 min.")
    expect(steps.locator("[data-part=clip-words]")).to_have_text("me.wav")
    expect(nav.get_by_role("button", name="Next", exact=True)).to_be_enabled()


def test_second_clip_and_recorded_consent_are_added_to_the_voice(
    studio: Served, open_page: Open, tmp_path: Path
) -> None:
    screen = open_page(studio, permissions=["microphone"]).ready()
    steps = new_voice(screen)
    bring(screen, tmp_path, tone(6))
    press(screen, "Next")
    steps.get_by_label("Transcript").fill("A steady tone.")
    press(screen, "Next")
    steps.get_by_text("Also record the consent").click()
    steps.get_by_label("Name of the speaker").fill("Tom Tone")
    expect(steps).to_contain_text("I, Tom Tone, agree to the use of my voice")
    press(screen, "Record")
    expect(steps.locator("[data-part=consent-recording]")).to_contain_text("Good level")
    press(screen, "Stop recording")
    expect(steps.get_by_role("button", name="Listen to the consent")).to_be_visible()

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    screen.page.route("**/v1/audio/voices", lose, times=1)
    save(screen, "Tom")
    expect(steps.locator("[data-part=naming-said]")).to_have_text("The studio is not responding.")
    save(screen, "Tom")
    expect(steps.locator("[data-part=saved-title]")).to_have_text("Tom is in the library")
    press(screen, "Add another clip")
    bring(screen, tmp_path, tone(4, hertz=300))
    press(screen, "Next")
    steps.get_by_label("Transcript").fill("A lower tone.")
    press(screen, "Next")
    screen.page.route("**/samples", lose, times=1)
    press(screen, "Add the clip")
    expect(steps.locator("[data-part=naming-said]")).to_have_text("The studio is not responding.")
    press(screen, "Add the clip")
    expect(steps.locator("[data-part=saved-title]")).to_have_text("A clip was added to Tom")
    press(screen, "Add another clip")
    bring(screen, tmp_path, tone(5, hertz=250))
    press(screen, "Next")
    steps.get_by_label("Transcript").fill("A third tone.")
    press(screen, "Next")
    held = Held(screen.page, "**/samples")
    press(screen, "Add the clip")
    held.wait_for(1)
    screen.page.once("dialog", lambda dialog: dialog.accept())
    press(screen, "Start over")
    press(screen, "Record")
    with screen.page.expect_response("**/v1/audio/voices"):  # the Studio's list, once it is saved
        held.answer(0)
    expect(steps.locator("[data-part=recording]")).to_have_attribute("data-state", "recording")
    with studio.client() as client:
        voice = client.get("/v1/voices/tom").json()
        assert [sample["text"] for sample in voice["samples"]] == ["A steady tone.", "A lower tone.", "A third tone."]
        consents = client.get("/v1/audio/voice_consents").json()["data"]
        assert [one["name"] for one in consents] == ["Tom Tone", "Tom Tone"], "that of the lost answer is in the trash"
        assert voice["consent"] == consents[0]["id"]
        assert [one["title"] for one in client.get("/v1/trash").json()["data"]] == ["Tom"]


def test_recognised_words_are_marked_against_the_transcript(
    recogniser: None, steered: Steer, open_page: Open, tmp_path: Path
) -> None:
    screen = open_page(steered(transcriber="faster-whisper:tiny")).ready()
    steps = new_voice(screen)
    bring(screen, tmp_path, tone(6))
    press(screen, "Next")
    words = steps.get_by_label("Transcript")
    press(screen, "Transcribe")
    expect(words).to_have_value("A steady tone.")
    expect(steps).to_contain_text("The transcript matches what was heard.")
    words.fill("A steady purple tone.")
    expect(steps.locator("mark del")).to_have_text("purple")
    words.fill("A steady bell.")
    expect(steps.locator("mark ins")).to_have_text("tone")
    press(screen, "Use what was heard")
    expect(words).to_have_value("A steady tone.")
    expect(steps.locator("mark")).to_have_count(0)
    words.press("Control+z")
    expect(words).to_have_value("A steady bell.")


def test_clip_from_the_studio_enters_at_the_second_step(studio: Served, open_page: Open, tmp_path: Path) -> None:
    screen = open_page(studio).ready()
    (tmp_path / "me.wav").write_bytes(wav(tone(6)))
    screen.bring_clip(tmp_path / "me.wav")
    expect(screen.page.locator("#own-clip-advice")).to_contain_text("out of 100")
    new_voice(screen)
    bring(screen, tmp_path, tone(5))
    questions: list[str] = []

    def stay(dialog: Dialog) -> None:
        questions.append(dialog.message)
        dialog.dismiss()

    for area_name, button in (("Studio", "Keep this voice …"), ("New voice", "Start over")):
        go(screen.page, area_name)
        screen.page.once("dialog", stay)
        with screen.page.expect_event("dialog"):
            screen.page.get_by_role("button", name=button).click()
        assert "unsaved voice" in questions.pop()
    screen.page.once("dialog", lambda dialog: dialog.accept())
    press(screen, "Start over")
    go(screen.page, "Studio")
    screen.page.get_by_label("Transcript of the clip").fill("A steady tone.")
    screen.page.get_by_role("button", name="Keep this voice …").click()
    expect(area(screen).get_by_role("heading", name="Check the clip")).to_be_visible()
    press(screen, "Next")
    expect(area(screen).get_by_label("Transcript")).to_have_value("A steady tone.")
    press(screen, "Next")
    save(screen, "Cleo")
    press(screen, "Open the Studio")
    expect(picked(screen)).to_have_value("Cleo")
    other = open_page(studio).ready()
    other.page.get_by_label("Choose a voice").click()
    expect(other.page.get_by_role("option", name="Cleo")).to_be_visible()
