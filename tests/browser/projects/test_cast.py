"""The cast of a project on the page: detected before the import, changed, decided by keys, merged and restored."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Route, expect

from tests.browser.projects.test_longform import area_of, import_file, import_it, table
from tests.browser.screen import Held, Screen, asks_before_leaving, choose, go
from tests.browser.test_looks import serious_violations
from tests.studio.server import Served

Open = Callable[..., Screen]
NOVEL = (
    "“Come in,” said Eleanor. “She is waiting.”\n\nMr Thornton wiped his boots.\n\n"
    "“Then I wait,” said Mr Thornton.\n\nThe rain went on.\n\n“Somebody is here,” whispered a voice.\n\n"
    "It rained.\n\n“Who is it?” called another voice."
)


def import_novel(studio: Served, open_page: Open, **size: int) -> tuple[Screen, Locator]:
    """A project of the novel, whose speakers were found, with its cast shown."""
    screen = open_page(studio, **size).ready()
    area = area_of(screen)
    area.get_by_label("Choose a document").set_input_files(
        {"name": "Novel.txt", "mimeType": "text/plain", "buffer": NOVEL.encode()}
    )
    speakers = area.get_by_label("Find the speakers")
    speakers.check()
    people = area.locator("[data-part=people] .cast-list > li")
    expect(people).to_have_count(2)
    assert serious_violations(screen) == []
    choose(area.get_by_label("Voice of Eleanor"), "bert")
    speakers.uncheck()
    expect(people).to_have_count(0)
    speakers.check()
    expect(area.get_by_label("Voice of Eleanor")).to_have_value("bert")
    import_it(area)
    area.get_by_role("button", name="Cast", exact=True).click()
    expect(area.locator(".cast-list > li")).to_have_count(3)
    return screen, area


def read_as_prose(screen: Screen, area: Locator) -> None:
    """The reading view: paragraphs, marked speakers, keys, and words selected to direct their parts."""
    faces = area.locator(".cast-face [data-mark]").all()[1:]  # without the narrator
    colours = [face.evaluate("(it) => getComputedStyle(it).backgroundColor") for face in faces]
    area.get_by_role("button", name="Read", exact=True).click()
    paragraphs = area.locator(".prose-text p")
    expect(paragraphs.nth(0)).to_have_text("“Come in,” said Eleanor. “She is waiting.”")
    expect(paragraphs.nth(1)).to_have_text("Mr Thornton wiped his boots.")
    expect(area.locator(".prose-legend li")).to_have_text(["Eleanor", "Mr Thornton"])
    with screen.studio.client() as client:  # as somebody else does
        parts = f"/v1/projects/{screen.page.url.rpartition('/')[2]}/parts"
        [boots] = [part["id"] for part in client.get(parts).json()["data"] if "boots" in part["text"]]
        for text in ("He wiped his boots.", "Mr Thornton wiped his boots."):
            assert client.patch(f"{parts}/{boots}", json={"text": text}).is_success
            expect(paragraphs.nth(1)).to_have_text(text)
    pieces = paragraphs.nth(0).get_by_role("button")
    styles = [piece.evaluate("(it) => getComputedStyle(it).textDecorationLine") for piece in pieces.all()]
    assert styles == ["underline", "none", "underline"], "the narrator's words have no mark"
    samples = area.locator(".prose-legend [data-mark]").all()
    lines = [sample.evaluate("(it) => getComputedStyle(it).textDecorationStyle") for sample in samples]
    assert lines == ["solid", "dashed"], "characters differ in more than the colour of their lines"
    assert colours == [sample.evaluate("(it) => getComputedStyle(it).textDecorationColor") for sample in samples]
    pieces.first.press("ArrowRight")
    expect(pieces.nth(1)).to_be_focused()
    assert serious_violations(screen) == []
    paragraphs.nth(0).evaluate("""(it) => {
        const [first, second] = it.querySelectorAll("[role=button]");
        getSelection().setBaseAndExtent(first.firstChild, 2, second.firstChild, 4);
    }""")
    area.get_by_role("button", name="Direct these 2 parts").click()
    expect(area.locator(".long-parts [data-selected]")).to_have_count(2)
    expect(area.get_by_role("button", name="Direction")).to_be_visible()
    area.locator("[data-part=clear]").click()


def write_into_last_part(studio: Served, tag: str, more: str) -> None:
    """Add to the text of the newest project's last part with this tag, as somebody else does."""
    with studio.client() as client:
        address = f"/v1/projects/{client.get('/v1/projects').json()['data'][0]['id']}/parts"
        [*_, part] = [one for one in client.get(address).json()["data"] if one["text"].startswith(tag)]
        assert client.patch(f"{address}/{part['id']}", json={"text": part["text"] + more}).status_code == 200


