"""The page with several keys: shared and visible items, and Speak while the caller's places are taken."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from studio.settings import Settings, read_keys
from tests.browser.screen import Screen, go, sign_in
from tests.browser.test_looks import in_both_schemes, serious_violations
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, serve

NewPage = Callable[[], Page]
KEYS = read_keys("ann=first-key-of-all,bob=second-key-of-all")


@pytest.fixture
def engine() -> list[FakeEngine]:
    """Receives the studio's engine once it is served."""
    return []


@pytest.fixture
def served(voices_folder: Path, tmp_path: Path, engine: list[FakeEngine]) -> Iterator[Served]:
    def start(*values: object) -> FakeEngine:
        engine.append(FakeEngine.start(*values))  # type: ignore[arg-type]
        return engine[0]

    settings = Settings(
        model="test/model", voices=str(voices_folder), home=str(tmp_path), api_keys=KEYS, max_per_caller=1, max_rows=4
    )
    with serve(settings, start, page=True) as studio:
        yield studio


def signed_in(served: Served, page: Page, key: str) -> Screen:
    sign_in(page, served, f"{key}-key-of-all")
    return Screen(page, served).ready()


def client_of(served: Served, key: str) -> httpx.Client:
    return served.client(headers={"Authorization": f"Bearer {key}-key-of-all"})


def test_shared_voice_and_project_show_their_owner_to_the_other_key(served: Served, new_page: NewPage) -> None:
    with client_of(served, "first") as client:
        client.post("/v1/voices/anna/duplicate", json={"name": "Mine"}).raise_for_status()
        project = client.post("/v1/projects", json={"input": "Two words.", "title": "A book", "start": True}).json()[
            "id"
        ]
    ann, bob = signed_in(served, new_page(), "first"), signed_in(served, new_page(), "second")
    page = ann.page
    go(page, "Voices").get_by_role("button", name=re.compile(r"^Mine\b")).click()
    page.get_by_role("button", name="Share Mine").click()
    expect(page.get_by_role("menuitemradio", name="Only for me")).to_be_checked()
    page.get_by_role("menuitemradio", name="others may use it").click()
    expect(page.locator("#inspector")).to_contain_text("Everyone with a key may use Mine now.")
    go(page, "Projects").get_by_role("button", name="A book").click()
    page.get_by_role("button", name="More actions").click()
    assert serious_violations(ann) == []
    page.get_by_role("menuitemradio", name="others may use it").click()
    expect(page.locator("[data-part=shared]")).to_have_text("Shared")

    page = bob.page
    voices = go(page, "Voices")
    expect(voices.locator(".card", has_text="Mine")).to_contain_text("Shared by ann")
    voices.get_by_role("button", name=re.compile(r"^Mine\b")).click()
    inspector = page.locator("#inspector")
    expect(inspector.get_by_label("Description")).to_be_disabled()
    expect(inspector.get_by_role("button", name="Delete")).to_be_hidden()
    expect(inspector.get_by_role("link", name="Export")).to_be_visible()
    assert serious_violations(bob) == []
    projects = go(page, "Projects")
    row = projects.get_by_role("button", name="A book")
    expect(row).to_contain_text("Shared by ann")
    row.click()
    expect(projects).to_contain_text("Shared by ann. You may listen and export.")
    projects.get_by_role("button", name="Play part 1").click()
    bob.until_over()
    expect(page.locator("#dock .read-along-text")).to_contain_text("Two words.")
    text = projects.get_by_label("Text of part 1")
    text.focus()
    expect(text).not_to_be_editable()
    expect(projects.locator("[data-part=speak]")).to_be_hidden()
    assert serious_violations(bob) == []
    expect(page.locator("#dock").get_by_role("button", name="Speak sentence again")).to_be_hidden()
    text.blur()
    page.keyboard.press("m")
    expect(page.locator("#undo-toast")).to_contain_text("so you cannot mark this spot")
    expect(page.get_by_role("textbox", name="Note for part 1")).to_be_hidden()
    typed_text_outlives_the_right_to_edit(served, page, project)


def typed_text_outlives_the_right_to_edit(served: Served, page: Page, project: str) -> None:
    projects = page.locator("#area-longform")
    text, row = projects.get_by_label("Text of part 1"), projects.locator(".long-parts > li").first
    with client_of(served, "first") as client:

        def share(sharing: str) -> None:
            client.patch(f"/v1/projects/{project}", json={"sharing": sharing}).raise_for_status()
            page.evaluate("() => window.studio.longform.back()")

        def stored() -> str:
            return client.get(f"/v1/projects/{project}/parts").json()["data"][0]["text"]

        share("edit")
        expect(projects.locator("[data-part=speak]")).to_be_hidden()
        expect(text).to_be_editable()
        text.press("End")
        page.keyboard.type(" Three.")
        share("private")
        expect(projects).to_contain_text("This project is no longer shared with you, or was deleted. What you typed")
        share("edit")
        projects.get_by_role("button", name="A book").click()
        expect(text).to_have_value("Two words. Three.")
        expect(projects).not_to_contain_text("no longer shared")
        expect(row.locator(".long-word")).not_to_have_text("Not saved")
        assert stored() == "Two words. Three."
        text.press("End")
        page.keyboard.type(" Four.")
        share("read")
        text.blur()
        expect(row).to_contain_text("Not saved: ")
        share("edit")
        expect(row).not_to_contain_text("Not saved")
        assert stored() == "Two words. Three. Four."


