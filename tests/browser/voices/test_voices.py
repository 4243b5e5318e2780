"""The Voices area: voices are filtered, played, used, edited, exported, deleted and restored."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, Locator, expect

from studio.library import VoiceFields
from tests.browser.screen import Held, Screen, asks_before_leaving, go, posted
from tests.browser.test_looks import PHONE, serious_violations
from tests.studio.clips import new_sample
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


def library(screen: Screen) -> Locator:
    region = screen.page.get_by_role("region", name="Voices")
    return region if region.is_visible() else go(screen.page, "Voices")  # the link would close the inspector


def inspect(screen: Screen, name: str) -> Locator:
    library(screen).locator(".card-open").filter(has=screen.page.get_by_text(name, exact=True)).click()
    inspector = screen.page.locator("#inspector")
    expect(inspector.get_by_role("heading", name=name, exact=True)).to_be_visible()
    return inspector


def picked(screen: Screen) -> Locator:
    return screen.page.locator("#voice input")


def test_deleted_voice_leaves_the_picker_and_can_be_restored(studio: Served, open_page: Open) -> None:
    keep(studio, "Cleo")
    screen = open_page(studio).ready()
    screen.script.fill("Zed: Hello.")
    screen.page.get_by_role("switch", name="Dialogue").click()
    role = screen.page.get_by_label("Voice of Zed")
    role.focus()
    role.select_option("cleo")
    area = library(screen)
    screen.page.route("**/v1/audio/voices", lambda route: route.abort(), times=1)  # a known voice is used all the same
    area.get_by_role("button", name="Use Cleo").click()
    expect(picked(screen)).to_have_value("Cleo")
    inspector = inspect(screen, "Cleo")
    for words in ("Unsaved.", ""):
        inspector.get_by_label("Description").fill(words)
        inspector.get_by_role("button", name="Delete Cleo", exact=True).click()
        expect(area).to_contain_text("Not saved yet" if words else "Deleted “Cleo”.")
    expect(picked(screen)).to_have_value("Anna")
    expect(role).not_to_have_value("cleo")
    area.get_by_role("button", name="Undo").click()
    expect(picked(screen)).to_have_value("Cleo")
    expect(role).to_have_value("cleo")
    inspect(screen, "Cleo").get_by_role("button", name="Delete Cleo", exact=True).click()
    expect(picked(screen)).to_have_value("Anna")
    for chosen in ("Bert", "Anna"):  # by hand, and so it stays when the other one is back
        go(screen.page, "Studio")
        picked(screen).click()
        screen.page.locator("#voice").get_by_role("option", name=chosen).click()
        expect(picked(screen)).to_have_value(chosen)
    library(screen).get_by_role("button", name="Undo").click()
    expect(role).to_have_value("cleo")
    expect(picked(screen)).to_have_value("Anna")
    library(screen).get_by_role("button", name="Use Cleo").click()
    screen.page.route("**/v1/audio/voices", lambda route: route.abort())  # a lost refresh causes no page error
    with screen.page.expect_event("requestfailed", lambda request: request.url.endswith("/v1/audio/voices")):
        inspect(screen, "Cleo").get_by_role("button", name="Duplicate Cleo", exact=True).dblclick()
    expect(area).to_contain_text("Saved as “Cleo copy”.")
    expect(area.locator(".card")).to_have_count(4)


def test_a_folder_of_fish_speechs_references_is_imported(studio: Served, open_page: Open, tmp_path: Path) -> None:
    """Both as a folder and as a zip file of it."""
    files = {"Cleo/1.wav": wav(tone(6)), "Cleo/1.lab": b"A steady tone.", "Cleo/2.wav": wav(tone(6)), "Dora/1.wav": b""}
    for name, data in files.items():
        (tmp_path / "references" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "references" / name).write_bytes(data)
    area = library(open_page(studio).ready())
    area.get_by_label("Import a folder of recordings").set_input_files(tmp_path / "references")
    expect(area).to_contain_text("1 voice imported from the folder. Skipped: references/Cleo/2.wav")
    expect(area.locator(".card")).to_have_count(3)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("1.wav", "1.lab"):
            file.writestr(f"references/Eve/{name}", files[f"Cleo/{name}"])
    sent: FilePayload = {"name": "references.zip", "mimeType": "application/zip", "buffer": archive.getvalue()}
    area.get_by_label("Import a voice pack").set_input_files(sent)
    expect(area).to_contain_text("1 voice imported from the folder.")
    expect(area).not_to_contain_text("Skipped")
    expect(area.locator(".card")).to_have_count(4)  # the list follows the message
    expect(area.locator(".card strong", has_text="Eve")).to_be_visible()


def test_voice_is_exported_duplicated_and_imported(studio: Served, open_page: Open, tmp_path: Path) -> None:
    keep(studio, "Cleo")
    screen = open_page(studio).ready()
    inspector = inspect(screen, "Cleo")
    with screen.page.expect_download() as saving:
        inspector.get_by_role("link", name="Export Cleo").click()
    pack = tmp_path / "cleo.fishvoice"
    saving.value.save_as(pack)
    assert zipfile.is_zipfile(io.BytesIO(pack.read_bytes()))
    inspector.get_by_role("button", name="Duplicate Cleo").click()
    expect(inspector.get_by_role("heading", name="Cleo copy")).to_be_visible()
    inspect(screen, "Cleo").get_by_role("button", name="Delete Cleo", exact=True).click()
    expect(screen.page.get_by_role("button", name="Use Cleo", exact=True)).to_have_count(0)
    screen.page.get_by_label("Import a voice pack").set_input_files(pack)
    expect(library(screen)).to_contain_text("Cleo is in the library.")
    expect(screen.page.get_by_role("button", name="Use Cleo", exact=True)).to_be_visible()
    importing = screen.page.get_by_role("form", name="Import under another name")
    expect(importing).to_be_hidden()
    screen.page.get_by_label("Import a voice pack").set_input_files(pack)
    expect(importing).to_contain_text("“Cleo” is already in the library.")
    name = importing.get_by_label("Import as")
    expect(name).to_be_focused()
    expect(name).to_have_value("Cleo 2")
    importing.get_by_role("button", name="Import", exact=True).click()
    expect(library(screen)).to_contain_text("Cleo 2 is in the library.")
    expect(importing).to_be_hidden()
    screen.page.get_by_label("Import a voice pack").set_input_files(pack)
    expect(name).to_have_value("Cleo 3")
    name.fill("Cleo 2")
    importing.get_by_role("button", name="Import", exact=True).click()
    expect(library(screen)).to_contain_text("A voice named 'Cleo 2' already exists")
    inspect(screen, "Cleo").get_by_label("Description").fill("A tone.")
    importing.get_by_role("button", name="Replace the voice's clips").click()
    expect(library(screen)).to_contain_text("“Cleo” has a new revision; the old one is kept.")
    expect(inspector.locator("[data-part=address]")).to_have_text("cleo@2")
    inspector.get_by_role("button", name="Save", exact=True).click()
    expect(inspector.locator("[data-part=inspector-said]")).to_have_text("Saved “Cleo”.")
    (tmp_path / "bad.fishvoice").write_bytes(b"no zip")
    screen.page.get_by_label("Import a voice pack").set_input_files(tmp_path / "bad.fishvoice")
    expect(library(screen)).to_contain_text("zip")


def test_voices_are_filtered_by_name_tag_language_and_gender_and_sorted(studio: Served, open_page: Open) -> None:
    keep(studio, "Cleo", tags="warm,slow", gender="female", accent="Irish", language="en-IE")
    keep(studio, "Dora", tags="warm", gender="male", colour="#ffcc00", language="Dora")
    screen = open_page(studio).ready()
    screen.page.route("**/v1/voices?*", lambda route: route.abort(), times=1)  # the rest of the studio answers
    area = library(screen)
    expect(area.locator("[data-part=said]")).to_have_text("The studio is not responding.")
    expect(area.locator(".card")).to_have_count(4)
    expect(area.locator("[data-part=said]")).to_have_text("")
    area.get_by_role("button", name="Favourites", exact=True).click()
    expect(area.locator("[data-part=empty]")).to_contain_text("No favourites yet")
    area.get_by_role("button", name="All", exact=True).click()
    area.get_by_role("button", name="Favourite Dora").click()
    expect(area.get_by_role("button", name="Favourite Dora")).to_have_attribute("aria-pressed", "true")
    expect(area.get_by_role("button", name="Favourite Dora")).to_be_focused()
    expect(area.locator(".card strong")).to_have_text(["Dora", "Anna", "Bert", "Cleo"])
    area.get_by_role("button", name="Favourites", exact=True).click()
    expect(area.locator(".card")).to_have_count(1)
    area.get_by_role("button", name="Recent").click()
    expect(area.locator(".card strong").nth(1)).to_have_text("Cleo")
    area.get_by_role("button", name="All", exact=True).click()
    card = area.locator(".card").filter(has_text="Cleo")
    expect(card.locator(".card-open .quiet")).to_have_text("female · Irish · warm, slow")
    expect(card.locator(".voice-initial")).to_have_text("C")
    area.get_by_label("Filter by language").select_option("English")
    expect(area.locator(".card strong")).to_have_text(["Cleo"])
    area.get_by_label("Filter by gender").select_option("Male")
    expect(area).to_contain_text("No voices match.")
    area.get_by_label("Filter by language").select_option("Language")
    expect(area.locator(".card strong")).to_have_text(["Dora"])
    area.get_by_label("Filter by gender").select_option("Gender")
    area.get_by_role("button", name="warm", exact=True).click()
    expect(area.locator(".card")).to_have_count(2)
    area.get_by_role("button", name="slow", exact=True).click()
    expect(area.locator(".card strong")).to_have_text(["Cleo"])
    area.get_by_label("Find a voice").fill("nobody")
    expect(area).to_contain_text("No voices match.")
    assert serious_violations(screen) == []


def test_a_large_library_is_shown_page_by_page(studio: Served, open_page: Open) -> None:
    library_of = studio.app.state.studio.speech.voices.library
    for number in range(120):
        library_of.voices.create(VoiceFields(name=f"Voice {number:03}"), [new_sample()])
    screen = open_page(studio).ready()
    area = library(screen)
    expect(area.locator(".card")).to_have_count(100)
    area.get_by_role("button", name="Show more").dblclick()
    expect(area.locator(".card")).to_have_count(122)
    expect(area.get_by_role("button", name="Show more")).to_be_hidden()


def test_voice_is_played_by_keyboard_and_late_responses_are_not_shown(studio: Served, open_page: Open) -> None:
    screen = open_page(studio).ready()
    area = library(screen)
    with screen.page.expect_response("**/preview*") as preview:
        area.get_by_role("button", name="Listen to Bert").press("Enter")
    assert preview.value.headers["content-type"] == "audio/wav"
    expect(screen.status).to_have_text("Bert’s sample")  # it is short and ends by itself
    anna, bert = (area.get_by_role("button", name=re.compile(rf"^{name}\b")) for name in ("Anna", "Bert"))
    anna.focus()
    anna.press("ArrowDown")
    expect(bert).to_be_focused()
    bert.press("Enter")
    inspector = screen.page.locator("#inspector")
    expect(inspector).to_be_focused()
    inspector.press("Escape")
    expect(inspector).to_be_hidden()
    expect(bert).to_be_focused()

    requests = Held(screen.page, "**/v1/voices/*/revisions**")
    anna.click()
    requests.wait_for(1)
    bert.click()
    requests.answer(1)
    expect(inspector.get_by_role("heading", name="Bert")).to_be_visible()
    requests.answer(0)
    expect(inspector.get_by_role("heading", name="Bert")).to_be_visible()
    expect(inspector.get_by_label("Transcript of the clip")).to_have_value("My name is bert.")
    inspector.get_by_role("button", name="Save", exact=True).click()
    requests.wait_for(3)
    anna.click()
    requests.wait_for(4)
    inspector.get_by_role("button", name="Close the inspector").click()
    for number in (2, 3):
        requests.answer(number)
        expect(inspector).to_be_hidden()


def test_clips_are_edited_removed_and_an_old_revision_restored(studio: Served, open_page: Open) -> None:
    keep(studio, "Cleo")
    with studio.client() as client:
        files = {"audio_sample": wav(tone(4, level=0.01))}
        client.post("/v1/voices/cleo/samples", data={"ref_text": "A quiet tone."}, files=files).raise_for_status()
    screen = open_page(studio).ready()
    inspector = inspect(screen, "Cleo")
    clips = inspector.locator(".samples > li")
    expect(clips).to_have_count(2)
    clips.nth(1).get_by_label("Transcript of the clip").fill("A very quiet tone.")
    saving = Held(screen.page, "**/v1/voices/*", "PATCH")
    inspector.get_by_label("Description").fill("Two tones.")
    inspector.get_by_role("button", name="Save", exact=True).click()
    saving.wait_for(1)
    clips.nth(1).get_by_role("button", name="Save transcript").dblclick()
    saving.answer_all()
    expect(inspector.locator("[data-part=address]")).to_have_text("cleo@3")
    expect(inspector.locator("[data-part=inspector-said]")).to_contain_text("Transcript saved")
    clips.nth(1).get_by_role("button", name="Check").click()
    clips.nth(1).get_by_role("button", name="Raise by").click()
    expect(inspector.locator("[data-part=address]")).to_have_text("cleo@4")
    clips.nth(0).get_by_label("Used").click()
    expect(inspector.locator("[data-part=address]")).to_have_text("cleo@5")
    expect(clips).to_have_count(2)
    expect(clips.nth(1).get_by_label("Used")).not_to_be_checked()
    use_and_show_another_voice(screen, inspector)
    expect(inspector.locator("[data-part=address]")).to_have_text("cleo@6")
    clips.nth(1).get_by_label("Used").click()
    expect(inspector.locator("[data-part=address]")).to_have_text("cleo@7")
    clips.nth(0).get_by_label("Used").click()
    expect(inspector).to_contain_text("at least one sample")
    inspector.locator("[data-part=revision]").select_option("1")
    expect(clips).to_contain_text(["A steady tone."])
    inspector.get_by_role("button", name="Restore this revision").click()
    expect(inspector.locator("[data-part=address]")).to_have_text("cleo@8")
    assert serious_violations(screen) == []
    with studio.client() as client:
        samples = client.get("/v1/voices/cleo@4").json()["samples"]
        assert samples[1]["text"] == "A very quiet tone." and samples[1]["cut"]["gain_db"] > 10
        assert len(client.get("/v1/voices/cleo").json()["samples"]) == 1
    inspector.get_by_role("button", name="Add a clip").click()
    expect(screen.page.get_by_role("heading", name="Another clip of Cleo")).to_be_visible()


def use_and_show_another_voice(screen: Screen, inspector: Locator) -> None:
    """Tick a clip while a change of its voice is being saved, and show another voice at once."""
    reading = Held(screen.page, "**/v1/voices/*/revisions**")
    inspector.get_by_label("Description").fill("A tone.")
    inspector.get_by_role("button", name="Save", exact=True).click()
    reading.wait_for(1)
    inspector.locator(".samples > li").nth(1).get_by_label("Used").click()
    library(screen).get_by_role("button", name=re.compile(r"^Bert\b")).click()
    reading.answer(1)
    expect(inspector.get_by_role("heading", name="Bert")).to_be_visible()
    reading.answer(0)
    expect(library(screen).locator("[data-part=said]")).to_contain_text("used again")
    screen.page.unroute_all()
    inspect(screen, "Cleo")


def save_and_type_on(studio: Served, screen: Screen, inspector: Locator) -> None:
    """Save twice, and write in a transcript while the answers arrive."""
    reading = Held(screen.page, "**/v1/voices/*/revisions**")
    for description in ("Once.", "Twice."):  # the second while the first is still being saved
        inspector.get_by_label("Description").fill(description)
        inspector.get_by_role("button", name="Save", exact=True).click()
        reading.wait_for(1)
    reading.answer(0)
    expect(inspector.get_by_label("Description")).to_have_value("Twice.")
    words = inspector.get_by_label("Transcript of the clip")
    words.press_sequentially(" Mine")
    reading.answer(1)
    expect(words).to_be_focused()
    screen.page.keyboard.type(", too.")  # at the same place
    expect(words).to_have_value("My name is bert. Mine, too.")
    words.fill("My name is bert.")
    with studio.client() as client:
        assert client.get("/v1/voices/narrator").json()["description"] == "Twice."


def test_changes_of_others_are_not_overwritten_and_voice_defaults_are_used(studio: Served, open_page: Open) -> None:
    screen = open_page(studio).ready()
    unshown = {"licence": "CC0\nby Bert", "tags": ["warm, deep"], "defaults": {"top_p": 0.86, "seed": 2**60 + 1}}
    with studio.client() as client:
        client.patch("/v1/voices/bert", json=unshown).raise_for_status()
    inspector = inspect(screen, "Bert")
    with studio.client() as client:
        client.patch("/v1/voices/bert", json={"description": "Theirs."}).raise_for_status()
    inspector.get_by_label("Description").fill("Mine.")
    inspector.get_by_role("button", name="Save", exact=True).click()
    expect(inspector).to_contain_text(re.compile("Someone else changed this voice.*Description: “Theirs.”"))
    expect(inspector.get_by_label("Description")).to_have_value("Mine.")
    inspector.get_by_role("button", name="Save", exact=True).click()
    expect(inspector.locator("[data-part=inspector-said]")).to_have_text("Saved “Bert”.")
    with studio.client() as client:
        kept = client.get("/v1/voices/bert").json()
    assert {field: kept[field] for field in unshown} == unshown
    assert kept["description"] == "Mine."

    inspector.get_by_label("API name").fill("narrator")
    inspector.get_by_label("Language").fill("en-GB")
    inspector.get_by_label("Temperature").fill("3")
    inspector.get_by_role("button", name="Save", exact=True).click()
    message = inspector.locator("[data-part=inspector-said]")
    expect(message).to_contain_text("Temperature")
    expect(message).to_be_in_viewport()
    inspector.get_by_label("Temperature").fill("0.4")
    inspector.get_by_label("Seed").fill(str(2**60 + 3))
    inspector.get_by_role("button", name="Save", exact=True).click()
    expect(message).to_have_text("Saved “Bert”.")
    expect(message).to_be_in_viewport()
    save_and_type_on(studio, screen, inspector)
    screen.page.unroute_all()
    inspector.get_by_role("button", name="Use in the Studio: Bert").click()
    expect(picked(screen)).to_have_value("Bert")
    screen.page.wait_for_function("window.studio.fields.values.temperature === 0.4")
    screen.script.fill("Two words")
    with screen.page.expect_request("**/v1/audio/speech") as request:
        screen.speak.click()
    sent = posted(request.value)
    assert (sent["voice"], sent["temperature"], sent["seed"]) == ("narrator", 0.4, 2**60 + 3)
    screen.until_over()
    library(screen).get_by_role("button", name="Use Anna").click()
    screen.page.wait_for_function(
        "window.studio.fields.values.temperature === 0.8 && window.studio.fields.values.seed === null"
    )


def test_voice_facts_are_edited_and_shown_and_names_are_escaped(studio: Served, open_page: Open) -> None:
    attack = "<img src=x onerror=\"document.body.dataset.hacked='yes'\">"
    keep(studio, attack, tags="<b onclick=x>", description=attack)
    keep(studio, "Cleo")
    screen = open_page(studio).ready()
    inspector = inspect(screen, "Cleo")
    inspector.get_by_label("Gender").select_option("Female")
    inspector.get_by_label("Accent").fill("Irish")
    inspector.get_by_label("Description").fill("Low and slow.")
    inspector.get_by_label("Colour").fill("#ffcc00")
    inspector.get_by_role("button", name="Save").click()
    expect(library(screen)).to_contain_text("Saved “Cleo”.")
    initial = inspector.locator(".voice-initial")
    expect(initial).to_have_css("background-color", "rgb(255, 204, 0)")
    expect(initial).to_have_css("color", "rgb(28, 25, 23)")  # a dark letter on a light colour
    assert serious_violations(screen) == []
    inspector.get_by_role("button", name="From the name").click()
    inspector.get_by_role("button", name="Save").click()
    expect(initial).to_have_css("color", "rgb(255, 255, 255)")
    inspector.get_by_role("button", name="Use in the Studio: Cleo").click()
    expect(picked(screen)).to_have_value("Cleo · female · Irish")
    expect(screen.page.locator("#about-voice")).to_have_text("Low and slow.")
    with studio.client() as client:
        voice = client.get("/v1/voices/cleo").json()
    assert (voice["gender"], voice["accent"], voice["colour"]) == ("female", "Irish", "")
    inspector = inspect(screen, attack)
    expect(library(screen)).to_contain_text(attack)
    expect(inspector.get_by_label("Description")).to_have_value(attack)
    assert screen.page.locator("body").get_attribute("data-hacked") is None, "a voice's name is never run"


def test_inspector_fits_a_phone(studio: Served, open_page: Open) -> None:
    screen = open_page(studio, **PHONE).ready()
    inspector = inspect(screen, "Anna")
    box = inspector.bounding_box()
    assert box and box["width"] <= 390 and box["y"] > 60
    inspector.get_by_role("button", name="Hear it speak: Anna").tap()
    expect(inspector.locator("[data-playing]")).to_have_count(1)
    assert screen.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert serious_violations(screen) == []
    inspector.get_by_role("button", name="Close the inspector").tap()
    expect(inspector).to_be_hidden()


def test_unsaved_text_in_the_inspector_stays_until_saved(studio: Served, open_page: Open) -> None:
    screen = open_page(studio).ready()
    inspector = inspect(screen, "Anna")
    message = inspector.locator("[data-part=inspector-said]")
    words = inspector.get_by_label("Transcript of the clip")
    description = inspector.get_by_label("Description")
    words.fill("My name is Anna, yes.")
    description.fill("Warm.")
    with screen.page.expect_response("**/revisions**"):
        inspector.get_by_role("button", name="Save", exact=True).click()
    expect(message).to_have_text("Saved “Anna”.")
    expect(words).to_have_value("My name is Anna, yes.")

    description.fill("Warm and slow.")
    go(screen.page, "Studio")
    with screen.page.expect_response("**/v1/voices?*"):
        library(screen)
    words.press("Escape")
    expect(message).to_contain_text("Not saved yet")
    expect(inspector).to_be_visible()
    expect(words).to_have_value("My name is Anna, yes.")
    expect(description).to_have_value("Warm and slow.")
    screen.page.locator(".card-open").filter(has=screen.page.get_by_text("Bert", exact=True)).click()
    expect(inspector.get_by_role("heading", name="Anna", exact=True)).to_be_visible()
    expect(description).to_have_value("Warm and slow.")
    assert asks_before_leaving(screen.page)
    inspector.get_by_role("button", name="Duplicate Anna").click()
    expect(library(screen)).to_contain_text("Anna copy")
    screen.page.go_back()
    expect(message).to_contain_text("Not saved yet")
    screen.page.evaluate("location.hash = '#voices/bert'")
    expect(screen.page).to_have_url(re.compile("#voices/(?!bert)"))
    expect(description).to_have_value("Warm and slow.")

    inspector.get_by_role("button", name="Save transcript").click()
    expect(message).to_contain_text("Transcript saved.")
    expect(description).to_have_value("Warm and slow.")
    description.fill("Warm.")
    description.press("Escape")
    expect(inspector).to_be_hidden()
    expect(inspect(screen, "Anna").get_by_label("Transcript of the clip")).to_have_value("My name is Anna, yes.")