def test_novel_gets_an_editable_cast(studio: Served, open_page: Open) -> None:
    screen, area = import_novel(studio, open_page)
    expect(area.get_by_label("Voice of Eleanor")).to_have_value("bert")
    busy = {"error": {"message": "the library is locked", "code": "library_unavailable"}}
    screen.page.route("**/cast/**", lambda route: route.fulfill(status=503, json=busy))
    area.get_by_label("Name of Eleanor").fill("Eleanor Hale")
    area.get_by_label("Name of Eleanor").press("Tab")
    expect(area.locator(".cast-panel [role=status]").first).to_contain_text("locked")
    screen.page.unroute_all()
    screen.page.route("**/cast/**", lambda route: route.abort())
    choose(area.get_by_label("Voice of Eleanor"), "anna")
    expect(area.locator(".cast-panel [role=status]").first).to_contain_text("not responding")
    assert asks_before_leaving(screen.page)
    screen.page.unroute_all()
    area.get_by_label("Name of a new character").fill("Zoe")
    go(screen.page, "Studio")
    screen.page.get_by_role("switch", name="Dialogue").click()  # its cast is kept, too
    screen.page.go_back()
    area.get_by_role("button", name="Cast", exact=True).click()
    expect(area.get_by_label("Name of Eleanor Hale")).to_have_value("Eleanor Hale")
    expect(area.get_by_label("Voice of Eleanor Hale")).to_have_value("anna")
    expect(area.get_by_label("Name of a new character")).to_have_value("Zoe")
    area.get_by_label("Name of a new character").fill("")
    area.get_by_label("Name of Eleanor Hale").fill("Eleanor")
    area.get_by_label("Name of Eleanor Hale").press("Enter")
    expect(area.get_by_label("Name of Eleanor", exact=True)).to_have_value("Eleanor")
    assert serious_violations(screen) == []
    read_as_prose(screen, area)
    area.locator("[data-part=filter]").select_option(label="Eleanor (3)")
    rows = area.locator(".long-parts > li")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("Eleanor")
    expect(rows.first.get_by_label("Voice of part 1")).to_have_value("anna")
    area.get_by_role("checkbox", name="Select all").check()
    area.get_by_role("button", name="Direction").click()
    area.get_by_role("combobox", name="Tag", exact=True).select_option("sad")
    expect(rows.first.get_by_role("textbox")).to_have_value("[sad] “Come in,”")
    write_into_last_part(studio, "[sad]", " And more.")
    screen.page.get_by_role("button", name="Undo").click()
    expect(rows.first.get_by_role("textbox")).to_have_value("“Come in,”")
    expect(rows.last.get_by_role("textbox")).to_have_value(re.compile(r"^\[sad\].* And more\.$"))
    expect(area.locator("#undo-toast")).to_contain_text("3 parts changed. 2 undone; 1 was changed again since")
    area.get_by_role("combobox", name="Tag", exact=True).select_option("sad")
    area.get_by_role("combobox", name="Delivery", exact=True).select_option(label="Lively")
    expect(rows.first.get_by_role("textbox")).to_have_value("[sad] “Come in,”")
    expect(rows.first.get_by_role("img", name="Direction: Lively · [sad]")).to_be_visible()
    assert serious_violations(screen) == []
    area.get_by_role("combobox", name="Character", exact=True).select_option(label="Narrator")
    expect(area.get_by_text("No part matches the filter.")).to_be_visible()
    area.locator("[data-part=filter]").select_option(label="All parts")
    expect(rows.first.get_by_label("Voice of part 1")).to_have_value("")
    expect(rows.nth(1)).to_contain_text("Not spoken")
    expect(rows.nth(1).get_by_role("img")).to_have_count(0)
    screen.page.get_by_role("button", name="Cast", exact=True).click()
    thornton = area.locator(".cast-list > li").nth(1)
    thornton.get_by_label("More for Mr Thornton").click()
    thornton.get_by_label("Merge into").select_option("Eleanor")
    expect(area.locator(".cast-list > li")).to_have_count(2)
    expect(area.locator("#undo-toast")).to_contain_text("Mr Thornton")  # until then it is about the part
    screen.page.get_by_role("button", name="Undo").click()
    expect(area.locator(".cast-list > li")).to_have_count(3)
    cast_is_changed_faster_than_the_studio_answers(screen, area)
    undo_a_merge_in_another_project(screen, area)


