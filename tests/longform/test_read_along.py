"""EPUBs with media overlays, read back: packaging, text, and clips that cover the audio without gaps."""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.longform.test_files import RATE, fetch
from tests.longform.test_finished import settings
from tests.longform.test_projects import PROJECTS, Json, create_project, post_verb, until
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.documents import png
from tests.studio.server import Served
from tests.studio.sounds import decoded

Steer = Callable[..., Steered]
OPF, DC = "{http://www.idpf.org/2007/opf}", "{http://purl.org/dc/elements/1.1/}"
XHTML, SMIL = "{http://www.w3.org/1999/xhtml}", "{http://www.w3.org/ns/SMIL}"
ITEMS = [
    {"input": "One: <the> Start", "chapter": "One: <the> Start"},
    {"input": "[whisper] Hello you & me. So\nthey\n\nsay!"},
    {"input": "Bye.", "voice": "bert"},
    {"input": "Here it ends.", "chapter": "Ünd"},
]


class ReadBack:
    """An EPUB as read by a reading app. Checks the rules that hold for every EPUB."""

    def __init__(self, data: bytes) -> None:
        self.archive = zipfile.ZipFile(io.BytesIO(data))
        first = self.archive.infolist()[0]
        assert (first.filename, first.compress_type, first.extra, first.flag_bits & 8) == ("mimetype", 0, b"", 0)
        assert data[38:58] == b"application/epub+zip" and self.archive.testzip() is None
        container = self.xml("META-INF/container.xml")
        [root] = [element.get("full-path", "") for element in container.iter() if element.get("full-path")]
        self.folder = posixpath.dirname(root)
        self.package = self.xml(root)
        self.items = {item.get("id"): item.attrib for item in self.package.iter(f"{OPF}item")}
        files = {posixpath.join(self.folder, item["href"]) for item in self.items.values()}
        assert files | {"mimetype", "META-INF/container.xml", root} == set(self.archive.namelist())
        self.spine = [self.items[entry.get("idref")] for entry in self.package.iter(f"{OPF}itemref")]

    def xml(self, name: str) -> ElementTree.Element:
        return ElementTree.fromstring(self.archive.read(name))  # noqa: S314 - our own

    def item(self, properties: str) -> str:
        [item] = [item for item in self.items.values() if item.get("properties") == properties]
        return posixpath.join(self.folder, item["href"])

    def meta(self, name: str, refines: str | None = None) -> list[str]:
        entries = [meta for meta in self.package.iter(f"{OPF}meta") if meta.get("refines") == refines]
        return [entry.text or "" for entry in entries if entry.get("property") == name]

    def clips(self, chapter: int) -> list[tuple[str, float, float]]:
        """The text, begin and end of each clip, which lie within the audio and follow each other."""
        page = self.spine[chapter]
        overlay = self.items[page["media-overlay"]]
        root = self.xml(posixpath.join(self.folder, page["href"]))
        elements = {element.get("id"): element for element in root.iter() if element.get("id")}
        clips, names = [], set()
        for pair in self.xml(posixpath.join(self.folder, overlay["href"])).iter(f"{SMIL}par"):
            [text, audio] = pair
            file, _, element = text.attrib["src"].partition("#")
            assert file == page["href"]
            begin, end = (float(audio.attrib[name].removesuffix("s")) for name in ("clipBegin", "clipEnd"))
            clips.append((" ".join("".join(elements[element].itertext()).split()), begin, end))
            names.add(audio.attrib["src"])
        [name] = names
        assert self.items[page["id"] + "-audio"]["media-type"] == "audio/mpeg"
        rate, pcm = decoded(self.archive.read(posixpath.join(self.folder, name)), "mp3")
        length = len(pcm) / rate
        assert rate == RATE and clips[0][1] == 0 and clips[-1][2] <= length < clips[-1][2] + 0.15
        assert all(begin < end for _, begin, end in clips)
        assert all(end == begin for (_, _, end), (_, begin, _) in pairwise(clips))
        durations = self.meta("media:duration", "#" + page["media-overlay"])
        assert durations == [f"{clips[-1][2]:.3f}s"]
        return clips


@pytest.fixture
def book(steered: Steer) -> tuple[Served, Json]:
    served, _ = steered()
    project = create_project(served, items=ITEMS, title="A <Bük>", seed=3, pause=1, chapter_pause=2, start=True)
    return served, until(served, project, "done")


