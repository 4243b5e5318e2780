"""Rights of one key to the voices and projects of another: private, or shared for reading or editing."""

from __future__ import annotations

import itertools
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from longform.library.project_records import ClaimedPart, NewPart, ProjectSettings
from longform.library.project_repository import ProjectLibrary
from longform.library.replacements import TextReplacement
from manuscript.passages import NewCharacter
from manuscript.untrusted import read_cover
from speechtext.word_times import Timed
from studio.library import NewConsent, VoiceFields
from studio.library.records import DictionaryScope, Pronunciation
from studio.library.take import NewTake, Take
from studio.settings import Settings, read_keys
from tests.browser.hosting.intruder import called
from tests.longform.test_finished import png
from tests.studio.answers import assert_envelope
from tests.studio.clips import WORDS, new_sample, spoken
from tests.studio.conftest import Steered
from tests.studio.fake_engine import FakeEngine
from tests.studio.library.test_former_library import DATA
from tests.studio.server import Served, serve
from tests.studio.sounds import tone, wav

Steer = Callable[..., Steered]
KEYS = read_keys("anna=first-key-of-all,bert=second-key-of-all")
NUMBERS = itertools.count(1)
RANKS = {"private": 0, "read": 1, "edit": 2, "own": 3}


Ids = dict[str, str]
"""Ids of one of Anna's voices, one of her projects and their contents, by path parameter."""


class Call(NamedTuple):
    right: str
    """The right required for the call."""
    body: dict[str, Any] | None = None
    files: dict[str, Any] | None = None


