"""Words are spoken as in a dictionary: whole words, the narrowest entry, everywhere that speaks; CSV in and out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from speechtext.dictionary import Dictionary
from studio.library.records import MAX_ENTRIES, Pronunciation
from studio.settings import read_keys
from tests.longform.test_projects import PROJECTS, create_project, parts_of, until
from tests.studio.answers import assert_envelope
from tests.studio.api.test_ownership import asking
from tests.studio.conftest import Steered
from tests.studio.speech.test_reading_api import texts

PATH = "/v1/pronunciations"
SPEECH = "/v1/audio/speech"
Steer = Callable[..., Steered]
Json = dict[str, Any]


@pytest.mark.parametrize(
    ("entries", "text", "read"),
    [
        ([("GIF", "jif")], "A GIF, gif's (gif) and GIFs; not-gif.", "A jif, jif's (jif) and GIFs; not-jif."),
        ([("New York", "N Y"), ("New", "nu")], "New\n york is new.", "N Y is nu."),
        ([("C++", "see plus"), (".NET", "dot net")], "C++, C, .NET and .Network", "see plus, C, dot net and .Network"),
        ([("live", "lyve")], "[live] live <|live|> I'm live", "[live] lyve <|live|> I'm lyve"),
        ([("東京", "とうきょう"), ("Ærø", "Airu")], "私は東京にいる。ÆRØ, Ærøs", "私はとうきょうにいる。Airu, Ærøs"),
        ([("a b", "x"), ("b c", "y")], "a b c b c a  b", "x c y x"),
        ([("naïve", "ny eve")], "Naïve NAÏVE naïvely", "ny eve ny eve naïvely"),
        ([("O'Brien", "oh bryan")], "O’Brien, OʼBrien and O'Brien’s ‘x’", "oh bryan, oh bryan and oh bryan’s ‘x’"),
        ([("Hawai‘i", "ha vye ee")], "Hawaiʻi or Hawai'i", "ha vye ee or ha vye ee"),
    ],
)  # fmt: skip
def test_longest_matching_entry_replaces_whole_words(entries: list[tuple[str, str]], text: str, read: str) -> None:
    assert Dictionary(Pronunciation(*fields) for fields in entries).read(text) == read


def test_case_matters_on_request_and_the_first_entry_wins() -> None:
    entries = [Pronunciation("US", "U S", True), Pronunciation("nice", "neece"), Pronunciation("Nice", "nyce")]
    assert Dictionary(entries).read("US us Us Nice") == "U S us Us neece"
    signs = [Pronunciation("=us", "equals us"), Pronunciation("us", "u s", True)]
    assert Dictionary(signs).read("=us us US") == "equals us u s US"


def test_large_dictionary_reads_a_long_text_quickly() -> None:
    """Trying each of its phrases, which begin alike, at each position would take half a minute."""
    many = Dictionary(Pronunciation(f"word {number}", "x") for number in range(MAX_ENTRIES))
    assert many.read("sword 7 word 1999 words " * 4000) == "sword 7 x words " * 4000


def entry(client: httpx.Client, **body: object) -> Json:
    answer = client.post(PATH, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def voice_id(client: httpx.Client, name: str) -> str:
    return next(voice["id"] for voice in client.get("/v1/voices").json()["data"] if voice["slug"] == name)


def test_most_specific_entry_applies_in_speech_dialogue_and_reading(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client:
        everybodys = entry(client, phrase="GIF", said="jif")
        berts = entry(client, phrase="gif", said="geef", voice="bert")
        assert (everybodys["voice"], berts["voice"]) == (None, voice_id(client, "bert"))
        client.post(SPEECH, json={"input": "A GIF.", "voice": "anna"})
        client.post(SPEECH, json={"input": "A GIF.", "voice": "bert"})
        client.post(SPEECH, json={"input": "A GIF.", "voice": "bert", "dictionary": False})
        client.post(SPEECH, json={"input": "Gif.\nAnna: Gif.\nB: Gif.", "voice": "anna", "cast": {"b": "bert"}})
        assert texts(engine) == ["A jif.", "A geef.", "A GIF.", "jif.", "jif.", "geef."]
        for body, read in (({}, "A jif"), ({"voice": "bert"}, "A geef"), ({"dictionary": False}, "A GIF")):
            reading = client.post(f"{SPEECH}/reading", json={"input": "A GIF"} | body).json()
            assert (reading["text"], reading["changed"]) == (read, read != "A GIF")
        assert client.post(f"{SPEECH}/reading", json={"input": "Zoe: Gif", "cast": {}}).json()["text"] == "Zoe: jif"


def test_entries_match_composed_and_decomposed_letters(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client:
        entry(client, phrase="nai\u0308ve", said="ny eve")
        for written in ("So na\u00efve, \u00e9t\u00e9.", "So nai\u0308ve, e\u0301te\u0301."):
            answer = client.post(SPEECH, json={"input": written})
            take = client.get(f"/v1/takes/{answer.headers['x-request-id']}").json()
            assert (take["text"], take["parameters"]["read_as"]) == (written, "So ny eve, \u00e9t\u00e9.")
        reading = client.post(f"{SPEECH}/reading", json={"input": "E\u0301te\u0301"}).json()
        assert (reading["text"], reading["changed"]) == ("E\u0301te\u0301", False)
    assert texts(engine) == ["So ny eve, \u00e9t\u00e9."] * 2


def test_take_is_repeated_with_the_words_as_read(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client:
        entry(client, phrase="Rio", said="Rio de Janeiro")
        first = client.post(SPEECH, json={"input": "To Rio"})
        take = client.get(f"/v1/takes/{first.headers['x-request-id']}").json()
        assert take["text"] == "To Rio" and take["parameters"]["read_as"] == "To Rio de Janeiro"
        client.post(SPEECH, json=take["request"])
    assert texts(engine) == ["To Rio de Janeiro"] * 2


def test_changed_project_entries_make_parts_with_their_words_stale(steered: Steer) -> None:
    served, engine = steered()
    project = create_project(served, items=[{"input": "A GIF here"}, {"input": "Nothing"}], start=True)
    until(served, project, "done")
    with served.client() as client:
        mine = entry(client, phrase="gif", said="jif", project=project["id"])
        assert [part["state"] for part in parts_of(served, project)] == ["stale", "done"]
        assert parts_of(served, project)[0]["takes"][0]["stale"]
        client.post(f"{PROJECTS}/{project['id']}/speak", json={})
        until(served, project, "done")
        assert texts(engine)[-1] == "A jif here"
        client.patch(f"{PATH}/{mine['id']}", json={"said": "geef"})
        assert parts_of(served, project)[0]["state"] == "stale"
        client.patch(f"{PATH}/{mine['id']}", json={"said": "jif"})
        assert parts_of(served, project)[0]["state"] == "done"
        assert "pronunciations" not in client.get(f"{PROJECTS}/{project['id']}").json()["settings"]
        client.delete(f"{PROJECTS}/{project['id']}")
        assert_envelope(client.patch(f"{PATH}/{mine['id']}", json={"said": "x"}), 404)


def test_csv_is_exported_as_imported_and_errors_name_the_line(steered: Steer) -> None:
    served, _ = steered()

    def put(data: bytes, query: str = "") -> httpx.Response:
        with served.client() as client:
            return client.put(f"{PATH}/csv{query}", files={"file": ("x.csv", data)})

    table = 'phrase,said,match_case\r\n"a, b","say ""a""",\r\nUS,U S,yes\r\n'
    assert put(table.encode()).json() == {"object": "pronunciations.imported", "imported": 2, "total": 2}
    with served.client() as client:
        assert client.get(f"{PATH}/csv").text == table
        entry = client.post(PATH, json={"phrase": "-ish", "said": "=ish"})
        written = client.get(f"{PATH}/csv")
        assert "\r\n'-ish,'=ish,\r\n" in written.text and put(written.content).json()["total"] == 3
        assert client.delete(f"{PATH}/{entry.json()['id']}").status_code == 200
        assert client.get(f"{PATH}/csv?voice=anna").text == "phrase,said,match_case\r\n"
    for data, why in (
        (b"word,said\nx,y", "line 1: the first line must name the columns"),
        (b"phrase,said\nx,y\nz,\n", "line 3: said is blank"),
        (b"phrase;said\n[x];y\n", "line 2: phrase may not contain"),
        (b"phrase,said\nx,<|im_end|>\n", "line 2: said may have no control tokens"),
        (b"phrase,said,match_case\nx,y,perhaps", "line 2: match_case must be yes, no"),
        (b"phrase,said\nx,\xff", "line 2: this is not UTF-8"),
        (b"phrase,said\n", "no entries"),
        (b"phrase,said\n" + b"".join(b"w%d,x\n" % number for number in range(2001)), "2001 entries; at most 2000"),
        (b"phrase,said\n" + bytes(1 << 20), "at most 1048576"),
    ):
        refused = put(data)
        assert_envelope(refused, 400, "file")
        assert why in refused.json()["error"]["message"]
    many = b"phrase,said\n" + b"".join(b"w%d,x\n" % number for number in range(1999))
    assert_envelope(put(many), 400, "phrase")
    assert put(b"phrase\tsaid\nus\tuz\nUS\tyou ess\n").json()["total"] == 3
    assert put(b"phrase,said\nx,y\n", "?replace=true").json()["total"] == 1
    with served.client() as client:
        files = {"file": ("x.csv", b"phrase,said\nx,z\n")}
        assert_envelope(client.put(f"{PATH}/csv", data={"project": "proj_1"}, files=files), 400, "project")
        assert client.get(f"{PATH}/csv").text == "phrase,said,match_case\r\nx,y,\r\n", "the global one is as it was"