def test_sentences_are_highlighted_during_playback(book: tuple[Served, Json]) -> None:
    served, project = book
    read = ReadBack(fetch(served, project, "epub"))
    first, second = read.clips(0), read.clips(1)
    assert [text for text, _, _ in first] == ["One: <the> Start", "Hello you & me.", "So", "they", "say!", "Bye."]
    assert [text for text, _, _ in second] == ["Here it ends."]
    timeline = fetch_json(served, project, "timeline")["parts"]
    for clip, part in ((1, 1), (5, 2)):
        assert first[clip][1] == pytest.approx(timeline[part]["start_s"], abs=0.001)
    assert first[5][2] == pytest.approx(timeline[2]["end_s"] + 2, abs=0.001)
    assert [element.text for element in read.package.iter(f"{DC}language")] == ["en"]  # detected from the text
    [total] = read.meta("media:duration")
    assert float(total.removesuffix("s")) == pytest.approx(first[-1][2] + second[-1][2])
    page = read.xml("EPUB/c00001.xhtml")
    blocks = [element.tag.removeprefix(XHTML) for element in page.iter()]
    assert [block for block in blocks if block in ("h1", "p")] == ["h1", "p", "p", "p"]
    assert len(list(page.iter(XHTML + "br"))) == 1
    nav = read.xml(read.item("nav"))
    links = [(link.get("href"), "".join(link.itertext())) for link in nav.iter(XHTML + "a")]
    assert links == [("c00001.xhtml", "One: <the> Start"), ("c00002.xhtml", "Ünd")]
    assert b"." + read.meta("media:active-class")[0].encode() in read.archive.read("EPUB/style.css")


def fetch_json(served: Served, project: Json, path: str) -> dict[str, Any]:
    with served.client() as client:
        return client.get(f"{PROJECTS}/{project['id']}/{path}").json()


def test_read_along_epub_has_its_metadata_and_can_be_imported(book: tuple[Served, Json]) -> None:
    served, project = book
    about = {"author": "Ann & Bo", "narrator": "Zoë", "year": 2026, "language": "ar"}
    settings(served, project, **about)
    with served.client() as client:
        client.put(f"{PROJECTS}/{project['id']}/cover", files={"cover": ("x.png", png())}).raise_for_status()
    data = fetch(served, project, "epub?bitrate=96")
    assert data == fetch(served, project, "epub?bitrate=96")
    read = ReadBack(data)
    dc = {child.tag.removeprefix(DC): child.text or "" for child in read.package[0] if child.tag.startswith(DC)}
    wanted = {"title": "A <Bük>", "creator": "Ann & Bo", "date": "2026", "language": "ar", "contributor": "Zoë"}
    assert dc | wanted == dc and dc["identifier"].startswith("urn:uuid:")
    assert read.meta("media:narrator") == ["Zoë"] and read.meta("role", "#narrator") == ["nrt"]
    assert read.archive.read(read.item("cover-image")) == png()
    spine = next(read.package.iter(f"{OPF}spine"))
    assert spine.get("page-progression-direction") == "rtl"
    assert abs(len(read.archive.read("EPUB/c00002.mp3")) * 8 / 96_000 - read.clips(1)[-1][2]) < 0.2
    with served.client() as client:
        again = client.post(PROJECTS, files={"file": ("x.epub", data)}).json()
        parts = client.get(f"{PROJECTS}/{again['id']}/parts").json()["data"]
    assert (again["title"], again["settings"]["author"], again["settings"]["language"]) == ("A <Bük>", "Ann & Bo", "ar")
    assert [part["chapter"] for part in parts if part["chapter"]] == ["One: <the> Start", "Ünd"]
    assert "Hello you & me." in " ".join(part["text"] for part in parts)


def test_part_without_word_times_is_highlighted_as_a_whole(steered: Steer) -> None:
    served, engine = steered()
    engine.info = replace(engine.info, cannot_align="held in fp8")
    project = create_project(served, items=[{"input": "One here.\n\nTwo there."}, {"input": "Three."}], start=True)
    until(served, project, "done")
    read = ReadBack(fetch(served, project, "epub"))
    assert [text for text, _, _ in read.clips(0)] == ["One here.Two there.", "Three."]


@pytest.mark.parametrize("reason", ["", "held in fp8"])
def test_paragraphs_and_scene_breaks_survive_casting(steered: Steer, reason: str) -> None:
    served, engine = steered()
    engine.info = replace(engine.info, cannot_align=reason)
    text = "“It is from Father,” said Eleanor. “He wants it.”\n\nShe sat.\n\n***\n\n“No,” he said.\n\n“Yes.”"
    project = create_project(served, input=text, speakers=True, start=True)
    until(served, project, "done")
    read = ReadBack(fetch(served, project, "epub"))
    spoken = ["“It is from Father,”", "said Eleanor.", "“He wants it.”", "She sat.", "“No,”", "he said.", "“Yes.”"]
    assert [words for words, _, _ in read.clips(0)] == spoken
    assert "\n\n".join(paragraphs(read)) == text


def paragraphs(read: ReadBack) -> list[str]:
    """The paragraphs of the first chapter, with the scene breaks."""
    page = read.xml("EPUB/c00001.xhtml")
    blocks = [element for element in page.iter() if element.tag in (XHTML + "p", XHTML + "hr")]
    return ["".join(block.itertext()) or "***" for block in blocks]


LONG = [
    "The rain went on for a week. It had filled the barrels, and then the cellar. Nobody counted the days.",
    "Then it stopped.",
    "“It is over, and the barrels are full,” said Eleanor. “We may go out again, all of us, if the bridge is there. I "
    "shall wear the boots.”",
]


