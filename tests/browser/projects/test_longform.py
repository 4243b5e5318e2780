"""Projects on the page: a document is imported, spoken, corrected and played, and restored after a reload."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Dialog, FilePayload, Locator, expect

from engine import EngineConfig, ModelCard
from tests.browser.screen import Held, Screen, choose, go
from tests.browser.test_looks import serious_violations
from tests.studio.documents import epub, page
from tests.studio.fake_engine import FakeEngine, with_card
from tests.studio.server import Served
from tests.waiting import wait_until_true

Open = Callable[..., Screen]
Steer = Callable[..., Served]


def area_of(screen: Screen) -> Locator:
    return go(screen.page, "Projects")


def import_file(area: Locator, file: FilePayload) -> None:
    """Choose a document, and import it as proposed."""
    area.get_by_label("Choose a document").set_input_files(file)
    import_it(area)


def import_it(area: Locator) -> None:
    area.get_by_role("button", name="Import", exact=True).click()
    expect(area.get_by_label("Title of the project")).to_be_visible()


def downloaded(screen: Screen, area: Locator, name: str) -> str:
    """The file name of a download from the menu of an open project."""
    area.get_by_role("button", name="Download", exact=True).click()
    with screen.page.expect_download() as download:
        screen.page.get_by_role("menuitem", name=re.compile(rf"^{re.escape(name)}( about|$)")).click()
    return download.value.suggested_filename


def table(text: str) -> FilePayload:
    return {"name": "My table.csv", "mimeType": "text/csv", "buffer": text.encode()}


def test_project_appears_once_loaded_is_created_once_and_the_last_opened_one_stays(
    studio: Served, open_page: Open
) -> None:
    screen = open_page(studio).ready()
    area, page = area_of(screen), screen.page
    requests = Held(page, "**/v1/projects/*/parts?*")
    area.get_by_label("Choose a document").set_input_files(table("text,voice\nOne.,anna\n"))
    area.get_by_role("button", name="Import", exact=True).click()
    requests.wait_for(1)
    expect(area.get_by_role("button", name="Speak")).to_have_count(0)
    requests.answer(0)
    area.get_by_role("button", name="Speak all parts").wait_for()
    page.unroute_all()
    area.get_by_role("button", name="All projects").click()
    expect(area.get_by_label("Choose a document")).to_be_visible()

    area.get_by_text("Or paste a text").click()
    for text in ("The first.", "The second."):
        area.get_by_label("Text of the project").fill(text)
        area.get_by_role("button", name="Create a project").dblclick()
        area.get_by_role("button", name="Import", exact=True).dblclick()
        expect(area.get_by_role("textbox", name="Title")).to_have_value(text)
        area.get_by_role("button", name="All projects").click()
    first, second = (area.get_by_role("button", name=name) for name in ("The first.", "The second."))
    expect(first).to_have_count(1)
    expect(second).to_have_count(1)

    address = re.compile(r"/v1/projects\?limit=")
    page.route(address, lambda route: route.continue_(url=route.request.url.replace("limit=100", "limit=2")))
    oldest = area.get_by_role("button", name="My table")
    expect(oldest).to_have_count(0)  # on the next page
    area.get_by_role("button", name="Show more").click()
    expect(oldest).to_be_visible()
    expect(area.get_by_role("button", name="Show more")).to_be_hidden()
    page.unroute(address)
    requests = Held(page, "**/v1/audio/voices")
    first.click()
    requests.wait_for(1)
    second.click()
    requests.answer(1)
    expect(area.get_by_role("textbox", name="Title")).to_have_value("The second.")
    requests.answer(0)
    spoken: list[str] = []
    page.on("request", lambda request: spoken.append(request.url) if request.url.endswith("/speak") else None)
    area.get_by_role("button", name="Speak all parts").click()
    expect(area.locator("[data-part=state]")).to_contain_text("1 of 1 part spoken")
    assert len(spoken) == 1  # the other project does not react
    expect(area.get_by_role("textbox", name="Title")).to_have_value("The second.")
    each_tab_comes_back_to_its_project(screen, area)


def each_tab_comes_back_to_its_project(screen: Screen, area: Locator) -> None:
    """Another tab opens another project meanwhile; the list is not shown first."""
    page, studio = screen.page, screen.studio
    other = page.context.new_page()
    other.goto(f"{studio.url}/#projects")
    expect(other.get_by_role("textbox", name="Title")).to_have_value("The second.")
    go(other, "Projects")  # to the list
    other.get_by_role("button", name="The first.").click()
    expect(other.get_by_role("textbox", name="Title")).to_have_value("The first.")
    other.close()
    go(page, "Voices")
    go(page, "Projects")
    expect(area.get_by_role("textbox", name="Title")).to_have_value("The second.")  # this tab's
    page.unroute_all()
    requests = Held(page, "**/v1/projects/*/parts?*")
    page.reload()
    requests.wait_for(1)
    expect(area.get_by_label("Choose a document")).to_be_hidden()  # it would disappear again
    requests.answer_all()
    expect(area.get_by_role("textbox", name="Title")).to_have_value("The second.")


def test_document_is_spoken_corrected_and_played(studio: Served, open_page: Open) -> None:
    screen = open_page(studio).ready()
    area = area_of(screen)
    second = "Two, so long that a busy machine also pauses within it."
    import_file(area, table(f'text,voice\nOne.,anna\n"{second}",nobody\nThree.,bert\n'))
    rows = area.locator(".long-parts > li")
    expect(rows).to_have_count(3)
    expect(area.get_by_label("Title of the project")).to_have_value("My table")
    expect(rows.nth(0)).to_contain_text("Not spoken")
    area.get_by_role("button", name="Speak all parts").click()
    expect(rows.nth(1)).to_contain_text("there is no voice 'nobody'")
    expect(rows.nth(0)).to_contain_text("Done")
    expect(area.locator("[data-part=state]")).to_contain_text("2 of 3 parts spoken")
    expect(area.locator("[data-part=state]")).to_contain_text("1 failed")
    rows.nth(1).get_by_label("Voice of part 2").select_option("bert")
    expect(rows.nth(1)).to_contain_text("Not spoken")
    rows.nth(0).get_by_label("Text of part 1").fill("Another one.")
    rows.nth(0).get_by_label("Text of part 1").blur()
    expect(rows.nth(0)).to_contain_text("Changed")
    area.get_by_role("button", name="Speak the remaining 2").click()
    expect(area.locator("[data-part=state]")).to_contain_text("3 of 3 parts spoken")
    expect(area.get_by_role("button", name=re.compile("remaining"))).to_be_hidden()
    rows.nth(2).get_by_role("button", name="Speak part 3 again").click()
    takes = rows.nth(2).get_by_label("Take of part 3")
    expect(takes.locator("option")).to_have_count(2)
    takes.select_option(index=1)
    is_chosen = """async () => {
        const { data: [project] } = await (await fetch("/v1/projects")).json();
        const { data } = await (await fetch(`/v1/projects/${project.id}/parts`)).json();
        return data[2].chosen === data[2].takes[1].id;
    }"""
    wait_until_true(lambda: screen.page.evaluate(is_chosen))
    screen.page.evaluate(
        """window.marked = []; window.studio.nowPlaying.addEventListener("show", () =>
        marked.push(document.querySelector("#area-longform li[aria-current] textarea")?.value))"""
    )
    area.get_by_role("button", name="Play all").click()
    expect(screen.status).to_have_text("My table, part 3 of 3")  # all in order, to the end
    assert screen.page.evaluate("marked") == ["Another one.", second, "Three."]
    expect(screen.page.get_by_role("button", name="Next part")).to_be_disabled()
    rows.nth(1).get_by_role("button", name="Play part 2").click()
    expect(screen.status).to_have_text("My table, part 2 of 3")  # and stops there
    screen.page.get_by_role("button", name="Previous part").click()
    expect(screen.status).to_have_text("My table, part 1 of 3")
    expect(screen.page.locator("#dock .read-along-text")).to_have_text("Another one.")
    screen.page.wait_for_function(
        "() => window.studio.heard.rendered === Math.round(window.studio.current.seconds * 44100)"
    )
    hear_it_on_from_where_it_stopped(screen, area)
    area.get_by_role("button", name="Files").click()
    assert downloaded(screen, area, "WAV") == "My table.wav"
    assert serious_violations(screen) == []
    screen.page.set_viewport_size({"width": 390, "height": 844})
    assert screen.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert serious_violations(screen) == []


def hear_it_on_from_where_it_stopped(screen: Screen, area: Locator) -> None:
    screen.page.evaluate(
        """studio.nowPlaying.addEventListener("moved", function stop({ detail: { take, position } }) {
            if (take.of.position !== 1 || position < 0.1) return;
            studio.nowPlaying.removeEventListener("moved", stop);
            studio.nowPlaying.pause();
        })"""
    )
    area.get_by_role("button", name="Play all").click()
    expect(screen.page.locator("#dock")).to_have_attribute("data-state", "paused")
    stopped = screen.page.evaluate("studio.nowPlaying.current.of.position")  # on a busy machine in the next part
    screen.page.reload()
    screen.ready()
    screen.page.evaluate(
        """window.marked = []; window.studio.nowPlaying.addEventListener("show", ({ detail }) =>
        marked.push(detail.take.of.position))"""
    )
    area.get_by_role("button", name="Continue listening").click()  # where it stopped, also after a reload
    screen.page.wait_for_function("(at) => marked[0] === at", arg=stopped)
    screen.page.get_by_role("button", name="Chapters").click()
    screen.page.get_by_role("menuitem", name="From the beginning").click()
    screen.page.wait_for_function("marked.includes(0)")
    expect(screen.page.locator("#dock")).to_have_attribute("data-state", "over")
    expect(area.get_by_role("button", name="Play all")).to_be_visible()  # heard to the end
    assert screen.page.evaluate("navigator.mediaSession.metadata.title").startswith("My table, part")
    take_up_a_part_that_is_spoken_meanwhile(screen, area)
    read_along_in_prose(screen, area)


def take_up_a_part_that_is_spoken_meanwhile(screen: Screen, area: Locator) -> None:
    text = area.get_by_label("Text of part 2")
    before = text.input_value()
    text.fill("Once more.")
    text.blur()
    expect(area.locator("[data-part=state]")).to_contain_text("1 changed")
    repeat = (
        "(isRepeated) => studio.nowPlaying.bar.dispatchEvent(new CustomEvent('repeat', { detail: { isRepeated } }))"
    )
    screen.page.evaluate(repeat, True)
    screen.page.evaluate("marked.length = 0")
    area.get_by_role("button", name="Play all").click()
    screen.page.wait_for_function("marked.length")
    area.get_by_role("button", name="Speak the remaining part").click()
    expect(area.locator("[data-part=state]")).to_contain_text("3 of 3 parts spoken")
    screen.page.evaluate(repeat, False)
    screen.page.wait_for_function("marked.includes(2)")
    assert screen.page.evaluate("marked") == [0, 1, 2]
    expect(screen.page.locator("#dock")).to_have_attribute("data-state", "over")
    text.fill(before)
    text.blur()
    expect(area.locator("[data-part=state]")).to_contain_text("3 of 3 parts spoken")


def read_along_in_prose(screen: Screen, area: Locator) -> None:
    """A sentence plays on to the end, the reading view follows, and a button leads back to the playing part."""
    screen.page.evaluate("marked.length = 0")
    area.get_by_role("button", name="Read", exact=True).click()
    screen.page.add_style_tag(content="#area-longform .prose-text p { margin-bottom: 100vh }")
    pieces = area.locator(".prose-text [role=button]")
    pieces.first.click()
    screen.page.wait_for_function("marked.join() === '0,1,2'")
    expect(screen.page.locator("#dock")).to_have_attribute("data-state", "over")
    expect(pieces.nth(2)).to_be_in_viewport()
    screen.page.evaluate(
        "() => studio.nowPlaying.addEventListener('moved', () => studio.nowPlaying.pause(), { once: true })"
    )
    pieces.nth(2).dispatch_event("click")
    expect(screen.page.locator("#dock")).to_have_attribute("data-state", "paused")
    screen.page.mouse.wheel(0, -9999)
    there = area.get_by_role("button", name="Go to the playing part")
    there.click()
    expect(pieces.nth(2)).to_be_in_viewport()
    expect(there).to_be_hidden()
    area.get_by_role("button", name="Parts", exact=True).click()
    expect(there).to_be_hidden()


def test_further_take_that_fails_leaves_the_part_done_and_says_why(steered: Steer, open_page: Open) -> None:
    engines = list[FakeEngine]()

    def started(config: EngineConfig) -> FakeEngine:
        engines.append(FakeEngine(config))
        return engines[0]

    screen = open_page(steered(started)).ready()
    area = area_of(screen)
    import_file(area, table("text,voice\nOne two.,anna\n"))
    area.get_by_role("button", name="Speak all parts").click()
    row = area.locator(".long-parts > li")
    expect(row).to_contain_text("Done")
    engines[0].spoilt = ["silent"] * 2
    row.get_by_role("button", name="Speak part 1 again").click()
    expect(row.locator(".long-error")).to_contain_text("silent")
    expect(row).to_contain_text("Done")
    row.get_by_role("button", name="Speak part 1 again").click()
    expect(row.get_by_label("Take of part 1").locator("option")).to_have_count(2)
    expect(row.locator(".long-error")).to_be_hidden()


def test_project_stores_its_setting_for_reading_numbers(steered: Steer, open_page: Open) -> None:
    studio = steered(with_card(ModelCard(normalize=True)))
    engine = studio.app.state.studio.speech.host.engine()
    screen = open_page(studio).ready()
    area = area_of(screen)
    import_file(area, table("text\nMeet me at 5 pm.\n"))
    area.get_by_role("button", name="Voice, speed and pauses").click()
    reading = area.get_by_label("Numbers and dates")
    expect(reading).to_have_value("null")
    area.get_by_role("button", name="Speak all parts").click()
    row = area.locator(".long-parts > li")
    expect(row).to_contain_text("Done")
    for choice, state in (("As written", "Changed"), ("Automatic", "Done"), ("As written", "Changed")):
        reading.select_option(choice)
        expect(row).to_contain_text(state)
    row.get_by_role("button", name="Play part 1").click()  # the earlier audio, although no part has audio as set now
    screen.until_over()
    screen.page.reload()
    screen.page.wait_for_selector("body[data-studio=ready]")
    expect(reading).to_have_value("false")
    area.get_by_role("button", name="Speak all parts").click()
    expect(row).to_contain_text("Done")
    assert [utterance.text for utterance in engine.utterances] == ["Meet me at five PM.", "Meet me at 5 pm."]


def test_reload_shows_the_running_project(steered: Steer, open_page: Open) -> None:
    studio = steered(engine=lambda config: FakeEngine(config, rows=4))
    engine = studio.app.state.studio.speech.host.engine()
    engine.later_frames_gate.clear()
    screen = open_page(studio).ready()
    area = area_of(screen)
    book = epub({"a.xhtml": page("<h1>One</h1><p>Hello.</p><h1>Two</h1><p>Bye.</p>")}, title="A Book")
    import_file(area, {"name": "b.epub", "mimeType": "application/epub+zip", "buffer": book})
    area.get_by_role("button", name="Speak all parts").click()
    expect(area.locator(".long-parts > li").nth(0)).to_contain_text("Speaking")
    screen.page.reload()
    screen.page.wait_for_selector("body[data-studio=ready]")
    expect(area.get_by_label("Title of the project")).to_have_value("A Book")
    expect(area.locator(".long-parts > li").nth(3)).to_contain_text("Queued")
    area.get_by_role("button", name="Pause", exact=True).click()
    expect(area.locator("[data-part=state]")).to_contain_text("paused")
    engine.later_frames_gate.set()
    expect(area.locator("[data-part=state]")).to_contain_text("2 of 4 parts spoken")
    expect(area.locator("[data-part=state]")).to_contain_text("paused")
    area.get_by_role("button", name="Resume").click()
    expect(area.locator("[data-part=state]")).to_contain_text("4 of 4 parts spoken")
    area.get_by_role("button", name="All projects").click()
    expect(area.get_by_role("list", name="Projects")).to_contain_text("4 of 4 parts")


def test_texts_are_imported_or_pasted_assigned_voices_and_partly_spoken(studio: Served, open_page: Open) -> None:
    screen = open_page(studio).ready()
    area = area_of(screen)
    area.get_by_label("Choose a document").set_input_files(table("text,pause\nOne.,soon\n"))
    expect(area.locator("[data-part=said][data-bad]")).to_contain_text("Line 2: the pause 'soon' is not a number")

    play = b"Bo: Hi.\n\nNote: a.\n\nNote: b.\n\nBo: Bye.\n\nAnna: Hm."
    area.get_by_label("Choose a document").set_input_files(
        {"name": "play.txt", "mimeType": "text/plain", "buffer": play}
    )
    who = area.get_by_role("group", name="Who speaks")
    expect(who.locator("[data-part=people] .cast-list > li")).to_have_count(3)  # a script, so its names are characters
    area.get_by_label("Find the speakers").uncheck()
    expect(who.locator("select")).to_have_count(2)
    choose(who.get_by_label("Voice of Bo"), "bert")
    import_it(area)
    rows = area.locator(".long-parts > li")
    expect(rows).to_have_count(4)
    expect(rows.nth(0).get_by_label("Text of part 1")).to_have_value("Hi.")
    expect(rows.nth(0).get_by_label("Voice of part 1")).to_have_value("bert")
    expect(rows.nth(1).get_by_label("Text of part 2")).to_have_value("Note: a.\n\nNote: b.")
    expect(rows.nth(3).get_by_label("Voice of part 4")).to_have_value("anna")
    area.get_by_role("button", name="All projects").click()

    area.get_by_text("Or paste a text").click()
    area.get_by_role("button", name="Create a project").click()
    expect(area.locator("[data-part=said]")).to_have_text("Paste a text first.")
    area.get_by_label("Text of the project").fill("\n\n".join(f"Chapter {n}" for n in range(1, 61)))
    area.get_by_role("button", name="Create a project").click()
    import_it(area)
    area.get_by_label("Select part 2", exact=True).check()
    chapters = area.get_by_role("list", name="Chapters")
    chapters.get_by_text("Chapter 60").click()
    last = area.locator(".long-parts > li", has=screen.page.get_by_label("Select part 60"))
    expect(last).to_be_in_viewport()
    expect(last).to_have_attribute("aria-posinset", "60")
    ids = Held(screen.page, re.compile(r"/parts/ids"))
    area.get_by_label("Select part 60").click(modifiers=["Shift"])  # most other parts are not in the page
    ids.wait_for(1)
    area.get_by_role("button", name="Clear selection").click()
    ids.answer(0)
    expect(area.get_by_role("group", name="Selected parts")).to_be_hidden()
    chapters.get_by_text("Chapter 2", exact=True).click()
    area.get_by_label("Select part 2", exact=True).check()
    chapters.get_by_text("Chapter 60").click()
    area.get_by_label("Select part 60").click(modifiers=["Shift"])
    ids.wait_for(2)
    area.get_by_label("Select part 59").click()  # twice, before the page knows the range: the boxes are not ticked yet
    area.get_by_label("Select part 59").click()
    ids.answer(1)
    area.get_by_role("button", name="Speak 58 selected").click()
    expect(area.locator("[data-part=state]")).to_contain_text("58 of 60 parts spoken")
    expect(last).to_contain_text("Done")
    expect(area.get_by_role("group", name="Selected parts")).to_be_hidden()
    area.get_by_role("button", name="Speak chapter “Chapter 59”").click()
    expect(area.locator("[data-part=state]")).to_contain_text("59 of 60 parts spoken")
    last.get_by_label("Text of part 60").fill("Another one.")
    area.get_by_role("button", name="Files").click()
    words = "2 parts are not included yet. 1 changed after it was generated. Chapters with changes: “Chapter 60”."
    expect(area.locator("[data-part=left-out]")).to_have_text(words)


def test_a_jump_to_a_chapter_shows_its_heading_below_the_bar(studio: Served, open_page: Open) -> None:
    screen = open_page(studio).ready()
    area, page = area_of(screen), screen.page
    area.get_by_text("Or paste a text").click()
    part = [["Words of it. " * (5 + (n * 37 + k * 13) % 60) for k in range(6)] for n in range(60)]
    text = "\n\n".join("\n\n".join([f"# Chapter {n}", *part[n - 1]]) for n in range(1, 61))
    area.get_by_label("Text of the project").fill(text)
    area.get_by_role("button", name="Create a project").click()
    area.get_by_label("Split into").select_option("paragraph")
    import_it(area)
    for number in (50, 33, 7, 60):
        area.get_by_role("list", name="Chapters").get_by_text(f"Chapter {number}", exact=True).click()
        heading = area.locator(f".long-parts > li[aria-posinset='{number * 7 - 6}']")
        expect(heading.locator("textarea")).to_have_value(f"Chapter {number}")
        below = page.evaluate(
            """async (row) => {
                const frame = () => new Promise((done) => requestAnimationFrame(done));
                for (let still = 0, at = -1; still < 10; await frame()) {
                    still = scrollY === at ? still + 1 : 0;
                    at = scrollY;
                }
                const bar = document.querySelector("#area-longform [data-part=sticky]");
                return row.getBoundingClientRect().top - bar.getBoundingClientRect().bottom;
            }""",
            heading.element_handle(),
        )
        assert 0 < below < 20, (number, below)


def test_project_is_deleted_after_confirmation_and_restored_after_a_reload(studio: Served, open_page: Open) -> None:
    screen = open_page(studio).ready()
    area, page = area_of(screen), screen.page
    import_file(area, table("text\nOne.\nTwo.\n") | {"name": "To be deleted.csv"})
    expect(area.locator(".long-parts > li")).to_have_count(2)
    listed = area.get_by_role("list", name="Projects")
    questions: list[str] = []

    def press(answer: str) -> None:
        def tell(dialog: Dialog) -> None:
            questions.append(dialog.message)
            getattr(dialog, answer)()

        page.once("dialog", tell)
        area.get_by_role("button", name="More actions").click()
        page.get_by_role("menuitem", name="Delete project").click()

    press("dismiss")
    assert questions == ["Delete the project “To be deleted” with all its 2 parts?"]
    expect(area.locator(".long-parts > li")).to_have_count(2)
    page.route(
        "**/v1/projects/proj_*", lambda route: route.abort() if route.request.method == "DELETE" else route.continue_()
    )
    press("accept")
    expect(area.locator("[data-part=told]")).to_have_text("The studio is not responding.")
    page.unroute_all()
    press("accept")
    expect(area.get_by_role("button", name="Undo")).to_be_focused()
    expect(area.locator("#undo-toast")).to_contain_text("Deleted “To be deleted”.")
    expect(listed).not_to_contain_text("To be deleted")
    page.go_back()  # to the deleted project
    expect(area.locator("[data-part=said]")).to_contain_text("no longer exists")
    expect(listed).to_be_visible()
    page.reload()
    page.wait_for_selector("body[data-studio=ready]")
    expect(listed).not_to_contain_text("To be deleted")
    go(page, "Settings")
    trash = page.locator("#area-settings")
    trash.get_by_text("Items that can be restored").click()
    expect(trash.get_by_role("listitem").first).to_contain_text("Project “To be deleted”, 2 parts")
    trash.get_by_role("button", name="Restore").first.click()
    expect(trash).not_to_contain_text("To be deleted")
    go(page, "Projects")
    listed.get_by_role("button", name="To be deleted").click()
    expect(area.locator(".long-parts > li")).to_have_count(2)
    page.once("dialog", lambda dialog: dialog.accept())
    area.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Delete project").click()
    expect(area.get_by_role("button", name="Undo")).to_be_visible()
    page.evaluate(
        """async () => { const { data: [{ id }] } = await (await fetch("/v1/trash")).json();
        await fetch(`/v1/projects/${id}/restore`, { method: "POST" }); }"""
    )
    area.get_by_role("button", name="Undo").click()  # already done by someone else
    expect(area.locator("#undo-toast")).to_contain_text("None of these is in the trash")
    expect(area.get_by_role("button", name="Undo")).to_be_hidden()
    expect(listed).to_contain_text("To be deleted")


def test_parts_are_selected_in_ranges_deleted_together_filtered_and_spoken_if_changed(
    studio: Served, open_page: Open
) -> None:
    screen = open_page(studio).ready()
    area = area_of(screen)
    import_file(area, table("text\n" + "".join(f"Line {n}.\n" for n in range(1, 7))))
    rows = area.locator(".long-parts > li")
    expect(rows).to_have_count(6)
    area.get_by_label("Select part 2").check()
    area.get_by_label("Select part 5").click(modifiers=["Shift"])
    expect(area.get_by_role("button", name="Speak 4 selected")).to_be_in_viewport()
    area.get_by_label("Select part 4").uncheck()
    area.get_by_role("button", name="Delete 3 selected").click()
    expect(rows).to_have_count(3)
    expect(area.locator("#undo-toast")).to_contain_text("Deleted 3 parts")
    area.get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(6)
    for number in range(1, 7):
        expect(area.get_by_label(f"Text of part {number}")).to_have_value(f"Line {number}.")
    for number in (1, 2, 3):
        area.get_by_label(f"Select part {number}").check()
    area.get_by_label("Voice of part 1").select_option("bert")
    area.get_by_label("Set the voice").select_option("anna")
    expect(area.locator("#undo-toast")).to_contain_text("3 parts changed.")
    expect(area.get_by_label("Voice of part 2")).to_have_value("anna")
    area.get_by_role("button", name="Undo").click()
    for number, voice in (1, "bert"), (2, ""), (3, ""):
        expect(area.get_by_label(f"Voice of part {number}")).to_have_value(voice)
    area.get_by_role("button", name="Speak 3 selected").click()
    expect(area.locator("[data-part=state]")).to_contain_text("3 of 6 parts spoken")
    text = area.get_by_label("Text of part 2")
    text.fill("Another line.")
    text.blur()
    expect(area.get_by_role("button", name="Speak only the changed part")).to_be_visible()
    area.locator("[data-part=filter]").select_option(label="Changed (1)")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Changed")
    area.get_by_role("button", name="Speak only the changed part").click()
    expect(area.get_by_text("No part matches the filter.")).to_be_visible()
    every = area.get_by_role("checkbox", name="Select all")
    every.click()
    expect(every).not_to_be_checked()
    assert not [url for url in screen.requests if "limit=0" in url]  # which the studio refuses
    area.locator("[data-part=filter]").select_option(label="All parts")
    expect(area.locator("[data-part=state]")).to_contain_text("3 of 6 parts spoken")
    expect(rows.nth(3)).to_contain_text("Not spoken")
    assert serious_violations(screen) == []
    area.get_by_label("Select part 5").check()
    area.get_by_label("Select part 6").check()
    with studio.client() as client:  # as somebody else does
        parts = f"/v1/projects/{screen.page.url.rpartition('/')[2]}/parts"
        assert client.delete(f"{parts}/{client.get(parts).json()['data'][4]['id']}").is_success
    area.get_by_role("button", name="Delete 2 selected").click()
    expect(area.locator("[data-part=told]")).to_contain_text("has no part")
    area.get_by_role("button", name="Delete 1 selected").click()
    expect(rows).to_have_count(4)
    type_on_below_a_filter(screen, area)


def type_on_below_a_filter(screen: Screen, area: Locator) -> None:
    """Typed on in the second half of a split, which the filter leaves out."""
    text, press = area.get_by_label("Text of part 2"), screen.page.keyboard.press
    text.fill("Some line. Another")
    text.blur()
    area.locator("[data-part=filter]").select_option(label="Changed (1)")
    expect(area.locator(".long-parts > li")).to_have_count(1)
    split = Held(screen.page, "**/split", "POST")
    text.evaluate("(text) => { text.focus(); text.setSelectionRange(10, 10); }")
    area.get_by_role("button", name="Arrange part 2").click()
    screen.page.get_by_role("menuitem", name="Split at cursor").click()
    split.wait_for(1)
    text.click()
    press("Control+End")
    screen.page.keyboard.type(" one")
    split.answer(0)
    second = area.get_by_label("Text of part 3")
    expect(second).to_be_focused()
    screen.page.keyboard.type(", too.")
    second.blur()
    area.locator("[data-part=filter]").select_option(label="All parts")
    expect(text).to_have_value("Some line.")
    expect(second).to_have_value("Another one, too.")
