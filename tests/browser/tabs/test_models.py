"""The dialog of models: which fit, a download with its progress, and a switch, after which the new model speaks."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import huggingface_hub.constants
import pytest
from playwright.sync_api import Locator, expect

from engine import Engine
from studio.models.catalogue import TREES, in_catalogue
from studio.settings import Settings
from tests.browser.screen import Screen, go
from tests.browser.test_looks import PHONE, serious_violations
from tests.studio.models.hub import Hub, serve_hub
from tests.studio.server import Served, serve
from tests.tiny import damage_values

Open = Callable[..., Screen]
AUDIO8 = "Audio8-TTS-Preview 0.6B"


@pytest.fixture
def hub(quick_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    model = in_catalogue("audio8-0.6b")
    assert model and model.repo
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    with serve_hub(quick_checkpoint, model.repo, "codec.pth") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


@pytest.fixture
def studio(hub: Hub, quick_checkpoint: Path, voices_folder: Path, tmp_path: Path) -> Iterator[Served]:
    """A studio with the real engine and memory for small models."""
    settings = Settings(
        model=str(quick_checkpoint), voices=str(voices_folder), home=str(tmp_path / "home"), max_rows=1, memory_budget=1
    )
    with serve(settings, Engine.start, page=True) as served:
        yield served


def show(screen: Screen, area: str) -> None:
    screen.page.evaluate("(area) => (location.hash = area)", area)


def open_dialog(screen: Screen) -> Locator:
    """Open the dialog and wait for its list."""
    go(screen.page, "Settings")
    screen.page.get_by_role("button", name="Choose a model").click()
    dialog = screen.page.get_by_role("dialog", name="Models")
    expect(dialog.get_by_role("listitem").first).to_be_visible()
    return dialog


def test_model_is_downloaded_switched_to_and_used(studio: Served, hub: Hub, open_page: Open) -> None:
    screen = open_page(studio)
    dialog = open_dialog(screen)
    audio8, s2_pro = (dialog.get_by_role("listitem").filter(has_text=title) for title in (AUDIO8, "S2 Pro"))
    expect(s2_pro).to_contain_text("does not fit: needs at least")
    expect(s2_pro).to_contain_text("English, Chinese, Japanese")
    expect(audio8).to_contain_text("Apache-2.0")
    assert serious_violations(screen) == []

    hub.gate.clear()
    audio8.get_by_role("button", name="Download (2.5 GB)").click()
    expect(audio8.get_by_role("progressbar")).to_have_attribute("value", re.compile(r"0\.\d+"))
    audio8.get_by_role("button", name="Cancel download").click()
    hub.gate.set()
    audio8.get_by_role("button", name="Download (2.5 GB)").click()
    use = audio8.get_by_role("button", name=f"Use {AUDIO8}")
    use.click()
    expect(audio8).to_contain_text("Speech that has begun is finished first")
    audio8.get_by_role("button", name="Not now").click()
    expect(use).to_be_focused()
    use.click()
    assert serious_violations(screen) == []
    audio8.get_by_role("button", name="Switch", exact=True).click()
    expect(audio8).to_contain_text("In use")
    expect(dialog.get_by_role("status")).to_contain_text("STUDIO_MODEL is set")
    dialog.get_by_role("button", name="Close").click()

    expect(screen.page.locator("#pill")).to_contain_text("Edge0/Audio8-TTS-Preview-0.6b")
    show(screen, "studio")
    screen.cut_after(1)
    screen.script.fill("Hello.")
    screen.speak.click()
    screen.until_over()


def test_folder_is_looked_up_and_a_broken_model_falls_back(
    studio: Served, quick_checkpoint: Path, tmp_path: Path, open_page: Open
) -> None:
    large, cut, damaged = tmp_path / "large", tmp_path / "cut", tmp_path / "damaged"
    large.mkdir()
    (large / "config.json").write_text(json.dumps(TREES["s2-pro"]))
    for folder in (cut, damaged):
        shutil.copytree(quick_checkpoint, folder)
    (cut / "codec.pth").write_bytes((cut / "codec.pth").read_bytes()[:-100])
    damage_values(damaged / "model.safetensors")
    screen = open_page(studio, **PHONE, color_scheme="dark")
    dialog = open_dialog(screen)
    dialog.get_by_label("A folder or file").fill(missing := str(tmp_path / "missing"))
    dialog.get_by_role("button", name="Check").click()
    nowhere = dialog.get_by_role("listitem").filter(has_text=f"not found: '{missing}'")
    expect(nowhere.locator("dt")).to_have_text(["On this machine"])
    dialog.get_by_label("A folder or file").fill(str(large))
    dialog.get_by_role("button", name="Check").click()
    there = dialog.get_by_role("listitem").filter(has_text=str(large))
    expect(there.locator(".models-wrong")).to_be_in_viewport()
    expect(there).to_contain_text("does not fit")
    expect(there.get_by_role("button", name="Use")).to_be_disabled()
    for folder, reason in ((cut, "codec.pth is not a file of torch.save"), (damaged, "damaged could not be loaded")):
        dialog.get_by_label("A folder or file").fill(str(folder))
        dialog.get_by_label("A folder or file").press("Enter")
        there = dialog.get_by_role("listitem").filter(has_text=str(folder))
        there.get_by_role("button", name="Use").click()
        there.get_by_role("button", name="Switch", exact=True).click()
        expect(dialog.get_by_role("status")).to_contain_text(reason)
        expect(dialog.get_by_role("status")).to_be_in_viewport()
        expect(there.get_by_role("button", name="Switch", exact=True)).to_have_count(0)
    expect(dialog.get_by_role("listitem").filter(has_text="In use")).to_contain_text(quick_checkpoint.name)
    assert serious_violations(screen) == []
    assert dialog.evaluate("(dialog) => dialog.scrollWidth <= dialog.clientWidth")


def test_only_the_owner_is_offered_models(steered: Callable[..., Served], open_page: Open) -> None:
    screen = open_page(steered())
    guest = {"is_owner": False}
    screen.page.route("**/v1/settings", lambda route: route.fulfill(json=route.fetch().json() | guest))
    show(screen, "settings")
    expect(screen.page.locator("#area-settings [data-part=facts] dt").first).to_be_visible()
    expect(screen.page.get_by_role("button", name="Choose a model")).to_have_count(0)
