"""A voice of one's own: judged, mended, kept, chosen and spoken in; and the library's area."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.screen import Screen
from tests.studio.server import Served
from tests.studio.sounds import tone, wav

Open = Callable[..., Screen]
Steer = Callable[..., Served]


@pytest.fixture
def studio(steered: Steer) -> Iterator[Served]:
    yield steered()


def bring_clip(screen: Screen, folder: Path, pcm: np.ndarray) -> None:
    (folder / "me.wav").write_bytes(wav(pcm))
    screen.page.get_by_role("radio", name="Your own clip").check()
    screen.page.locator("#clip").get_by_label("Upload file").click()
    screen.page.locator("#clip input[type=file]").set_input_files(folder / "me.wav")
    expect(screen.page.locator("#keep [data-part=advice]")).to_contain_text("of 100")


def keep(screen: Screen, name: str) -> None:
    screen.page.get_by_label("What is said in the clip").fill("A steady tone.")
    screen.page.get_by_label("Its name").fill(name)
    screen.page.get_by_label("It is mine, or I may use it.").check()
    screen.page.get_by_role("button", name="Keep voice").click()


def library(screen: Screen) -> None:
    screen.page.get_by_role("tab", name="Voices").click()
    expect(screen.page.get_by_role("tabpanel", name="Voices")).to_be_visible()


def test_a_clip_is_kept_chosen_and_spoken_in(studio: Served, open_page: Open, tmp_path: Path) -> None:
    screen = open_page(studio).ready()
    bring_clip(screen, tmp_path, tone(6))
    keep(screen, "Cleo")
    expect(screen.page.get_by_label("Choose a voice")).to_have_value("Cleo")
    screen.script.fill("Two words")
    with screen.page.expect_request("**/v1/audio/speech") as request:
        screen.speak.click()
    assert request.value.post_data_json["voice"] == "cleo"
    screen.until_over()
    expect(screen.takes).to_contain_text("Cleo")
    other = open_page(studio).ready()
    other.page.get_by_label("Choose a voice").click()
    expect(other.page.get_by_role("option", name="Cleo")).to_be_visible()


def test_a_quiet_clip_is_judged_and_mended(studio: Served, open_page: Open, tmp_path: Path) -> None:
    screen = open_page(studio).ready()
    bring_clip(screen, tmp_path, tone(6, level=0.005))
    advice = screen.page.locator("#keep [data-part=advice]")
    expect(advice).to_contain_text("Speech is quiet")
    screen.page.get_by_role("button", name="Apply the fixes").click()
    expect(advice).not_to_contain_text("Speech is quiet")
    keep(screen, "Quiet one")
    expect(screen.page.get_by_label("Choose a voice")).to_have_value("Quiet one")
    kept = studio.client().get("/v1/voices/quiet-one").json()
    assert kept["samples"][0]["cut"]["gain_db"] > 10


def test_what_is_missing_is_asked_for(studio: Served, open_page: Open, tmp_path: Path) -> None:
    screen = open_page(studio).ready()
    bring_clip(screen, tmp_path, tone(6))
    said = screen.page.locator("#keep [data-part=said]")
    save = screen.page.get_by_role("button", name="Keep voice")
    save.click()
    expect(said).to_have_text("First write down what is said in the clip.")
    screen.page.get_by_label("What is said in the clip").fill("A tone.")
    save.click()
    expect(said).to_have_text("Give the voice a name.")
    screen.page.get_by_label("Its name").fill("Dora")
    save.click()
    expect(said).to_contain_text("Say that the voice is yours")
    screen.page.get_by_label("Its name").fill("Anna")
    screen.page.get_by_label("It is mine, or I may use it.").check()
    save.click()
    expect(said).to_contain_text("Anna")
    expect(screen.page.locator("#own-clip")).to_be_visible()


def test_a_deleted_voice_leaves_the_picker_and_can_be_brought_back(
    studio: Served, open_page: Open, tmp_path: Path
) -> None:
    screen = open_page(studio).ready()
    bring_clip(screen, tmp_path, tone(6))
    keep(screen, "Cleo")
    expect(screen.page.get_by_label("Choose a voice")).to_have_value("Cleo")
    library(screen)
    screen.page.get_by_role("button", name="Delete Cleo").click()
    area = screen.page.get_by_role("tabpanel", name="Voices")
    expect(area).to_contain_text("Cleo is deleted.")
    expect(screen.page.locator("#voice input")).to_have_value("Anna")
    area.get_by_role("button", name="Undo").click()
    expect(area).to_contain_text("Cleo is back.")
    area.get_by_role("button", name="Use Cleo").click()
    expect(screen.page.get_by_label("Choose a voice")).to_have_value("Cleo")


def test_a_voice_is_exported_and_imported_again(studio: Served, open_page: Open, tmp_path: Path) -> None:
    screen = open_page(studio).ready()
    bring_clip(screen, tmp_path, tone(6))
    keep(screen, "Cleo")
    expect(screen.page.get_by_label("Choose a voice")).to_have_value("Cleo")
    library(screen)
    with screen.page.expect_download() as saving:
        screen.page.get_by_role("link", name="Export Cleo").click()
    pack = tmp_path / "cleo.fishvoice"
    saving.value.save_as(pack)
    assert zipfile.is_zipfile(io.BytesIO(pack.read_bytes()))
    screen.page.get_by_role("button", name="Delete Cleo").click()
    expect(screen.page.get_by_role("button", name="Use Cleo")).to_have_count(0)
    screen.page.get_by_label("Import a voice pack").set_input_files(pack)
    expect(screen.page.get_by_role("tabpanel", name="Voices")).to_contain_text("Cleo is in the library.")
    expect(screen.page.get_by_role("button", name="Use Cleo")).to_be_visible()


def test_voices_are_found_favoured_and_listened_to(studio: Served, open_page: Open) -> None:
    screen = open_page(studio).ready()
    library(screen)
    with screen.page.expect_response("**/preview") as preview:
        screen.page.get_by_role("button", name="Listen to Bert").click()
    assert preview.value.headers["content-type"] == "audio/wav"
    screen.page.get_by_role("button", name="Favourite Bert").click()
    expect(screen.page.get_by_role("button", name="Favourite Bert")).to_have_attribute("aria-pressed", "true")
    screen.page.get_by_label("Find a voice").fill("ann")
    expect(screen.page.get_by_role("button", name="Use Bert")).to_have_count(0)
    expect(screen.page.get_by_role("button", name="Use Anna")).to_be_visible()


def test_a_voices_name_is_never_run(studio: Served, open_page: Open, tmp_path: Path) -> None:
    attack = "<img src=x onerror=\"document.body.dataset.hacked='yes'\">"
    screen = open_page(studio).ready()
    bring_clip(screen, tmp_path, tone(6))
    keep(screen, attack)
    expect(screen.page.get_by_label("Choose a voice")).to_have_value(attack)
    library(screen)
    expect(screen.page.get_by_role("tabpanel", name="Voices")).to_contain_text(attack)
    assert screen.page.locator("body").get_attribute("data-hacked") is None
