"""Text typed into a project is not lost: the page sends it on leaving, and keeps it while the studio is unreachable.

Another tab's text is never overwritten unasked.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Dialog, Locator, Page, Route, expect

from tests.browser.projects.test_arranging import paste_sentences, show
from tests.browser.projects.test_longform import area_of
from tests.browser.screen import Screen
from tests.browser.test_looks import serious_violations
from tests.studio.server import Served

Open = Callable[..., Screen]
CHANGE_PART = """async ({ number, text }) => {
    const [{ id }] = (await (await fetch("/v1/projects?limit=1")).json()).data;
    const part = (await (await fetch(`/v1/projects/${id}/parts`)).json()).data[number];
    const headers = { "Content-Type": "application/json" };
    await fetch(`/v1/projects/${id}/parts/${part.id}`, { method: "PATCH", headers, body: JSON.stringify({ text }) });
}"""
"""As another tab does."""
RENAME = """async (title) => {
    const [{ id }] = (await (await fetch("/v1/projects?limit=1")).json()).data;
    const headers = { "Content-Type": "application/json" };
    await fetch(`/v1/projects/${id}`, { method: "PATCH", headers, body: JSON.stringify({ title }) });
}"""
TITLE = "async () => (await (await fetch('/v1/projects?limit=1')).json()).data[0].title"
VOICE = """async () => {
    const [{ id }] = (await (await fetch("/v1/projects?limit=1")).json()).data;
    return (await (await fetch(`/v1/projects/${id}/parts`)).json()).data[1].voice;
}"""
ARRANGE = """async (verb) => {
    const [{ id }] = (await (await fetch("/v1/projects?limit=1")).json()).data;
    const [first, second] = (await (await fetch(`/v1/projects/${id}/parts`)).json()).data;
    const [path, body] = {
        delete: ["delete", { ids: [first.id] }],
        merge: [`${first.id}/merge`, { following: second?.id }],
        split: [`${first.id}/split`, { text: first.text, at: 4 }],
    }[verb];
    const headers = { "Content-Type": "application/json" };
    await fetch(`/v1/projects/${id}/parts/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    window.studio.longform.back();
}"""
"""Delete the first part, merge it with the next one, or split it, as another tab does; the page looks at once."""

ADD_PARTS = """async (count) => {
    const [{ id }] = (await (await fetch("/v1/projects?limit=1")).json()).data;
    const [{ id: after }] = (await (await fetch(`/v1/projects/${id}/parts`)).json()).data;
    const headers = { "Content-Type": "application/json" };
    for (let n = count; n; n -= 1) {
        const body = JSON.stringify({ text: `Part ${n}.`, after });
        await fetch(`/v1/projects/${id}/parts`, { method: "POST", headers, body });
    }
    window.studio.longform.back();
}"""


def open_project(studio: Served, open_page: Open) -> tuple[Screen, Page, Locator]:
    screen = open_page(studio).ready()
    area = area_of(screen)
    paste_sentences(area, "One. Two.")
    show(area, "One.", "Two.")
    return screen, screen.page, area


def text_of(area: Locator, number: int) -> Locator:
    return area.get_by_label(f"Text of part {number}", exact=True)


def stored_texts(page: Page) -> list[str]:
    """The texts of the parts as stored by the studio."""
    return page.evaluate(
        """async () => {
            const [{ id }] = (await (await fetch("/v1/projects?limit=1")).json()).data;
            return (await (await fetch(`/v1/projects/${id}/parts`)).json()).data.map(({ text }) => text);
        }"""
    )


def until_stored(page: Page, *texts: str) -> None:
    for _ in range(6000):
        if stored_texts(page) == list(texts):
            return
        page.wait_for_timeout(10)
    assert stored_texts(page) == list(texts)


def test_leaving_the_page_asks_and_saves_typed_text(studio: Served, open_page: Open) -> None:
    _, page, area = open_project(studio, open_page)
    text_of(area, 2).press_sequentially(" More.")
    dialogs: list[str] = []

    def leave(dialog: Dialog) -> None:
        dialogs.append(dialog.type)
        dialog.accept()

    page.on("dialog", leave)
    page.reload()
    page.wait_for_selector("body[data-studio=ready]")
    assert dialogs == ["beforeunload"]
    show(area, "One.", "Two. More.")
    until_stored(page, "One.", "Two. More.")
    area.get_by_label("Title of the project").fill("A new title")
    page.reload()
    page.wait_for_selector("body[data-studio=ready]")
    expect(area.get_by_label("Title of the project")).to_have_value("A new title")
    new_part_being_written_is_kept(page, area, dialogs)


def new_part_being_written_is_kept(page: Page, area: Locator, dialogs: list[str]) -> None:
    """Its row leaves the window and comes back, the page is reloaded, and another tab deletes the part above."""
    page.evaluate(ADD_PARTS, 14)
    expect(text_of(area, 14)).to_be_attached()
    area.get_by_role("button", name="Arrange part 1", exact=True).click()
    page.get_by_role("menuitem", name="Insert below").click()
    new = area.get_by_label("Text of a new part after part 1", exact=True)
    expect(new).to_be_focused()
    new.fill("In between.")
    text_of(area, 2).focus()
    page.set_viewport_size({"width": 1280, "height": 300})
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    expect(new).to_have_count(0)
    page.evaluate("scrollTo(0, 0)")
    expect(new).to_have_value("In between.")
    for count, shown in enumerate(("done", "")):  # no part, then all
        area.locator("[data-part=filter]").select_option(shown)
        expect(text_of(area, 3)).to_have_count(count)
        expect(new).to_have_value("In between.")
    dialogs.clear()
    page.evaluate(ARRANGE, "delete")
    gone = area.locator(".long-parts > [data-gone]")
    expect(gone.get_by_label("Text of a new part")).to_have_value("In between.")
    page.reload()
    page.wait_for_selector("body[data-studio=ready]")
    expect(gone.get_by_label("Text of a new part")).to_have_value("In between.")
    assert dialogs == ["beforeunload"]
    area.get_by_role("button", name="Add", exact=True).click()
    expect(new).to_have_count(0)
    assert stored_texts(page)[:3] == ["In between.", "Part 1.", "Part 2."]


def test_hidden_page_saves_automatically_and_typing_continues(studio: Served, open_page: Open) -> None:
    _, page, area = open_project(studio, open_page)
    text = text_of(area, 1)
    text.fill("One and")
    page.evaluate(
        """() => {
            Object.defineProperty(document, "hidden", { value: true, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
            delete document.hidden;
        }"""
    )
    until_stored(page, "One and", "Two.")
    text.press_sequentially(" only.")
    text.blur()
    until_stored(page, "One and only.", "Two.")
    expect(area.get_by_text("Not saved")).to_have_count(0)
    typing_continues_in_a_part_that_another_tab_removes(page, area)


def typing_continues_in_a_part_that_another_tab_removes(page: Page, area: Locator) -> None:
    gone = area.locator(".long-parts > [data-gone]")

    def type_while(verb: str, number: int) -> Locator:
        text = text_of(area, number)
        text.press("End")
        page.keyboard.type(" Then")
        page.evaluate(ARRANGE, verb)
        expect(gone).to_contain_text(f"Part {number} was deleted or merged with another part, by somebody else")
        page.keyboard.type(" more.")
        kept = area.get_by_label(f"Your text of part {number}, which is gone")
        expect(kept).to_be_focused()
        return kept

    expect(type_while("delete", 1)).to_have_value("One and only. Then more.")
    expect(text_of(area, 1)).to_have_value("Two.")
    assert stored_texts(page) == ["Two."]
    gone.get_by_role("button", name="Put the part back with my text").click()
    until_stored(page, "One and only. Then more.", "Two.")
    expect(gone).to_have_count(0)
    expect(text_of(area, 1)).to_be_focused()

    expect(type_while("merge", 2)).to_have_value("Two. Then more.")
    page.evaluate("document.activeElement.blur()")
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    page.wait_for_selector("body[data-studio=ready]")
    expect(area.locator("[data-part=told]")).to_contain_text("Part 2 was deleted or merged elsewhere")
    expect(gone.get_by_role("textbox")).to_have_value("Two. Then more.")
    gone.get_by_role("button", name="Put the part back with my text").click()
    until_stored(page, "One and only. Then more.", "Two. Then more.")
    show(area, "One and only. Then more.", "Two. Then more.")

    type_while("delete", 1)
    gone.get_by_role("button", name="Discard my text").click()
    expect(gone).to_have_count(0)
    expect(area.get_by_role("button", name="Arrange part 1")).to_be_focused()
    until_stored(page, "Two. Then more.")
    text_of(area, 1).press("End")
    page.keyboard.type(" So")
    page.evaluate(ARRANGE, "split")
    show(area, "Two. Then more. So", "Then more.")
    expect(text_of(area, 1)).to_be_focused()
    text_of(area, 1).blur()
    expect(area.locator(".long-parts > li").first).to_contain_text("It is now: Two.")


def test_text_typed_offline_is_marked_kept_and_sent_after_reconnecting(studio: Served, open_page: Open) -> None:
    _, page, area = open_project(studio, open_page)

    def lose(route: Route) -> None:
        route.abort() if route.request.method == "PATCH" else route.continue_()

    page.route("**/v1/projects/**", lose)
    row = area.locator(".long-parts > li").first
    text_of(area, 1).fill("Nine.")
    text_of(area, 1).blur()
    expect(row.locator(".long-word")).to_have_text("Not saved")
    expect(row).to_contain_text("sent as soon as it answers again")
    area.get_by_role("button", name="All projects").click()
    expect(area.get_by_label("Choose a document")).to_be_visible()
    page.go_back()
    show(area, "Nine.", "Two.")
    expect(row).to_contain_text("sent as soon as it answers again")
    assert stored_texts(page) == ["One.", "Two."]
    page.unroute_all()
    until_stored(page, "Nine.", "Two.")
    expect(row.locator(".long-word")).to_have_text("Not spoken")
    expect(row).not_to_contain_text("sent as soon")

    def lose_answer(route: Route) -> None:
        if route.request.method == "PATCH":
            route.fetch()
        lose(route)

    page.route("**/v1/projects/**", lose_answer)
    text_of(area, 1).fill("Ten.")
    text_of(area, 1).blur()
    expect(row).to_contain_text("sent as soon as it answers again")
    until_stored(page, "Ten.", "Two.")
    page.route("**/v1/projects/**", lose)
    text_of(area, 1).fill("Ten more.")  # not over somebody else's "Ten."
    text_of(area, 1).blur()
    page.unroute_all(behavior="wait")
    until_stored(page, "Ten more.", "Two.")
    expect(row).not_to_contain_text("Not saved")


def test_project_shows_the_offline_message_only_until_the_studio_answers(studio: Served, open_page: Open) -> None:
    _, page, area = open_project(studio, open_page)
    page.route("**/v1/projects/proj_*", lambda route: route.abort())
    expect(area.locator("[data-part=told]")).to_have_text("The studio is not responding.")
    page.unroute_all()
    expect(area.locator("[data-part=told]")).to_have_text("")
    page.route("**/v1/audio/voices", lambda route: route.abort(), times=2)  # the rest of the studio answers
    page.reload()
    expect(area.get_by_role("textbox", name="Title of the project")).to_be_visible()


@pytest.mark.parametrize("is_mine", [True, False])
def test_tab_that_saves_later_chooses_between_both_texts(studio: Served, open_page: Open, is_mine: bool) -> None:
    screen, page, area = open_project(studio, open_page)
    text_of(area, 2).fill("Mine.")
    page.evaluate(CHANGE_PART, {"number": 1, "text": "Theirs."})
    text_of(area, 2).blur()
    row = area.locator(".long-parts > li").nth(1)
    expect(row).to_contain_text("another tab, has changed this text in the meantime. It is now: Theirs.")
    expect(text_of(area, 2)).to_have_value("Mine.")
    assert stored_texts(page) == ["One.", "Theirs."]
    assert serious_violations(screen) == []
    row.get_by_label("Voice of part 2").select_option("bert")
    row.get_by_role("button", name="Arrange part 2").click()
    page.get_by_role("menuitem", name="Delete").click()
    area.get_by_role("button", name="Undo").click()
    expect(text_of(area, 2)).to_have_value("Mine.")
    expect(row).to_contain_text("It is now: Theirs.")
    row.get_by_role("button", name="Save my text" if is_mine else "Use the other text").click()
    chosen = "Mine." if is_mine else "Theirs."
    show(area, "One.", chosen)
    until_stored(page, "One.", chosen)
    expect(row.locator(".long-word")).to_have_text("Not spoken")
    assert page.evaluate(VOICE) == "bert"  # it waited for the choice
    expect(row.get_by_role("button", name="Save my text")).to_be_hidden()
    expect(text_of(area, 2)).to_be_focused()
    title, note = area.get_by_label("Title of the project"), area.locator(".long-head + .long-unsaved")
    title.fill("Mine.")
    page.evaluate(RENAME, "Theirs.")
    title.blur()
    expect(area.locator("[data-part=told]")).to_contain_text('changed title meanwhile: it is now "Theirs."')
    expect(note).to_contain_text("It is now: Theirs.")
    expect(title).to_have_value("Mine.")
    title.press("End")
    page.keyboard.type("..")  # it is asked again
    with page.expect_response(lambda answer: answer.status == 412):
        title.blur()
    expect(note).to_contain_text("It is now: Theirs.")
    assert page.evaluate(TITLE) == "Theirs."
    assert serious_violations(screen) == []
    note.get_by_role("button", name="Save my text" if is_mine else "Use the other text").click()
    expect(note).to_be_hidden()
    chosen = "Mine..." if is_mine else "Theirs."
    expect(title).to_have_value(chosen)
    assert page.evaluate(TITLE) == chosen
    if is_mine:
        undo_past_a_change_of_another_tab(page, area)
    assert serious_violations(screen) == []


def undo_past_a_change_of_another_tab(page: Page, area: Locator) -> None:
    """A step that another tab has overwritten is named and dropped, and the one before it is undone next."""
    text_of(area, 1).fill("Once.")
    text_of(area, 1).blur()
    until_stored(page, "Once.", "Mine.")
    text_of(area, 2).fill("Mine again.")
    text_of(area, 2).blur()
    until_stored(page, "Once.", "Mine again.")
    page.evaluate(CHANGE_PART, {"number": 1, "text": "Theirs again."})
    toast = page.locator("#undo-toast")
    area.get_by_role("button", name="Play all").or_(area.get_by_label("Select part 1")).first.focus()
    page.keyboard.press("Control+z")
    expect(toast).to_contain_text("Part 2 changed. This can no longer be undone")
    expect(toast.get_by_role("button", name="Undo")).to_be_hidden()
    page.keyboard.press("Control+z")
    until_stored(page, "One.", "Theirs again.")
    page.keyboard.press("Escape")
    expect(toast).to_be_hidden()
    area.locator("[data-part=inspect]").click()
    pause = area.get_by_label("Pause after parts")
    pause.fill("")
    pause.press("Tab")
    expect(area.locator("[data-part=told]")).to_contain_text("pause: ")
    expect(pause).to_have_value("0.5")  # a blank one is not none
    spoken = area.locator("[data-part=normalize]")
    spoken.focus()
    for chosen in ("true", "false"):  # the list keeps the focus, and shows what was undone
        spoken.select_option(chosen)
        expect(toast.get_by_role("status")).to_have_text("The project's settings were changed.")
        page.keyboard.press("Control+z")
        expect(toast.get_by_role("status")).to_have_text("Undone: The project's settings were changed.")
        expect(spoken).to_have_value("null")