def cast_is_changed_faster_than_the_studio_answers(screen: Screen, area: Locator) -> None:
    narrator = area.get_by_label("Voice of Narrator")
    held = Held(screen.page, "**/v1/projects/proj_*", "PATCH")
    choose(narrator, "anna")
    held.wait_for(1)
    narrator.select_option("bert")
    for number in range(2):
        held.answer(number)
    expect(area.locator(".cast-panel [role=status]").first).to_have_text("")  # not that somebody else has changed it
    expect(narrator).to_have_value("bert")
    name = area.get_by_label("Name of a new character")
    held = Held(screen.page, "**/cast", "POST")
    name.fill("Ann")
    name.press("Enter")
    held.wait_for(1)
    name.fill("Ben")
    held.answer(0)
    expect(area.get_by_label("Name of Ann", exact=True)).to_be_visible()
    expect(name).to_have_value("Ben")
    area.get_by_label("Name of Ann", exact=True).fill("Anne")
    area.get_by_label("Name of Ann", exact=True).press("Enter")
    gender = area.get_by_label("Gender of Anne")
    gender.select_option("neutral")
    choose(area.get_by_label("Voice of Anne"), "anna")
    expect(area.locator(".cast-panel [role=status]").first).to_have_text("")
    for _ in range(3):  # each of the three, and no older step
        narrator.focus()
        screen.page.keyboard.press("Control+z")
    expect(area.get_by_label("Name of Ann", exact=True)).to_have_value("Ann")
    expect(area.get_by_label("Gender of Ann", exact=True)).to_have_value("")
    expect(area.get_by_label("Voice of Ann", exact=True)).to_have_value("")
    screen.page.keyboard.press("Control+z")
    expect(narrator).to_have_value("anna")


def undo_a_merge_in_another_project(screen: Screen, area: Locator) -> None:
    """The project that was left stays out of the page."""
    area.get_by_label("More for Ann").click()
    area.locator(".cast-rare:visible").get_by_label("Merge into").last.select_option("Eleanor")
    expect(area.locator("#undo-toast")).to_contain_text("“Ann” was merged")
    area.get_by_role("button", name="All projects").click()
    import_file(area, table("text\nOther.\n"))
    title = area.get_by_label("Title of the project")
    other = title.input_value()
    area.get_by_role("button", name="All projects").focus()
    screen.page.keyboard.press("Control+z")
    expect(area.locator("#undo-toast")).to_contain_text("Undone: ")
    assert title.input_value() == other, "at once: the open project is shown again seconds later"


SERIES = (
    "“Come in,” said Eleanor Ashby. “She is waiting.”\n\n“Thank you,” said Miss Ashby.\n\n"
    "“Then I wait,” said Mr Thornton.\n\n“So do I,” said Gregory."
)