@pytest.mark.parametrize("replace", ["false", "true"])
def test_csv_import_updates_entries_for_the_same_phrases(steered: Steer, replace: str) -> None:
    served, _ = steered()
    with served.client() as client:
        for phrase in ("GIF", "SQL"):
            entry(client, phrase=phrase, said="x")
        before = {row["phrase"]: row for row in client.get(PATH).json()["data"]}
        table = b"phrase,said\ngif,jif\nNew,nu\nnew,nyoo\n"
        assert (
            client.put(f"{PATH}/csv", params={"replace": replace}, files={"file": ("x.csv", table)}).status_code == 200
        )
        after = {row["phrase"]: row for row in client.get(PATH).json()["data"]}
    assert after["gif"] == before["GIF"] | {"phrase": "gif", "said": "jif"}
    assert after["new"]["said"] == "nyoo" and "New" not in after
    assert after.get("SQL") == (None if replace == "true" else before["SQL"])


def test_invalid_entries_are_refused(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        entry(client, phrase="GIF", said="jif")
        for body, field in (
            ({"phrase": "gif", "said": "x"}, "phrase"),
            ({"phrase": "...", "said": "x"}, "phrase"),
            ({"phrase": "x" * 101, "said": "x"}, "phrase"),
            ({"phrase": "x", "said": " "}, "said"),
            ({"phrase": "x", "said": "y", "voice": "nobody"}, "voice"),
            ({"phrase": "x", "said": "y", "voice": "anna", "project": "proj_1"}, "project"),
        ):
            assert_envelope(client.post(PATH, json=body), 400, field)
        assert_envelope(client.post(PATH, json={"phrase": "x", "said": "y", "project": "proj_1"}), 404, "project")
        other = entry(client, phrase="png", said="ping")
        assert_envelope(client.patch(f"{PATH}/{other['id']}", json={"phrase": "Gif"}), 400, "phrase")
        late = {"said": "peng", "before": {"said": "pong", "match_case": False}}
        assert_envelope(client.patch(f"{PATH}/{other['id']}", json=late), 412, "said")
        again = {"said": " ping", "before": {"said": "pong"}}  # saved already, and the answer did not arrive
        assert client.patch(f"{PATH}/{other['id']}", json=again).json() == other
        assert client.get(PATH).json()["data"][1] == other
        assert client.delete(f"{PATH}/{other['id']}").json()["deleted"] is True
        assert_envelope(client.delete(f"{PATH}/{other['id']}"), 404, "pronunciation")


def test_entries_of_another_keys_project_return_404(steered: Steer) -> None:
    served, _ = steered(api_keys=read_keys("one-key-is-long,two-keys-are-longer"))

    with asking(served, "one-key-is-long") as mine, asking(served, "two-keys-are-longer") as theirs:
        project = mine.post(PROJECTS, json={"input": "Hi."}).json()["id"]
        hidden = entry(mine, phrase="x", said="y", project=project)["id"]
        for answer in (
            theirs.get(PATH, params={"project": project}),
            theirs.get(f"{PATH}/csv", params={"project": project}),
            theirs.patch(f"{PATH}/{hidden}", json={"said": "z"}),
            theirs.delete(f"{PATH}/{hidden}"),
            theirs.post(PATH, json={"phrase": "a", "said": "b", "project": project}),
        ):
            assert answer.status_code == 404
        assert mine.get(PATH, params={"project": project}).json()["data"][0]["said"] == "y"
