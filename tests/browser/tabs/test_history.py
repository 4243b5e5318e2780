"""The history: takes are listed after a reload, filtered, played, reused, verified, saved, deleted and restored."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import av
import httpx
import pytest
from playwright.sync_api import Locator, expect

from tests.browser.screen import Held, Screen, go, press_while_heard
from tests.browser.test_looks import PHONE, serious_violations
from tests.studio.server import Served

Open = Callable[..., Screen]
FRAME = 2048
FRAMES = 20
LARGE = 2**60 + 1
"""A seed that JavaScript would round."""


def speak(served: Served, text: str, **fields: object) -> str:
    """Speak through the API and return the take's id."""
    body = {"input": text, "max_new_tokens": FRAMES, "response_format": "wav"} | fields
    with served.client() as client:
        return client.post("/v1/audio/speech", json=body).raise_for_status().headers["x-request-id"]


def get_take(served: Served, take_id: str) -> httpx.Response:
    with served.client() as client:
        return client.get(f"/v1/takes/{take_id}")


def history(screen: Screen, words: str) -> Locator:
    """The rows of the takes with these words."""
    go(screen.page, "History")
    with screen.page.expect_response(lambda answer: "/v1/takes?q=" in answer.url):
        screen.page.get_by_label("Find words").fill(words)
    rows = screen.page.locator("#area-history li")
    expect(rows.filter(has_not_text=words)).to_have_count(0)
    expect(rows.filter(has_text=words).first).to_be_visible()
    return rows