def test_people_are_edited_before_the_import_and_known_in_the_next_book(studio: Served, open_page: Open) -> None:
    screen = open_page(studio).ready()
    area = area_of(screen)
    people = area.locator("[data-part=people] .cast-list > li")

    def show(title: str) -> None:
        document = {"name": f"{title}.txt", "mimeType": "text/plain", "buffer": SERIES.encode()}
        area.get_by_label("Choose a document").set_input_files(document)  # type: ignore[arg-type]
        expect(area.get_by_label("Find the speakers")).to_be_visible()  # it may still be checked for the last document
        area.get_by_label("Find the speakers").check()
        expect(people).to_have_count(3)

    def card(name: str) -> Locator:
        return people.filter(has=screen.page.get_by_label(f"Name of {name}", exact=True))

    show("First")
    expect(card("Gregory")).to_contain_text("“So do I,”")
    card("Gregory").locator(".cast-face").drag_to(card("Mr Thornton"))
    expect(people).to_have_count(2)
    expect(card("Mr Thornton")).to_contain_text("Gregory")
    expect(card("Mr Thornton")).to_contain_text("2 lines")
    screen.page.get_by_role("button", name="Undo").click()
    expect(people).to_have_count(3)
    card("Gregory").get_by_label("More for Gregory").click()
    card("Gregory").get_by_label("Merge into").select_option("Mr Thornton")
    expect(people).to_have_count(2)
    card("Mr Thornton").get_by_label("More for Mr Thornton").click()
    card("Mr Thornton").get_by_role("button", name="“Gregory” is someone else").click()
    expect(people).to_have_count(3)
    name = card("Mr Thornton").get_by_label("Name of Mr Thornton")
    name.fill("Thornton the Elder")
    name.press("Tab")
    card("Gregory").get_by_label("Gender of Gregory").select_option("neutral")
    choose(card("Gregory").get_by_label("Voice of Gregory"), "anna")
    assert serious_violations(screen) == []
    expect(area.locator("#undo-toast")).to_be_visible()
    import_it(area)
    expect(area.locator("#undo-toast")).to_be_hidden()  # its steps ended with the preview
    id = screen.page.url.rpartition("/")[2]
    with studio.client() as client:
        cast = client.get(f"/v1/projects/{id}/cast").json()["data"]
        words = {"phrase": "Ashby", "said": "Ashbee", "project": id}
        assert client.post("/v1/pronunciations", json=words).status_code == 201
    known = {one["name"]: (one["aliases"], one["gender"], one["voice"]) for one in cast}
    assert known["Gregory"] == ([], "neutral", "anna")
    assert known["Thornton the Elder"][:2] == (["Mr Thornton"], "male")

    area.get_by_role("button", name="All projects").click()
    show("Second")
    area.get_by_role("button", name="Use the cast of “First”: 3 people match").click()
    expect(card("Thornton the Elder")).to_contain_text("Mr Thornton")
    expect(card("Gregory").get_by_label("Voice of Gregory")).to_have_value("anna")
    import_it(area)
    second = screen.page.url.rpartition("/")[2]
    with studio.client() as client:
        cast = client.get(f"/v1/projects/{second}/cast").json()["data"]
        [entry] = client.get("/v1/pronunciations", params={"project": second}).json()["data"]
    assert second != id and {one["name"] for one in cast} == known.keys()
    assert (entry["phrase"], entry["said"]) == ("Ashby", "Ashbee")


def line_text(line: Locator) -> str:
    return line.locator("strong").inner_text()


def surer(route: Route) -> None:
    answer = route.fetch()
    body = answer.json()
    route.fulfill(json=body | {"data": [line | {"confidence": 0.65} for line in body["data"]]})


def accept_likely_lines(screen: Screen, area: Locator, studio: Served, parts: str) -> None:
    """Accept both lines at once and undo that, after somebody else has confirmed one of them."""
    screen.page.route("**/cast/lines?*", surer)
    area.get_by_role("button", name="Accept all that are at least 60% sure").click()
    expect(area.locator("#undo-toast")).to_contain_text("2 lines accepted.")
    with studio.client() as client:  # as somebody else does
        both = [part["id"] for part in client.get(parts).json()["data"] if part["confirmed"]]
        assert client.patch(parts, json={"ids": both[:1], "confirmed": True}).is_success
        screen.page.get_by_role("button", name="Undo").click()
        expect(area.locator("#undo-toast")).to_contain_text("1 undone; 1 was changed again since")
        assert [part["id"] for part in client.get(parts).json()["data"] if part["confirmed"]] == both[:1]
        assert client.patch(parts, json={"ids": both, "confirmed": False}).is_success
    screen.page.unroute_all()


def rename_what_another_renames(area: Locator, studio: Served, character: str) -> None:
    """Be told of the other name, keep what was typed, and then replace it."""
    name = area.get_by_label("Name of Nelly")
    name.fill("Nella")
    with studio.client() as client:  # as somebody else does
        assert client.patch(character, json={"name": "Nora", "before": {"name": "Nelly"}}).is_success
    name.press("Enter")
    expect(area.locator(".cast-panel [role=status]").first).to_contain_text('meanwhile: it is now "Nora"')
    expect(area.get_by_label("Name of Nora")).to_have_value("Nella")
    area.get_by_label("Name of Nora").fill("Nell")
    area.get_by_label("Name of Nora").press("Enter")
    expect(area.get_by_label("Name of Nell")).to_have_value("Nell")