CLIP = {"audio_sample": ("a.wav", spoken())}
PROJECT, PART = "/v1/projects/{project_id}", "/v1/projects/{project_id}/parts/{part_id}"
TAKE, PROOF = "/v1/projects/{project_id}/takes/{take_id}", "/v1/projects/{project_id}/proof"
VOICE, SAMPLE = "/v1/voices/{reference}", "/v1/voices/{reference}/samples/{sample_id}"
ELEVEN, ELEVEN_SPEECH = "/elevenlabs/v1/voices/{voice_id}", "/elevenlabs/v1/text-to-speech/{voice_id}"
CALLS = {
    ("get", PROJECT): Call("read"),
    ("patch", PROJECT): Call("edit", {"title": "Other"}),
    ("delete", PROJECT): Call("own"),
    ("post", f"{PROJECT}/speak"): Call("edit", {}),
    ("post", f"{PROJECT}/undo"): Call("edit", {"parts": [{"ids": ["{part_id}"], "before": {}, "after": {}}]}),
    ("post", f"{PROJECT}/pause"): Call("edit"),
    ("post", f"{PROJECT}/resume"): Call("edit"),
    ("post", f"{PROJECT}/cancel"): Call("edit"),
    ("get", f"{PROJECT}/parts"): Call("read"),
    ("post", f"{PROJECT}/parts"): Call("edit", {"text": "More.", "after": None}),
    ("patch", PART): Call("edit", {"text": "Other."}),
    ("delete", PART): Call("edit"),
    ("post", f"{PROJECT}/parts/restore"): Call("edit", {"ids": ["{gone}"]}),
    ("post", f"{PROJECT}/parts/delete"): Call("edit", {"ids": ["{part_id}"]}),
    ("post", f"{PROJECT}/parts/move"): Call("edit", {"ids": ["{part_id}"], "position": 1}),
    ("post", f"{PART}/split"): Call("edit", {"text": "Two words.", "at": 4}),
    ("post", f"{PART}/merge"): Call("edit", {"following": "{second}"}),
    ("post", f"{PART}/move"): Call("edit", {"position": 1}),
    ("post", f"{PART}/regenerate"): Call("edit", {"text": "Two words.", "start": 0, "end": 10}),
    ("post", f"{PROJECT}/replace"): Call("edit", {"find": "words", "replace": "apples"}),
    ("post", f"{PROJECT}/replace/undo"): Call("edit"),
    ("get", f"{PROJECT}/outline"): Call("read"),
    ("get", f"{PROJECT}/parts/ids"): Call("read"),
    ("get", f"{PROJECT}/feeds"): Call("own"),
    ("get", f"{PROJECT}/cover"): Call("read"),
    ("put", f"{PROJECT}/cover"): Call("edit", files={"cover": ("c.png", png())}),
    ("delete", f"{PROJECT}/cover"): Call("edit"),
    ("get", f"{TAKE}/audio"): Call("read"),
    ("get", f"{TAKE}/timestamps"): Call("read"),
    ("get", f"{PROJECT}/timeline?partial=true"): Call("read"),
    ("get", f"{PROJECT}/audio?partial=true"): Call("read"),
    ("get", f"{PROJECT}/loudness?partial=true"): Call("read"),
    ("get", f"{PROJECT}/chapters?partial=true&format=wav"): Call("read"),
    ("get", f"{PROJECT}/zip?partial=true"): Call("read"),
    ("get", f"{PROJECT}/tracks?partial=true"): Call("read"),
    ("get", f"{PROJECT}/sample?partial=true&format=wav"): Call("read"),
    ("get", f"{PROJECT}/epub?partial=true"): Call("read"),
    ("get", f"{PROJECT}/subtitles?partial=true"): Call("read"),
    ("get", PROOF): Call("read"),
    ("post", PROOF): Call("edit", {}),
    ("delete", PROOF): Call("edit"),
    ("get", f"{PROOF}/spots"): Call("read"),
    ("patch", f"{PROOF}/spots/{{spot_id}}"): Call("edit", {"accepted": True}),
    ("post", f"{PROOF}/notes"): Call("edit", {"take": "{take_id}", "at": 0.0, "note": "Here."}),
    ("post", f"{PROOF}/regenerate"): Call("edit", {"part": "{part_id}"}),
    ("get", f"{PROOF}/report"): Call("read"),
    ("get", f"{PROJECT}/cast"): Call("read"),
    ("post", f"{PROJECT}/cast"): Call("edit", {"name": "Otto"}),
    ("post", f"{PROJECT}/cast/recast"): Call("edit", {}),
    ("get", f"{PROJECT}/cast/lines"): Call("read"),
    ("post", f"{PROJECT}/cast/proposals"): Call("edit", {"ids": ["{part_id}"]}),
    ("patch", f"{PROJECT}/cast/{{character_id}}"): Call("edit", {"name": "Otto"}),
    ("delete", f"{PROJECT}/cast/{{character_id}}"): Call("edit"),
    ("post", f"{PROJECT}/cast/{{character_id}}/merge"): Call("edit", {"into": "{other_id}"}),
    ("patch", f"{PROJECT}/parts"): Call("edit", {"ids": ["{part_id}"], "speed": 1.5}),
    ("get", VOICE): Call("read"),
    ("patch", VOICE): Call("edit", {"description": "Other"}),
    ("delete", VOICE): Call("own"),
    ("get", f"{VOICE}/revisions"): Call("read"),
    ("post", f"{VOICE}/revisions/{{revision}}/restore"): Call("edit"),
    ("post", f"{VOICE}/duplicate"): Call("read", {"name": "A copy {number}"}),
    ("get", f"{VOICE}/export"): Call("read"),
    ("get", f"{VOICE}/preview"): Call("read"),
    ("get", f"{VOICE}/samples"): Call("read"),
    ("post", f"{VOICE}/samples"): Call("edit", {"ref_text": WORDS}, CLIP),
    ("put", f"{VOICE}/samples"): Call("edit", {"samples": ["{sample_id}"]}),
    ("patch", SAMPLE): Call("edit", {"text": "Other words."}),
    ("delete", SAMPLE): Call("edit"),
    ("get", f"{SAMPLE}/audio"): Call("read"),
    ("get", "/v1/audio/voices/{voice_id}"): Call("read"),
    ("delete", "/v1/audio/voices/{voice_id}"): Call("own"),
    ("get", "/model/{voice_id}"): Call("read"),
    ("patch", "/model/{voice_id}"): Call("edit", {"description": "Other"}, {}),
    ("delete", "/model/{voice_id}"): Call("own"),
    ("get", ELEVEN): Call("read"),
    ("get", f"{ELEVEN}/settings"): Call("read"),
    ("get", f"{ELEVEN}/samples/{{sample_id}}/audio"): Call("read"),
    ("post", f"{ELEVEN}/settings/edit"): Call("edit", {"stability": 0.3}),
    ("post", f"{ELEVEN}/edit"): Call("edit", {"description": "Other"}, {"none": ("a", b"")}),
    ("delete", ELEVEN): Call("own"),
    ("get", "/v1/pronunciations?voice={voice_id}"): Call("read"),
    ("get", "/v1/pronunciations/csv?project={project_id}"): Call("read"),
    ("post", "/v1/pronunciations"): Call("edit", {"phrase": "a", "said": "b", "voice": "{voice_id}"}),
    ("put", "/v1/pronunciations/csv?project={project_id}"): Call(
        "edit", files={"file": ("a.csv", b"phrase,said\na,b\n")}
    ),
    ("patch", "/v1/pronunciations/{pronunciation_id}"): Call("edit", {"said": "other"}),
    ("delete", "/v1/pronunciations/{pronunciation_id}"): Call("edit"),
    ("post", "/v1/audio/speech"): Call("read", {"input": "Hello.", "voice": "{voice_id}"}),
    ("post", "/v1/audio/speech/batch"): Call("read", {"items": [{"input": "Hello."}], "voice": "{voice_id}"}),
    ("post", "/v1/tts"): Call("read", {"text": "Hello.", "reference_id": "{voice_id}"}),
    ("get", "/v1/audio/voice_consents/{consent_id}"): Call("read"),
    ("post", "/v1/audio/voice_consents/{consent_id}"): Call("own", {"name": "Other"}),
    ("delete", "/v1/audio/voice_consents/{consent_id}"): Call("own"),
    ("post", "/v1/voices/import"): Call("edit", {"replaces": "{voice_id}"}, {"file": ("a.fishvoice", b"{pack}")}),
    ("delete", "/v1/references/delete"): Call("own", {"reference_id": "{name}"}),
    ("post", "/v1/references/update"): Call("edit", {"old_reference_id": "{name}", "new_reference_id": "New {number}"}),
}
ELSEWHERE = {
    ("post", f"{PROJECT}/update"),  # of a table
    ("post", f"{PROJECT}/feeds"),  # needs STUDIO_SHARE_DAYS
    ("delete", f"{PROJECT}/feeds/{{token}}"),
    ("post", f"{PROJECT}/restore"),  # from the trash, which has its own tests
    ("post", f"{PROJECT}/zip/{{receipt}}"),  # only the caller to whom the zip was sent has its receipt
    ("post", f"{VOICE}/restore"),
    *(("post", f"{ELEVEN_SPEECH}{end}") for end in ("", "/stream", "/with-timestamps", "/stream/with-timestamps")),
}
"""Routes of voices and projects that these calls do not test."""
STATUSES = {("post", PROOF): 202, ("post", f"{PROJECT}/cast/proposals"): 400}
"""The status of some calls: checks run in the background, and this studio has no chat endpoint."""
PARAMETERS = ("{project_id}", "{reference}", "{voice_id}", "{consent_id}", "{pronunciation_id}")


