"""How a new voice's clip is made: a part of a long recording, with noise removed and words transcribed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from studio.voices import denoiser
from studio.voices.recogniser import MODEL
from tests.browser.screen import Held
from tests.browser.test_looks import PHONE, serious_violations
from tests.browser.voices.test_new_voice import Open, Steer, area, bring, new_voice, press, save
from tests.studio.models.hub import serve_hub
from tests.studio.sounds import tone, wav
from tests.studio.voices.whisper import write_model


def test_only_the_chosen_part_of_a_long_recording_is_sent(steered: Steer, open_page: Open, tmp_path: Path) -> None:
    sounds = {200: 300, 500: 60, 440: 20}
    lecture = np.concatenate([tone(seconds, rate=16_000, hertz=hertz) for hertz, seconds in sounds.items()])
    (tmp_path / "lecture.wav").write_bytes(wav(lecture, 16_000))
    assert (tmp_path / "lecture.wav").stat().st_size > 10 * 2**20
    studio = steered()
    screen = open_page(studio).ready()
    steps, urls = new_voice(screen), list[str]()
    screen.page.on("request", lambda request: urls.append(request.url))
    steps.get_by_label("A recording of the voice").set_input_files(tmp_path / "lecture.wav")
    expect(steps).to_contain_text("lecture.wav is 6 min 20 s long. Choose 45 seconds")
    expect(steps.locator("[data-part=nav]")).to_contain_text("Choose a part of the recording.")
    assert serious_violations(screen) == [] and not [url for url in urls if "/voices/advise" in url]
    part = steps.get_by_role("slider", name="Part to upload")
    part.press("End")
    expect(part).to_have_attribute("aria-valuetext", "5:35.0 to 6:20.0")
    wave = steps.locator("[data-part=stretch-wave]").bounding_box()
    assert wave
    screen.page.mouse.click(wave["x"] + wave["width"] / 2, wave["y"] + 20)
    expect(part).to_have_attribute("aria-valuetext", re.compile(r"2:4[678]\.\d to 3:3[123]\.\d"))  # around the click
    steps.get_by_label("Starts at").fill("5:05")
    steps.get_by_label("Starts at").press("Tab")
    press(screen, "Use this part")
    expect(steps.locator("[data-part=clip-words]")).to_have_text("lecture.wav, 5:05.0 to 5:50.0")
    press(screen, "Next")
    expect(steps.locator("[data-part=advice]")).to_contain_text("out of 100")
    press(screen, "Next")
    steps.get_by_label("Transcript").fill("A high tone.")
    press(screen, "Next")
    save(screen, "Lecturer")
    expect(steps.locator("[data-part=saved-title]")).to_have_text("Lecturer is in the library")
    with studio.client() as client:
        sample = client.get("/v1/voices/lecturer").json()["samples"][0]
        stored = client.get(f"/v1/voices/lecturer/samples/{sample['id']}/audio").content
    sound = np.frombuffer(stored[44:], np.int16)
    assert len(sound) == 45 * 44_100
    assert np.argmax(np.abs(np.fft.rfft(sound[: 10 * 44_100]))) / 10 == pytest.approx(500, abs=1)

    press(screen, "Create another voice")
    bring(screen, tmp_path, tone(40, rate=16_000), 16_000)
    expect(area(screen).get_by_role("button", name="Listen as it will be used")).to_be_enabled()  # it is decoded
    start, end = (float(area(screen).get_by_label(name, exact=True).input_value()) for name in ("From", "to"))
    assert 1 <= end - start <= 30
    area(screen).get_by_label("to", exact=True).fill("39")
    area(screen).get_by_label("to", exact=True).press("Tab")
    expect(area(screen).get_by_label("From", exact=True)).to_have_value("9.00")


def test_noise_reduction_is_previewed_and_rated_before_saving(steered: Steer, open_page: Open, tmp_path: Path) -> None:
    studio = steered()
    screen = open_page(studio).ready()
    steps = new_voice(screen)
    noise = np.random.default_rng(0).normal(scale=0.02, size=3 * 44_100).astype(np.float32)
    bring(screen, tmp_path, tone(3, hertz=200) + noise)
    switch, nav = steps.get_by_label("Reduce noise"), steps.locator("[data-part=nav]")
    held = Held(screen.page, "**/v1/voices/advise")
    switch.check()
    expect(nav).to_contain_text("Checking the clip …")
    held.answer(0)
    expect(steps.locator("[data-part=treatment]")).to_have_text("noise reduced")
    with screen.page.expect_response("**/v1/voices/denoise"):
        press(screen, "Listen as it will be used")
    screen.page.unroute("**/v1/voices/advise")
    assert serious_violations(screen) == []
    press(screen, "Next")
    steps.get_by_label("Transcript").fill("A steady tone.")
    press(screen, "Next")
    save(screen, "Clean")
    expect(steps.locator("[data-part=saved-title]")).to_have_text("Clean is in the library")
    with studio.client() as client:
        sample = client.get("/v1/voices/clean").json()["samples"][0]
        denoised = client.post("/v1/voices/denoise", files={"audio_sample": (tmp_path / "me.wav").read_bytes()}).content
        assert client.get(f"/v1/voices/clean/samples/{sample['id']}/audio").content == denoised
    press(screen, "Create another voice")
    bring(screen, tmp_path, tone(3))
    expect(switch).not_to_be_checked()


def test_recogniser_is_downloaded_by_a_click_and_transcribes_the_clip(
    steered: Steer, open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "base"
    write_model(weights, ["A", "steady", "tone."], 1.0)
    with serve_hub(weights, MODEL) as hub:
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        monkeypatch.setattr(denoiser, "PACKAGE", "a_package_that_is_not_there")
        screen = open_page(steered()).ready()
        steps = new_voice(screen)
        bring(screen, tmp_path, tone(3))
        expect(steps.locator("[data-part=advice]")).to_contain_text("out of 100")
        expect(steps.get_by_label("Reduce noise")).to_be_hidden()  # its package is missing
        press(screen, "Next")
        offer = steps.locator(".recogniser")
        expect(offer).to_contain_text("148 MB, licence MIT")
        press(screen, "Download a speech recogniser")
        expect(offer).to_contain_text("Download failed: 127.0.0.1 cannot be reached")
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        hub.gate.clear()
        press(screen, "Download a speech recogniser")
        expect(offer).to_contain_text(re.compile(r"Downloading: \d+ of \d+ MB"))
        assert serious_violations(screen) == []
        assert screen.page.evaluate("document.documentElement.scrollWidth") <= screen.width()
        press(screen, "Cancel")
        expect(offer).to_contain_text("No speech recogniser is set up here")
        hub.gate.set()
        press(screen, "Download a speech recogniser")
        expect(steps.get_by_label("Transcript")).to_have_value("A steady tone.")
        expect(offer).to_be_hidden()
        expect(steps.get_by_role("button", name="Transcribe", exact=True)).to_be_visible()


def test_studio_offers_the_recogniser_for_a_clip_without_a_transcript(
    steered: Steer, open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "base"
    write_model(weights, ["A", "steady", "tone."], 1.0)
    (tmp_path / "me.wav").write_bytes(wav(tone(6)))
    with serve_hub(weights, MODEL) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        screen = open_page(steered(), **PHONE).ready()
        screen.bring_clip(tmp_path / "me.wav")
        card, words = screen.own_clip, screen.own_clip.get_by_label("Transcript of the clip")
        expect(card.locator(".recogniser")).to_contain_text("148 MB, licence MIT")
        assert serious_violations(screen) == []
        assert screen.page.evaluate("document.documentElement.scrollWidth") <= screen.width()
        words.fill("Typed.")
        expect(card.locator(".recogniser")).to_be_hidden()
        words.fill("")
        card.get_by_role("button", name="Download a speech recogniser").click()
        expect(words).to_have_value("A steady tone.")
        words.fill("")
        card.get_by_role("button", name="Transcribe", exact=True).click()
        expect(words).to_have_value("A steady tone.")
        expect(card.get_by_role("button", name="Transcribe", exact=True)).to_be_hidden()