def test_revoked_key_is_requested_again_and_refused_actions_are_repeated(served: Served, new_page: NewPage) -> None:
    with client_of(served, "first") as client:
        project = client.post("/v1/projects", json={"input": "Two words.", "title": "A book"}).json()["id"]
        client.post("/v1/voices/anna/duplicate", json={"name": "Mine"}).raise_for_status()
    ann = signed_in(served, new_page(), "first")
    page = ann.page
    dialog = page.get_by_role("dialog", name="Sign in again")
    key = dialog.get_by_label("Key")

    projects = go(page, "Projects")
    projects.get_by_role("button", name="A book").click()
    text = projects.get_by_label("Text of part 1")
    text.fill("Three")
    page.context.clear_cookies()
    with page.expect_response(lambda answer: answer.status == 401):
        page.evaluate("() => void window.studio.longform.back()")
    page.keyboard.type(" new words.")  # not into the key's field
    expect(text).to_have_value("Three new words.")
    expect(key).to_be_hidden()
    page.keyboard.press("Control+Shift")
    expect(key).to_be_focused()  # the project is polled; leaving the field has sent its text
    key.fill("first-key")
    key.press("Enter")
    expect(dialog.get_by_role("alert")).to_have_text("This studio does not know that key.")
    assert in_both_schemes(ann) == []
    expect(projects.locator("[data-part=told]")).to_have_text("")
    with page.expect_response(lambda answer: answer.request.method == "PATCH" and answer.ok):
        key.fill("first-key-of-all")
        key.press("Enter")
    expect(dialog).to_be_hidden()
    expect(text).to_have_value("Three new words.")
    with client_of(served, "first") as client:
        assert client.get(f"/v1/projects/{project}/parts").json()["data"][0]["text"] == "Three new words."

    voices = go(page, "Voices")
    voices.get_by_role("button", name=re.compile(r"^Mine\b")).click()
    page.locator("#inspector").get_by_label("Description").fill("Not saved yet")
    page.context.clear_cookies()
    save = page.get_by_role("button", name="Save", exact=True)
    save.click()
    dialog.get_by_role("button", name="Close").click()
    expect(page.locator("#inspector")).to_contain_text("You are not signed in, so this was not done.")
    save.click()
    key.fill("first-key-of-all")
    key.press("Enter")
    expect(page.locator("#inspector")).to_contain_text("Saved “Mine”.")

    go(page, "Settings")
    page.locator("#area-settings [data-dictionary] > summary").click()
    page.get_by_label("Word or phrase").last.fill("Ann's word")
    page.get_by_label("Pronounced as").last.fill("as she says it")
    page.context.clear_cookies()
    page.get_by_role("button", name="Add", exact=True).last.click()
    expect(key).to_be_focused()
    page.on("dialog", lambda leaving: leaving.accept())
    key.fill("second-key-of-all")
    with page.expect_event("framenavigated"):
        key.press("Enter")
    page.wait_for_selector("body[data-studio=ready]")
    with client_of(served, "second") as client:
        assert client.get("/v1/pronunciations").json()["data"] == []  # the word was not sent again with another's key


def test_revoked_key_is_requested_on_an_idle_page(served: Served, new_page: NewPage) -> None:
    page = new_page()
    page.clock.install()
    signed_in(served, page, "second")
    page.context.clear_cookies()
    page.clock.run_for(20_000)
    expect(page.get_by_role("dialog", name="Sign in again").get_by_label("Key")).to_be_focused()


def test_speak_waits_for_a_slot_used_by_another_program_with_the_same_key(
    served: Served, new_page: NewPage, engine: list[FakeEngine]
) -> None:
    bob = signed_in(served, new_page(), "second")
    with client_of(served, "second") as client:
        client.post("/v1/projects", json={"input": "A whole book.", "start": True}).raise_for_status()
        engine[0].later_frames_gate.clear()
        with client.stream(
            "POST", "/v1/audio/speech", json={"input": "Hello there.", "response_format": "pcm"}
        ) as held:
            with bob.page.expect_response(lambda answer: answer.status == 429):
                bob.page.get_by_role("button", name="4 takes").click()
            expect(bob.card).to_be_hidden()
            engine[0].later_frames_gate.set()
            held.read()
    expect(bob.takes).to_have_count(4)
    bob.until_over()
    expect(bob.card).to_be_hidden()