@pytest.fixture(scope="module")
def served(voices_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = str(tmp_path_factory.mktemp("home"))
    settings = Settings(model="test/model", voices=str(voices_folder), home=home, api_keys=KEYS)
    with serve(settings, FakeEngine.start, page=True) as studio:
        yield studio


@pytest.fixture(scope="module")
def anna(served: Served) -> Iterator[httpx.Client]:
    with served.client(headers={"Authorization": "Bearer first-key-of-all"}) as client:
        yield client


@pytest.fixture(scope="module")
def bert(served: Served) -> Iterator[httpx.Client]:
    with served.client(headers={"Authorization": "Bearer second-key-of-all"}) as client:
        yield client


def create_for_anna(served: Served, sharing: str) -> Ids:
    """Create a voice and a project with the same sharing; their ids."""
    library: ProjectLibrary = served.app.state.studio.library
    name = f"Voice {next(NUMBERS)}"
    mine = library.seen_by("owner anna")
    fields = VoiceFields(name=name, sharing=sharing)
    voice = mine.voices.create(fields, [new_sample(), new_sample(spoken(1))], consent=NewConsent("Anna"))
    entry = mine.pronunciations.add(DictionaryScope("voice", voice.id), Pronunciation("tomato", "tomahto", False))
    projects, texts = library.projects, ("Two words.", "Second.", "Third.", "Gone.")
    project = projects.create(
        "owner anna", "Anna's", "txt", [NewPart(text) for text in texts], ProjectSettings(), read_cover(png())
    ).id
    projects.edit(project, "owner anna", sharing=sharing)
    part, second, _, gone = (project_part.id for project_part in projects.parts(project, None))
    projects.pause(project, None, True)
    with library.store.writing() as db:  # in place of the studio's worker
        db.execute("update all_parts set state = 'speaking', lease = 'mine', leased_until = 9e9 where id = ?", [part])
    claimed = ClaimedPart(projects.part(project, None, part), "owner anna", ProjectSettings(), 1, "mine")
    sound = wav(tone(0.5, 44_100), 44_100)
    spoken_part = Take(f"ptake_{part}", 1.0, "anna", 1, part_id=part, recipe=claimed.recipe, work_s=1.0, seconds=0.5)
    spoken_part = replace(spoken_part, text="Two words.", media_type="audio/wav", sample_rate=44_100)
    words = [Timed("Two", 0.0, 0.2), Timed("words.", 0.2, 0.5)]
    library.part_queue.done(claimed, NewTake(spoken_part, [sound], None, words))
    library.arrangement.delete(project, None, [gone])
    library.replacements.replace(project, None, TextReplacement("Third", "Last"))
    spot = library.proofs.add_note(project, None, spoken_part.id, 0.0, "Listen.")
    eva, fred = (library.cast.add(project, None, NewCharacter(name)) for name in ("Eva", "Fred"))
    return {
        "character_id": str(eva.id), "other_id": str(fred.id),
        "project_id": project, "part_id": part, "second": second, "gone": gone, "take_id": spoken_part.id,
        "spot_id": spot.id, "reference": voice.slug, "voice_id": voice.id, "sample_id": voice.samples[0].id,
        "revision": "1", "consent_id": str(voice.consent), "pronunciation_id": entry.id, "name": name,
    }  # fmt: skip


def fill(value: Any, ids: Ids) -> Any:
    if isinstance(value, dict):
        return {name: fill(entry, ids) for name, entry in value.items()}
    if isinstance(value, list):
        return [fill(entry, ids) for entry in value]
    return value.format(**ids, number=next(NUMBERS)) if isinstance(value, str) else value


def send_call(client: httpx.Client, key: tuple[str, str], ids: Ids, pack: bytes) -> httpx.Response:
    (method, path), call = key, CALLS[key]
    body = fill(call.body, ids)
    if call.files is None:
        return client.request(method, path.format(**ids), json=body)
    files = {name: (file, pack if data == b"{pack}" else data) for name, (file, data) in call.files.items()}
    return client.request(method, path.format(**ids), data=body or {}, files=files or None)


@pytest.fixture(scope="module")
def pack(anna: httpx.Client) -> bytes:
    return anna.get("/v1/voices/anna/export").raise_for_status().content


def test_calls_cover_all_endpoints(served: Served) -> None:
    paths = served.app.openapi()["paths"].items()
    offered = {(method, path) for path, methods in paths for method in methods if any(p in path for p in PARAMETERS)}
    assert offered - ELSEWHERE <= {(method, path.partition("?")[0]) for method, path in CALLS}


@pytest.mark.parametrize("sharing", ["private", "read", "edit"])
def test_another_key_has_exactly_the_rights_it_was_given(
    served: Served, anna: httpx.Client, bert: httpx.Client, pack: bytes, sharing: str
) -> None:
    def seen(ids: Ids) -> list[Any]:
        project = f"/v1/projects/{ids['project_id']}"
        paths = (project, f"{project}/parts", f"{project}/proof/spots", f"/v1/voices/{ids['voice_id']}")
        more = (f"/v1/pronunciations?voice={ids['voice_id']}", f"/v1/audio/voice_consents/{ids['consent_id']}")
        return [anna.get(path).raise_for_status().json() for path in (*paths, *more)]

    shared = create_for_anna(served, sharing)
    before = seen(shared)
    for key, call in CALLS.items():
        if RANKS[call.right] > RANKS[sharing]:
            answer = send_call(bert, key, shared, pack)
            if sharing == "private":
                assert answer.status_code == 404 or "there is no voice" in answer.text, (key, answer.text)
                assert "Anna" not in answer.text, key
            else:
                assert answer.status_code == 403, (key, answer.text)
        else:
            answer = send_call(bert, key, create_for_anna(served, sharing), pack)
            assert answer.status_code in (STATUSES.get(key, 200), 201), (key, answer.text)
    for path in ("", "/audio", "/shares"):  # shared with the project, and with nothing else that its owner may do
        assert bert.get(f"/v1/takes/{shared['take_id']}{path}").status_code == 404, path
    assert seen(shared) == before


def test_the_owner_may_make_every_call(served: Served, anna: httpx.Client, pack: bytes) -> None:
    for key, call in CALLS.items():
        if call.right == "own":
            assert send_call(anna, key, create_for_anna(served, "read"), pack).status_code == 200, key


def test_only_the_owner_shares_and_others_see_the_owner(served: Served, anna: httpx.Client, bert: httpx.Client) -> None:
    project = anna.post("/v1/projects", json={"input": "Words."}).raise_for_status().json()
    form = {"name": f"Voice {next(NUMBERS)}", "ref_text": WORDS}
    voice = anna.post("/v1/audio/voices", data=form, files=CLIP).raise_for_status().json()["id"]
    for path, order in ((f"/v1/projects/{project['id']}", ""), (f"/v1/voices/{voice}", "?order=recent")):
        item = anna.get(path).json()
        listing = f"{path.rpartition('/')[0]}{order}"
        assert (item["owner"], item["sharing"], item["right"]) == ("anna", "private", "own")
        assert item["id"] in anna.get(listing).text and item["id"] not in bert.get(listing).text
        for rights in ("read", "edit"):
            assert anna.patch(path, json={"sharing": rights}).status_code == 200
            item = bert.get(path).json()
            assert (item["owner"], item["sharing"], item["right"]) == ("anna", rights, rights)
            assert item["id"] in bert.get(listing).text
            assert_envelope(bert.patch(path, json={"sharing": "edit"}), 403)
        assert_envelope(anna.patch(path, json={"sharing": "all"}), 400, "sharing")
        anna.patch(path, json={"sharing": "private"}).raise_for_status()
        assert item["id"] not in bert.get(listing).text and bert.get(path).status_code == 404
    assert anna.patch("/v1/voices/bert", json={"favourite": False}).json()["owner"] is None, "it came with the studio"
    assert bert.get("/v1/voices/bert").json()["right"] == "edit"
    assert_envelope(bert.delete("/v1/voices/bert"), 403)


def test_lists_omit_private_voices_and_names_are_unique_across_keys(
    served: Served, anna: httpx.Client, bert: httpx.Client
) -> None:
    ids = create_for_anna(served, "private")
    anna.patch(f"/v1/voices/{ids['voice_id']}", json={"tags": ["secret"], "accent": "Hidden"}).raise_for_status()
    paths = (
        "/v1/voices?order=recent",
        "/v1/audio/voices",
        "/v1/audio/voices?legacy=true",
        "/v1/models",
        "/model?page_size=100&sort_by=created_at",
    )
    for path in (
        *paths,
        "/v1/references/list?format=json",
        "/v1/audio/voice_consents?limit=100",
        "/v1/voices?q=secret",
    ):
        listing = anna.get(path).raise_for_status().text
        assert ids["reference"] in listing or ids["name"] in listing or ids["consent_id"] in listing, path
        listing = bert.get(path).raise_for_status().text
        for secret in ("secret", "Hidden", ids["reference"], ids["name"], ids["consent_id"]):
            assert f'"{secret}"' not in listing, path
    assert ids["reference"] not in bert.get("/").text
    form = {"name": ids["name"], "ref_text": WORDS}
    assert_envelope(bert.post("/v1/audio/voices", data=form, files=CLIP), 409, "name")


def test_part_cannot_use_a_voice_unavailable_to_the_project_owner(
    served: Served, anna: httpx.Client, bert: httpx.Client
) -> None:
    ids, form = create_for_anna(served, "edit"), {"name": f"Voice {next(NUMBERS)}", "ref_text": WORDS}
    voice = bert.post("/v1/audio/voices", data=form, files=CLIP).raise_for_status().json()["id"]
    part = PART.format(**ids)
    assert_envelope(bert.patch(part, json={"voice": voice}), 403, "voice")
    assert_envelope(bert.patch(PROJECT.format(**ids), json={"voice": voice}), 403, "voice")
    assert_envelope(anna.patch(part, json={"voice": voice}), 400, "voice")
    bert.patch(f"/v1/voices/{voice}", json={"sharing": "read"}).raise_for_status()
    assert bert.patch(part, json={"voice": voice}).json()["voice"] == voice


def test_editor_undoes_changes_of_private_voices_and_gets_no_other_one(
    served: Served, anna: httpx.Client, bert: httpx.Client
) -> None:
    ids, secret = create_for_anna(served, "edit"), create_for_anna(served, "private")["reference"]
    project, part = PROJECT.format(**ids), PART.format(**ids)

    def undo(replaced: Any) -> Any:
        undone = bert.post(f"{project}/undo", json=replaced).raise_for_status().json()
        now = anna.get(project).json()["settings"]
        voices = [now["voice"], anna.get(f"{project}/parts").json()["data"][0]["voice"]]
        return undone["undone"], undone["left"], now["pause"], voices

    pause = anna.get(project).json()["settings"]["pause"]
    settings = bert.patch(project, json={"voice": "bert", "pause": 3}).json()["replaced"]
    direction = {"ids": [ids["part_id"]], "voice": "bert"}
    line = bert.patch(f"{project}/parts", json=direction).json()["replaced"]
    person = {"id": ids["character_id"], "before": f" {secret}@1 ", "after": None}
    settings["settings"]["before"]["voice"] = secret
    line["parts"][0]["before"]["voice"] = secret.upper()
    assert undo(settings) == (1, ["voice"], pause, ["bert", "bert"])
    everything = line | {"characters": [person]}
    assert undo(everything) == (0, [ids["part_id"], ids["character_id"]], pause, ["bert", "bert"])
    table = {"file": ("lines.csv", f"id,text,voice\n1,Some words.,{secret}@1\n")}
    assert_envelope(bert.post(f"{project}/update", files=table), 400, "voice")
    anna.patch(project, json={"voice": secret}).raise_for_status()
    anna.patch(part, json={"voice": secret}).raise_for_status()
    settings = bert.patch(project, json={"voice": "bert", "pause": 3}).json()["replaced"]
    assert undo(settings) == (2, [], pause, [secret, secret])
    line = bert.patch(f"{project}/parts", json=direction).json()["replaced"]
    assert undo(line) == (1, [], pause, [secret, secret])
    line = bert.patch(part, json={"voice": "bert"}).json()["replaced"]
    assert undo(line) == (1, [], pause, [secret, secret])


def test_an_editor_may_undo_a_deletion_but_not_empty_the_trash(
    served: Served, anna: httpx.Client, bert: httpx.Client
) -> None:
    ids = create_for_anna(served, "edit")
    character = f"/v1/projects/{ids['project_id']}/cast/{ids['character_id']}"
    bert.delete(character).raise_for_status()
    items = {"items": [{"kind": "character", "id": ids["character_id"]}, {"kind": "part", "id": ids["gone"]}]}
    assert ids["gone"] in bert.get("/v1/trash?limit=200").text
    assert bert.delete(f"/v1/trash?ids={ids['character_id']},{ids['gone']}").json()["count"] == 0
    assert len(bert.post("/v1/trash/restore", json=items).json()["data"]) == 2
    bert.delete(character).raise_for_status()
    anna.patch(f"/v1/projects/{ids['project_id']}", json={"sharing": "read"}).raise_for_status()
    assert_envelope(bert.post("/v1/trash/restore", json=items), 404, "items")
    assert anna.post("/v1/trash/restore", json=items).status_code == 200


def test_gradio_endpoints_require_the_same_rights(served: Served, anna: httpx.Client, bert: httpx.Client) -> None:
    for sharing, rank in (("private", 0), ("read", 1), ("edit", 2)):
        ids = create_for_anna(served, sharing)
        slug, project = ids["reference"], ids["project_id"]
        calls: list[tuple[str, list[Any], int]] = [
            ("/voice_get", [slug], 1), ("/voice_export", [slug], 1), ("/voice_preview", [slug, 0], 1),
            ("/batch_status", [project], 1), ("/voice_update", [slug, None, "Other", None, None, None, None, None], 2),
            ("/voice_delete", [slug], 3),
        ]  # fmt: skip
        for name, data, needed in calls:
            answer = called(bert, name, data)
            assert answer.startswith("event: complete" if rank >= needed else "event: error"), (sharing, name, answer)
        assert (slug in called(bert, "/voices_list", [])) == (rank > 0)
        assert slug in called(anna, "/voices_list", [])


def test_voices_created_without_keys_go_to_the_first_key_once(steered: Steer, tmp_path: Path) -> None:
    home = {"home": str(tmp_path)}
    form, first = {"name": "Old", "ref_text": WORDS}, read_keys("anna=first-key-of-all,bert=second-key-of-all")
    open_to_all, _ = steered(**home)
    with open_to_all.client() as client:
        client.post("/v1/audio/voices", data=form, files=CLIP).raise_for_status()
        fields = {"name": (None, "Ann"), "language": (None, "en")}
        consent = client.post("/v1/audio/voice_consents", files=fields).json()["id"]
        assert client.patch("/v1/voices/old", json={"favourite": True}).json()["right"] == "own"
    for keys in (first, read_keys("bert=second-key-of-all,anna=first-key-of-all")):
        served, _ = steered(**home, api_keys=keys)
        anna, bert = (
            served.client(headers={"Authorization": f"Bearer {key}-key-of-all"}) for key in ("first", "second")
        )
        with anna, bert:
            old = anna.get("/v1/voices/old").json()
            assert (old["owner"], old["favourite"]) == ("anna", True) and bert.get("/v1/voices/old").status_code == 404
            assert anna.get(f"/v1/audio/voice_consents/{consent}").status_code == 200
            assert bert.get(f"/v1/audio/voice_consents/{consent}").status_code == 404
            rights = {client.get("/v1/voices/bert").json()["right"]: client for client in (anna, bert)}
            assert rights["own"] is (anna if keys == first else bert), "bundled voices are the first key's"
    [entry] = served.app.state.studio.library.audit.entries(event="library.adopt")
    assert (entry.subject, entry.details) == ("owner anna", {"takes": 0, "projects": 0, "voices": 1})


def test_voices_of_an_earlier_version_stay_editable_with_every_key(steered: Steer, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.unpack_archive(DATA / "library.zip", home)
    with closing(sqlite3.connect(home / "library.db")) as db, db:
        db.execute("insert or ignore into favourites select id, '' from voices")
    steered(home=str(home))  # the first start has no keys
    served, _ = steered(home=str(home), api_keys=KEYS)
    anna, bert = (served.client(headers={"Authorization": f"Bearer {key}-key-of-all"}) for key in ("first", "second"))
    with anna, bert:
        for client, facts in ((anna, ("own", True)), (bert, ("edit", False))):
            voices = client.get("/v1/voices").json()["data"]
            assert {(voice["right"], voice["favourite"]) for voice in voices} == {facts}
        assert anna.get("/v1/projects").json()["data"] and not bert.get("/v1/projects").json()["data"]