CUTS: list[tuple[Json, list[float | None]]] = [
    ({"part_length": 100}, [0.2, None, 0.2, 0.2, None]),
    ({"split_by": "sentence", "pause": 0.1}, [None] * 8),
]


@pytest.mark.parametrize(("cut", "pauses"), CUTS)
def test_paragraph_split_into_parts_stays_one_paragraph(steered: Steer, cut: Json, pauses: list[float | None]) -> None:
    served, _ = steered()
    project = create_project(served, input="\n\n".join(LONG), speakers=True, start=True, **cut)
    until(served, project, "done")
    assert [part["pause"] for part in fetch_json(served, project, "parts")["data"]] == pauses
    assert paragraphs(ReadBack(fetch(served, project, "epub"))) == LONG
    with zipfile.ZipFile(io.BytesIO(fetch(served, project, "zip"))) as archive, served.client() as client:
        files = {"file": ("manifest.csv", archive.read("manifest.csv"))}
        again = client.post(PROJECTS, files=files, data={"start": "true"}).json()
    until(served, again, "done")
    assert paragraphs(ReadBack(fetch(served, again, "epub"))) == LONG


def test_paragraphs_survive_arranging_and_undoing_it(steered: Steer) -> None:
    served, _ = steered()
    whole = "One here. Two here.\n\nThree here."
    items = [{"input": "Zero."}, {"input": whole, "continues": False}, {"input": "Four.", "continues": True}]
    project = create_project(served, items=[*items, {"input": "Five.", "continues": False}], pause=0, start=True)
    until(served, project, "done")
    _, first, second, last = (part["id"] for part in fetch_json(served, project, "parts")["data"])

    def after(verb: str, path: str, **body: object) -> Json:
        with served.client() as client:
            answer = client.request(verb, f"{PROJECTS}/{project['id']}/parts{path}", json=body or None)
            assert answer.status_code == 200
        post_verb(served, project, "speak")
        until(served, project, "done")
        read = ReadBack(fetch(served, project, "epub"))
        return answer.json() | {"now": paragraphs(read)}

    before = ["Zero.", "One here. Two here.", "Three here. Four.", "Five."]
    split = after("POST", f"/{first}/split", text=whole, at=whole.index("Two"))
    assert split["now"] == before
    two = split["data"][1]
    three = after("POST", f"/{two['id']}/split", text=two["text"], at=two["text"].index("Three"))
    assert three["now"] == before, "the second half begins a paragraph"
    assert after("POST", f"/{two['id']}/merge", following=three["data"][1]["id"])["text"] == two["text"]
    assert after("DELETE", f"/{two['id']}")["now"] == ["Zero.", "One here. Four.", "Five."]
    assert after("POST", "/restore", ids=[two["id"]])["now"] == before
    assert after("POST", f"/{two['id']}/merge", following=second)["now"] == before
    assert after("POST", "/restore", ids=[second])["now"] == before
    assert after("POST", f"/{second}/move", position=0)["now"] == ["Four.", *before[:2], "Three here.", "Five."]
    assert after("POST", f"/{second}/move", position=3)["now"] == before
    assert after("DELETE", f"/{first}")["now"] == ["Zero.", "Two here.", "Three here. Four.", "Five."]
    assert after("DELETE", f"/{last}")["now"] == ["Zero.", "Two here.", "Three here. Four."]


def test_unread_title_is_shown_and_its_chapter_stays(book: tuple[Served, Json]) -> None:
    served, project = book
    whole = fetch_json(served, project, "timeline")
    assert settings(served, project, read_titles=False)["settings"]["read_titles"] is False
    timeline = fetch_json(served, project, "timeline")
    assert [part["chapter"] for part in timeline["parts"]] == ["One: <the> Start", "", "Ünd"]
    assert timeline["seconds"] == pytest.approx(whole["seconds"] - whole["parts"][1]["start_s"])
    read = ReadBack(fetch(served, project, "epub"))
    assert read.clips(0)[0][0] == "Hello you & me."
    heading = next(read.xml("EPUB/c00001.xhtml").iter(XHTML + "h1"))
    assert heading.text == "One: <the> Start"


def test_missing_parts_and_invalid_bit_rates_are_refused_without_leftovers(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": "One."}, {"input": "Two.", "voice": "nobody"}])
    url = f"{PROJECTS}/{project['id']}"
    with served.client() as client:
        assert_envelope(client.get(f"{url}/epub"), 409, "partial")
        post_verb(served, project, "speak")
        until(served, project, "incomplete")
        assert_envelope(client.get(f"{url}/epub"), 409, "partial")
        assert_envelope(client.get(f"{url}/epub?bitrate=65"), 400, "bitrate")
        answer = client.get(f"{url}/epub?partial=true")
        assert answer.headers["x-missing-parts"] == "1" and len(ReadBack(answer.content).clips(0)) == 1
    assert not list(served.app.state.studio.library.home.glob("tmp*"))