def test_unsure_lines_are_decided_by_single_keys(studio: Served, open_page: Open) -> None:
    screen, area = import_novel(studio, open_page)
    area.get_by_role("button", name="Decide 2 unsure lines").click()
    lines = area.locator(".cast-lines > li")
    expect(lines).to_have_count(2)
    parts = f"/v1/projects/{screen.page.url.rpartition('/')[2]}/parts"
    accept_likely_lines(screen, area, studio, parts)
    area.get_by_role("button", name=re.compile("^Decide . unsure lines?$")).click()
    expect(lines).to_have_count(2)
    expect(lines.first).to_be_focused()
    press = screen.page.keyboard.press
    for undo in ("u", "Control+z"):
        press("1")
        expect(lines.nth(0)).to_contain_text("Decided: Eleanor")
        expect(lines.nth(1)).to_be_focused()
        press(undo)
        expect(lines.nth(0)).to_contain_text("Probably")
        expect(lines.nth(0)).to_be_focused()
    press("1")
    expect(lines.nth(0)).to_contain_text("Decided: Eleanor")
    with studio.client() as client:  # as somebody else does
        [line] = [part for part in client.get(parts).json()["data"] if part["text"] == line_text(lines.nth(0))]
        assert client.patch(parts, json={"ids": [line["id"]], "character": "", "tags": ["sad"]}).is_success
        press("u")
        expect(area.locator("#undo-toast")).to_contain_text("Decided: Eleanor. This can no longer be undone")
        [now] = [part for part in client.get(parts).json()["data"] if part["id"] == line["id"]]
        assert (now["character"], now["confirmed"], now["text"]) == (None, True, f"[sad] {line['text']}")
        assert client.patch(f"{parts}/{line['id']}", json={"tags": []}).is_success
    lines.nth(0).focus()
    lines.nth(0).evaluate(  # faster than the studio answers
        """(line) => {
            const press = (key) => line.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
            ["0", "Enter"].forEach(press);
        }"""
    )
    expect(lines.nth(0)).to_contain_text("Decided: Narrator")
    expect(lines.nth(1)).to_contain_text("Decided:")
    expect(area.locator(".cast-bar button").first).to_be_hidden()
    assert serious_violations(screen) == []
    lines.first.focus()
    with studio.client() as client:  # as somebody else does
        project = f"/v1/projects/{screen.page.url.rpartition('/')[2]}"
        one, other = (member["id"] for member in client.get(f"{project}/cast").json()["data"])
        assert client.patch(f"{project}/cast/{one}", json={"name": "Nell", "voice": "anna"}).is_success
        expect(area.get_by_label("Voice of Nell")).to_have_value("anna")
        name = area.get_by_label("Name of Nell")
        name.fill("Nelly")
        assert client.post(f"{project}/cast/{other}/merge", json={"into": one}).is_success
        screen.page.evaluate("() => window.studio.longform.back()")
        expect(name).to_be_focused()
        expect(name).to_have_value("Nelly")
        name.press("Enter")
    expect(area.locator(".cast-list > li")).to_have_count(2)
    expect(area.get_by_label("Name of Nelly")).to_have_value("Nelly")
    rename_what_another_renames(area, studio, f"{project}/cast/{one}")


def test_proposals_of_a_chat_endpoint_are_shown_and_accepted_or_rejected(steered: Any, open_page: Open) -> None:
    served = steered(chat=("http://127.0.0.1:9/v1", "tiny"))
    screen, area = import_novel(served, open_page)

    def propose(route: Route) -> None:
        body = route.request.post_data_json or {}
        part = body["ids"][0]
        if body["estimate"]:
            route.continue_()
            return
        route.fulfill(json={"data": [{"part": part, "character": None, "name": "The Cook", "tags": []}]})

    area.get_by_role("button", name="Decide 2 unsure lines").click()
    ask = area.get_by_role("button", name="Ask tiny")
    ask.click()
    expect(ask).to_contain_text("question")  # the cost, before anything is asked
    ask.click()
    expect(area.locator(".cast-panel [role=status]")).to_contain_text("it cannot be reached")
    screen.page.route("**/cast/proposals", propose)
    ask.click()
    expect(ask).to_contain_text("question")
    ask.click()
    lines = area.locator(".cast-lines > li")
    expect(lines.first).to_contain_text("tiny proposes: The Cook")
    expect(lines.first).to_be_focused()
    screen.page.keyboard.press("Enter")
    expect(lines.first).to_contain_text("Decided: The Cook")
    expect(area.get_by_label("Name of The Cook")).to_have_value("The Cook")