def test_takes_stars_and_deletions_survive_a_reload(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    screen.cut_after(2)
    for number in (1, 2, 3):
        screen.script.fill(f"Take number {number}.")
        screen.speak.click()
        expect(screen.takes).to_have_count(number)
        screen.until_over()
    ids = [
        screen.page.evaluate(f"window.studio.list && JSON.parse(sessionStorage['voice-studio-/:takes-1'])[{n}].id")
        for n in range(3)
    ]
    with screen.page.expect_response(f"**/v1/takes/{ids[0]}"):
        screen.page.get_by_role("button", name="Star take 1").click()
    with screen.page.expect_response(f"**/v1/takes/{ids[1]}"):
        screen.page.get_by_role("button", name="Delete take 2").click()
    assert get_take(served, ids[0]).json()["starred"] is True and get_take(served, ids[1]).status_code == 404
    with screen.page.expect_response("**/v1/trash/restore"):
        screen.page.get_by_role("button", name="Undo").click()
    assert get_take(served, ids[1]).status_code == 200
    screen.page.route(
        f"**/v1/takes/{ids[2]}", lambda route: route.fulfill(json={"undo_seconds": 0})
    )  # it was not stored
    screen.page.get_by_role("button", name="Delete take 3").click()
    expect(screen.page.locator("#undo-toast").get_by_role("button", name="Undo")).to_be_hidden()
    expect(screen.page.locator("#undo-toast")).to_contain_text("Take 3 deleted.")
    busy = {"error": {"message": "the library is busy"}}
    screen.page.route("**/v1/takes?ids=*", lambda route: route.fulfill(status=503, json=busy), times=1)
    screen.page.reload()
    screen.page.wait_for_selector("body[data-studio=ready]")
    expect(screen.card).to_contain_text("The library is busy")
    screen.card.get_by_role("button", name="Close").click()
    expect(screen.takes).to_have_count(2)
    expect(screen.page.get_by_role("button", name="Star take 1")).to_have_attribute("aria-pressed", "true")
    screen.page.get_by_role("button", name="Play take 1").click()
    screen.until_over()
    assert screen.heard()["rendered"] == 43 * FRAME
    screen.takes.nth(1).get_by_role("button", name="Reuse").click()
    expect(screen.script).to_have_value("Take number 1.")
    screen.speak.click()
    expect(screen.takes).to_have_count(3)
    expect(screen.takes.first).to_have_attribute("data-take", "3")


def test_new_browser_starts_with_an_empty_list_and_finds_takes_in_the_history(served: Served, open_page: Open) -> None:
    take_id = speak(served, "Heard from elsewhere.", voice="bert", seed=LARGE, temperature=0.5)
    screen = open_page(served).ready()
    expect(screen.takes).to_have_count(0)
    row = history(screen, "from elsewhere")
    for fact in ("Bert", f"seed {LARGE}", "0:00.9", "Cut off before the end", "RTF", "first audio"):
        expect(row).to_contain_text(fact)
    row.get_by_role("button", name="Play").click()
    screen.until_over()
    assert screen.heard()["rendered"] == FRAMES * FRAME
    expect(row).to_have_attribute("aria-current", "")
    row.get_by_role("button", name="Verify").click()
    expect(screen.page.locator("#area-history")).to_contain_text("Verified: identical")
    row.get_by_role("button", name="Star").click()
    expect(row.get_by_role("button", name="Star")).to_have_attribute("aria-pressed", "true")
    assert get_take(served, take_id).json()["starred"] is True
    row.get_by_role("button", name="Code").click()
    expect(screen.page.get_by_role("dialog")).to_contain_text(f'"seed": {LARGE}')
    screen.page.keyboard.press("Escape")
    row.get_by_role("button", name="Reuse").click()
    expect(screen.script).to_have_value("Heard from elsewhere.")
    expect(screen.page.get_by_label("Choose a voice")).to_have_value("Bert")
    screen.page.wait_for_function("window.studio.fields.values.temperature === 0.5")


def test_takes_are_filtered_selected_zipped_deleted_and_restored(
    served: Served, open_page: Open, tmp_path: Path
) -> None:
    for number in range(27):
        speak(served, f"Filtered {number}.", voice="bert" if number == 3 else "anna", max_new_tokens=2)
    screen = open_page(served).ready()
    screen.page.route("**/v1/takes?*", lambda route: route.abort(), times=1)  # the rest of the studio answers
    go(screen.page, "History")
    expect(screen.page.locator("#area-history [data-part=said]")).to_have_text("The studio is not responding.")
    expect(screen.page.locator("#area-history li")).to_have_count(25)
    expect(screen.page.locator("#area-history [data-part=said]")).to_have_text("")
    rows = history(screen, "filtered")
    expect(rows).to_have_count(25)
    screen.page.get_by_role("button", name="Show more").click()
    expect(rows).to_have_count(27)
    screen.page.locator("#area-history").get_by_label("Voice", exact=True).select_option("bert")
    expect(rows).to_have_count(1)
    screen.page.locator("#area-history").get_by_label("Voice", exact=True).select_option("")
    screen.page.locator("#area-history").get_by_label("From").fill("2999-01-01")
    expect(rows).to_have_count(0)
    expect(screen.page.locator("#area-history")).to_contain_text("No takes match. Clear the filters.")
    screen.page.locator("#area-history").get_by_label("From").fill("")

    ids = [speak(served, f"Chosen {number}.", max_new_tokens=4) for number in range(3)]
    rows = history(screen, "chosen")
    requests = Held(screen.page, "**/v1/takes/*/audio?*")
    rows.nth(0).get_by_role("button", name="Play").click()
    requests.wait_for(1)
    rows.nth(1).get_by_role("button", name="Play").click()
    requests.answer(1)
    expect(rows.nth(1)).to_have_attribute("aria-current", "")
    requests.answer(0)  # for the take requested earlier
    screen.until_over()
    expect(rows.nth(1)).to_have_attribute("aria-current", "")
    screen.page.unroute_all()
    rows.nth(0).get_by_role("checkbox").check()
    lose_a_request(screen, rows.nth(0))
    screen.page.get_by_role("button", name="Select all shown").click()
    rows.nth(1).get_by_role("checkbox").uncheck()
    back = "studio.health.dispatchEvent(new Event('back')), fetch('v1/takes').then((answer) => answer.text())"
    screen.page.evaluate(back)  # the connection was lost for a moment
    with screen.page.expect_download() as saving:
        screen.page.get_by_role("button", name="Download as zip").click()
        screen.page.get_by_role("menuitem", name="FLAC").click()
    saving.value.save_as(tmp_path / "takes.zip")
    with zipfile.ZipFile(tmp_path / "takes.zip") as archive:
        files = [name for name in archive.namelist() if name.endswith(".flac")]
        assert len(files) == 2
        with av.open(io.BytesIO(archive.read(files[0])), "r") as file:
            assert sum(frame.samples for frame in file.decode(audio=0)) == 4 * FRAME
    screen.page.locator("#area-history").get_by_role("button", name="Delete", exact=True).click()
    expect(rows).to_have_count(1)
    assert [get_take(served, take_id).status_code for take_id in ids] == [404, 200, 404]
    screen.page.locator("#area-history").get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(3)
    with screen.page.expect_download() as saving:
        rows.nth(0).get_by_role("button", name="Download").click()
        screen.page.get_by_role("menuitem", name="FLAC").click()
    assert saving.value.suggested_filename.endswith(".flac")


def lose_a_request(screen: Screen, row: Locator) -> None:
    """While takes are ticked, the list is not read again, so the lost request stays told."""
    said = screen.page.locator("#area-history [data-part=said]")
    screen.page.clock.install()
    screen.page.route("**/v1/takes/*", lambda route: route.abort(), times=1)
    row.get_by_role("button", name="Star").click()
    expect(said).to_have_text("The studio is not responding.")
    screen.page.clock.run_for(3000)
    expect(said).to_have_text("The studio is not responding.")
    screen.page.clock.resume()


def test_take_without_audio_is_regenerated_and_stored_takes_compared_at_one_position(
    served: Served, open_page: Open
) -> None:
    take_id = speak(served, "My sound is gone.", seed=5)
    sound = get_take(served, take_id).json()["audio"]["sha256"]
    served.app.state.studio.speech.voices.library.files.remove(sound)
    screen = open_page(served).ready()
    row = history(screen, "sound is gone")
    expect(row.get_by_role("button", name="Play")).to_be_disabled()
    row.get_by_role("button", name="Speak again").click()
    expect(screen.takes).to_have_count(1)
    screen.until_over()
    take = get_take(served, screen.page.evaluate("window.studio.current.id")).json()
    assert take["audio"]["sha256"] == sound

    for seed in (1, 2):
        speak(served, "Compared in the history.", seed=seed, max_new_tokens=120)
    rows = history(screen, "compared in")
    for row in rows.all():
        row.get_by_role("button", name="Compare", exact=True).click()
    first = screen.page.locator("#area-history .pair").get_by_role("button", name="seed 1")
    place = press_while_heard(first, "x", 1)
    screen.page.wait_for_function("window.studio.current.seed === '2' && window.studio.heard.rendered > 0")
    assert screen.page.evaluate("window.studio.position") >= place


def test_history_fits_a_phone_and_is_accessible(served: Served, open_page: Open) -> None:
    speak(served, "Seen on a phone.")
    screen = open_page(served, **PHONE, color_scheme="dark").ready()
    row = history(screen, "on a phone")
    row.get_by_role("checkbox").check()
    assert screen.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert serious_violations(screen) == []


def test_takes_that_could_not_be_saved_are_reported(
    served: Served, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = served.app.state.studio.speech.register.outcomes
    monkeypatch.setitem(outcomes, "lost", 2)
    monkeypatch.setitem(outcomes, "soundless", 1)
    screen = open_page(served).ready()
    go(screen.page, "History")
    line = screen.page.get_by_text("3 takes or their audio could not be saved: the disk was full or too slow.")
    expect(line).to_be_visible()


def test_take_that_the_retention_removes_next_is_shown(open_page: Open, steered: Callable[..., Served]) -> None:
    served = steered(keep_takes=1)
    speak(served, "The next one removes me.")
    screen = open_page(served).ready()
    go(screen.page, "History")
    line = screen.page.get_by_text("Removed next: “The next one removes me.”")
    expect(line).to_contain_text("Star a take to keep it.")


def test_state_of_a_take_is_updated_in_the_studios_list(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    screen.cut_after(2)
    screen.script.fill("On both lists.")
    screen.speak.click()
    expect(screen.takes).to_have_count(1)
    star = screen.page.get_by_role("button", name="Star take 1")
    row = history(screen, "on both lists")
    row.get_by_role("button", name="Star").click()
    expect(row.get_by_role("button", name="Star")).to_have_attribute("aria-pressed", "true")
    row.get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    expect(screen.takes).to_have_count(0)
    screen.page.locator("#area-history").get_by_role("button", name="Undo").click()
    expect(row).to_have_count(1)
    take_id = screen.page.evaluate("window.studio.list && JSON.parse(sessionStorage['voice-studio-/:takes-1'])[0].id")
    with served.client() as client:
        client.delete(f"/v1/takes/{take_id}").raise_for_status()
    message = screen.page.locator("#area-history #undo-toast")
    for name in ("Reuse", "Code"):
        row.get_by_role("button", name=name).click()
        expect(message).to_contain_text("Not found.")
        message.get_by_role("button", name="Close").click()
    row.get_by_role("button", name="Download").click()
    screen.page.get_by_role("menuitem", name="MP3").click()
    expect(message).to_contain_text("Not found.")
    go(screen.page, "Studio")
    expect(star).to_have_attribute("aria-pressed", "true")
