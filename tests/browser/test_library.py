"""The library's area: voices found, heard, chosen, changed, packed, deleted and brought back."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

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


def keep(studio: Served, name: str, **fields: str) -> None:
    """Put a voice into the library."""
    with studio.client() as client:
        data = {"name": name, "ref_text": "A steady tone."} | fields
        client.post("/v1/audio/voices", data=data, files={"audio_sample": wav(tone(6))}).raise_for_status()


def library(screen: Screen) -> None:
    screen.page.get_by_role("tab", name="Voices").click()
    expect(screen.page.get_by_role("tabpanel", name="Voices")).to_be_visible()


def test_a_deleted_voice_leaves_the_picker_and_can_be_brought_back(studio: Served, open_page: Open) -> None:
    keep(studio, "Cleo")
    screen = open_page(studio).ready()
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
    keep(studio, "Cleo")
    screen = open_page(studio).ready()
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
    with screen.page.expect_response("**/preview*") as preview:
        screen.page.get_by_role("button", name="Listen to Bert").click()
    assert preview.value.headers["content-type"] == "audio/wav"
    screen.page.get_by_role("button", name="Favourite Bert").click()
    expect(screen.page.get_by_role("button", name="Favourite Bert")).to_have_attribute("aria-pressed", "true")
    screen.page.get_by_label("Find a voice").fill("ann")
    expect(screen.page.get_by_role("button", name="Use Bert")).to_have_count(0)
    expect(screen.page.get_by_role("button", name="Use Anna")).to_be_visible()


def test_a_voices_name_is_never_run(studio: Served, open_page: Open) -> None:
    attack = "<img src=x onerror=\"document.body.dataset.hacked='yes'\">"
    keep(studio, attack)
    screen = open_page(studio).ready()
    library(screen)
    expect(screen.page.get_by_role("tabpanel", name="Voices")).to_contain_text(attack)
    assert screen.page.locator("body").get_attribute("data-hacked") is None
