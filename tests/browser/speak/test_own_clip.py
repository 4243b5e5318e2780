"""Your own clip: recorded with the browser's microphone or uploaded, with its words, it becomes the voice."""

from __future__ import annotations

import base64
import io
import re
import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.screen import Held, Screen, posted
from tests.studio.server import Served
from tests.studio.sounds import tone, wav

Open = Callable[..., Screen]
UPLOAD = re.compile(r"/gradio_api/upload\?")


def own_clip(screen: Screen) -> None:
    screen.page.get_by_role("radio", name="Your own clip").check()
    expect(screen.page.locator("#own-clip")).to_be_visible()
    expect(screen.page.locator("#voice")).to_be_hidden()


def samples_of(data_url: str) -> tuple[int, np.ndarray]:
    with wave.open(io.BytesIO(base64.b64decode(data_url.partition(",")[2]))) as file:
        pcm = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        return file.getframerate(), pcm.reshape(-1, file.getnchannels())[:, 0] / 32768


def test_a_recorded_clip_is_sent_unprocessed_and_speaks(served: Served, open_page: Open) -> None:
    screen = open_page(served, permissions=["microphone"]).ready()
    screen.cut_after(2)
    own_clip(screen)
    screen.page.get_by_role("button", name="Record", exact=True).click()
    screen.page.wait_for_timeout(2500)  # the recording's length, not a wait for something to happen
    screen.page.locator("#clip button.stop-button:visible").click()
    screen.page.get_by_label("What is said in the clip").fill("A long tone.")
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


def test_an_uploaded_clip_is_sent_byte_for_byte(served: Served, open_page: Open, tmp_path: Path) -> None:
    clip = tmp_path / "me.wav"
    clip.write_bytes(wav(tone(2.0, hertz=220)))
    screen = open_page(served).ready()
    screen.cut_after(2)
    own_clip(screen)
    screen.page.locator("#clip").get_by_label("Upload file").click()
    screen.page.locator("#clip input[type=file]").set_input_files(clip)
    expect(screen.page.locator("#clip").get_by_label("Trim audio to selection")).to_be_visible()
    screen.page.get_by_label("What is said in the clip").fill("A lower tone.")
    with screen.page.expect_request("**/v1/audio/speech") as request:
        screen.speak.click()
    assert base64.b64decode(posted(request.value)["ref_audio"].partition(",")[2]) == clip.read_bytes()
    screen.until_over()


def test_speak_waits_for_a_clip_that_is_still_on_its_way(served: Served, open_page: Open, tmp_path: Path) -> None:
    (tmp_path / "me.wav").write_bytes(wav(tone(2.0, hertz=220)))
    screen = open_page(served).ready()
    asked = Held(screen.page, UPLOAD)
    screen.cut_after(2)
    own_clip(screen)
    screen.page.locator("#clip").get_by_label("Upload file").click()
    screen.page.locator("#clip input[type=file]").set_input_files(tmp_path / "me.wav")
    screen.speak.click()
    expect(screen.status).to_contain_text("Your clip is being uploaded")
    screen.stop.click()
    expect(screen.status).to_have_text("Stopped")
    screen.speak.click()
    expect(screen.status).to_contain_text("Your clip is being uploaded")
    screen.page.get_by_label("What is said in the clip").fill("A lower tone.")
    with screen.page.expect_request("**/v1/audio/speech") as request:
        asked[0].continue_()
    sent = posted(request.value)
    assert base64.b64decode(sent["ref_audio"].partition(",")[2]) == (tmp_path / "me.wav").read_bytes()
    assert sent["ref_text"] == "A lower tone."  # written while the clip was on its way
    screen.until_over()


def test_a_clip_that_gets_lost_on_its_way_is_said(served: Served, open_page: Open, tmp_path: Path) -> None:
    (tmp_path / "me.wav").write_bytes(wav(tone(2.0)))
    screen = open_page(served).ready()
    asked = Held(screen.page, UPLOAD)
    own_clip(screen)
    screen.page.locator("#clip").get_by_label("Upload file").click()
    screen.page.locator("#clip input[type=file]").set_input_files(tmp_path / "me.wav")
    screen.speak.click()
    expect(screen.status).to_contain_text("Your clip is being uploaded")
    asked[0].fulfill(status=413, json={"detail": "too large"})
    expect(screen.card).to_contain_text("Your clip did not arrive.")


def test_a_missing_clip_is_asked_for_and_one_that_is_no_sound_refused_in_words(
    served: Served, open_page: Open, tmp_path: Path
) -> None:
    screen = open_page(served).ready()
    own_clip(screen)
    screen.speak.click()
    expect(screen.card).to_contain_text("There is no clip yet.")
    expect(screen.card).to_contain_text("Record or upload 10 to 30 seconds")

    clip = tmp_path / "noise.wav"
    clip.write_bytes(b"RIFF" + bytes(400))
    screen.page.locator("#clip").get_by_label("Upload file").click()
    with screen.page.expect_response("**/upload*"):
        screen.page.locator("#clip input[type=file]").set_input_files(clip)
    screen.page.get_by_label("What is said in the clip").fill("Nothing.")
    with screen.page.expect_response("**/v1/audio/speech") as answer:
        screen.speak.click()
    assert answer.value.status == 400
    expect(screen.card).to_contain_text("Record or upload 10 to 30 seconds of one person speaking")
