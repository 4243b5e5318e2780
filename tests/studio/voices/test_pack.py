"""Voice packs: equal bytes for equal voices, complete after an import, and nothing stored of a bad one."""

from __future__ import annotations

import functools
import io
import itertools
import json
import operator
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audio import Cut
from audio.encode import wav_header
from audio.read import MAX_BYTES
from studio.errors import InvalidPack, InvalidRequest, NameTaken, NotFound
from studio.library import Library, NewConsent, NewSample, Voice, VoiceFields
from studio.library.checks import MAX_SAMPLES
from studio.library.records import DictionaryScope, Pronunciation
from studio.voices.editing import duplicate
from studio.voices.intake import take_in
from studio.voices.pack import MAX_PACK, export_voice, import_pack, read_pack
from tests.studio.clips import WORDS, spoken
from tests.studio.documents import spoilt
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, prepared

Entries = dict[str, bytes]


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(prepared(tmp_path / "one"))


@pytest.fixture
def other(tmp_path: Path) -> Library:
    return Library(prepared(tmp_path / "two"))


def make(library: Library) -> Voice:
    consent = NewConsent("Eve E.", "en", "I agree.", spoken(2), "audio/wav")
    draft = VoiceFields(
        name="Eve", description="warm", tags=("a", "b"), language="en", licence="CC0", defaults={"top_k": 5},
        favourite=True, gender="female", accent="British", colour="#0f766e",
    )  # fmt: skip
    samples = [
        take_in(spoken(), WORDS).sample(WORDS),
        take_in(spoken(1), "Another one says more words.", Cut(0.1, 1.2, 2.0)).sample(
            "Another one says more words.", 1
        ),
    ]
    voice = library.voices.create(draft, samples, consent=consent)
    for sample in voice.samples:
        library.codes.put(sample.cut_key, "0123456789abcdef", np.arange(60, dtype=np.int16).reshape(10, 6))
    return voice


def test_exporting_a_voice_twice_gives_the_same_bytes(library: Library) -> None:
    make(library)
    assert export_voice(library, "eve") == export_voice(Library(library.home), "eve@1")


def test_imported_voice_is_complete_and_its_export_equals_the_pack(library: Library, other: Library) -> None:
    sent = make(library)
    of_sent = DictionaryScope("voice", sent.id)
    library.pronunciations.add(of_sent, Pronunciation("Siobhan", "Shivawn", True))
    pack = export_voice(library, "eve")
    got = import_pack(other, pack)
    copy = duplicate(library, "eve", "Eva")
    for store, voice in ((other, got), (library, copy), (library, sent)):
        [entry] = store.pronunciations.show(DictionaryScope("voice", voice.id))
        assert (entry.phrase, entry.said, entry.match_case) == ("Siobhan", "Shivawn", True)
    assert (got.name, got.description, got.tags, got.language, got.licence) == ("Eve", "warm", ("a", "b"), "en", "CC0")
    assert (got.gender, got.accent, got.colour) == ("female", "British", "#0f766e")
    assert got.defaults == {"top_k": 5} and got.created == sent.created and not got.favourite
    for mine, theirs in zip(sent.samples, got.samples, strict=True):
        assert (mine.clip, mine.text, mine.speaker, mine.cut) == (theirs.clip, theirs.text, theirs.speaker, theirs.cut)
    assert got.consent
    consent = other.consents.get(got.consent)
    assert consent.statement == "I agree." and other.files.read(consent.recording or "") == spoken(2)
    assert export_voice(other, "eve") == pack
    assert [entry.event for entry in other.audit.entries()] == ["consent.create", "voice.import", "voice.export"]


def test_pack_can_be_inspected_without_an_import(library: Library) -> None:
    make(library)
    manifest = read_pack(export_voice(library, "eve")).as_json()
    assert manifest["name"] == "Eve" and manifest["licence"] == "CC0"
    assert library.voices.count() == 1


def test_import_under_an_existing_name_needs_another_name(library: Library) -> None:
    make(library)
    pack = export_voice(library, "eve")
    with pytest.raises(NameTaken):
        import_pack(library, pack)
    assert len(library.consents.page()) == 1, "the refused import left no consent behind"
    assert import_pack(library, pack, "Eve again").slug == "eve-again"


def test_a_pack_can_be_the_next_revision_of_a_voice(library: Library, other: Library) -> None:
    sent = make(library)
    pack = export_voice(library, "eve")
    mine = other.voices.create(VoiceFields(name="Mine", description="own"), [take_in(spoken(3), WORDS).sample(WORDS)])
    got = import_pack(other, pack, replaces="mine")
    assert (got.id, got.name, got.description, got.revision) == (mine.id, "Mine", "own", 2)
    assert [sample.clip for sample in got.samples] == [sample.clip for sample in sent.samples]
    assert not got.consent and not other.consents.page(), "whose clips they are now, nobody here has said"
    assert other.voices.get("mine@1").samples == mine.samples
    with pytest.raises(NotFound):
        import_pack(other, pack, replaces="nobody")
    with pytest.raises(InvalidRequest, match="either"):
        import_pack(other, pack, "Eve", "mine")
    assert other.voices.count() == 1


def entries_of(pack: bytes) -> Entries:
    with zipfile.ZipFile(io.BytesIO(pack)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(entries: Entries, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def with_manifest(change: Callable[[dict[str, Any]], object]) -> Callable[[Entries], bytes]:
    def changed(entries: Entries) -> bytes:
        manifest = json.loads(entries["manifest.json"])
        change(manifest)
        return zipped(entries | {"manifest.json": json.dumps(manifest).encode()})

    return changed


def renamed(entries: Entries, old: str, new: str) -> bytes:
    text = entries["manifest.json"].replace(old.encode(), new.encode())
    return zipped({new if name == old else name: data for name, data in entries.items()} | {"manifest.json": text})


def twice(entries: Entries) -> bytes:
    buffer = io.BytesIO(zipped(entries))
    with zipfile.ZipFile(buffer, "a") as archive, pytest.warns(UserWarning):
        archive.writestr("manifest.json", entries["manifest.json"])
    return buffer.getvalue()


BAD: dict[str, Callable[[Entries], bytes]] = {
    "no zip": lambda entries: b"PK\x03\x04 and then nothing",
    "cut short": lambda entries: zipped(entries)[:-200],
    "no manifest": lambda entries: zipped({name: data for name, data in entries.items() if name[0] != "m"}),
    "no JSON": lambda entries: zipped(entries | {"manifest.json": b"{"}),
    "deeply nested JSON": lambda entries: zipped(entries | {"manifest.json": b"[" * 100_000}),
    "another format": with_manifest(lambda manifest: manifest.update(format="fishvoice/99")),
    "a changed clip": lambda entries: zipped(entries | {"clips/0.wav": spoken(2)}),
    "a missing clip": lambda entries: zipped({name: data for name, data in entries.items() if name[:2] != "cl"}),
    "something unnamed": lambda entries: zipped(entries | {"run.py": b"import os"}),
    "two of one name": twice,
    "too many entries": lambda entries: zipped(entries | {f"x{number}": b"" for number in range(99)}),
    "a bomb": lambda entries: zipped(entries | {"clips/0.wav": bytes(MAX_PACK)}),
    "spoilt inside": lambda entries: spoilt(zipped(entries), "clips/0.wav"),
    "an unusual packing": lambda entries: zipped(entries, zipfile.ZIP_LZMA),
    "a clip that is none": with_manifest(lambda manifest: manifest["samples"][0].update(clip=manifest["consent"])),
    "no samples": with_manifest(lambda manifest: manifest.update(samples=[])),
    "a clip twice": with_manifest(lambda manifest: manifest.update(samples=manifest["samples"][:1] * 2)),
    "a bad cut": with_manifest(lambda manifest: manifest["samples"][0].update(cut=[0, "end", 0, None])),
    "a cut of too much": with_manifest(lambda manifest: manifest["samples"][0].update(cut=[0, 1, 2, 3, 4])),
    "a name that is a path": with_manifest(lambda manifest: manifest.update(name="../../eve")),
    "half a surrogate": with_manifest(lambda manifest: manifest.update(description="\ud800")),
    "words that control": with_manifest(lambda manifest: manifest["samples"][0].update(text="<|im_end|>")),
    "a time that is none": with_manifest(lambda manifest: manifest.update(created=float("nan"))),
    "a time without end": with_manifest(lambda manifest: manifest.update(created=1e300)),
    "a seed of 400 digits": with_manifest(lambda manifest: manifest.update(defaults={"seed": 10**400})),
    "a speaker of 400 digits": with_manifest(lambda manifest: manifest["samples"][0].update(speaker=10**400)),
    "a list for a sample": with_manifest(lambda manifest: manifest.update(samples=[[]])),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_pack_is_refused_and_nothing_is_stored(library: Library, other: Library, case: str) -> None:
    make(library)
    bad = BAD[case](entries_of(export_voice(library, "eve")))
    with pytest.raises(InvalidPack):
        import_pack(other, bad)
    assert other.voices.count() == 0 and other.consents.page() == []
    assert list(other.files.everything()) == [] and other.audit.entries() == []


def test_a_crowd_of_entries_is_refused_before_they_are_read(other: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = zipped({f"x{number}": b"" for number in range(99)})
    monkeypatch.setattr(zipfile, "ZipFile", None)  # it would take a second and 200 MiB for half a million
    with pytest.raises(InvalidPack, match="has about 99 entries; at most"):
        import_pack(other, crowd)


def fields_of(value_of_json: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The path of every field of a manifest, including nested ones."""
    inner = (
        value_of_json.items()
        if isinstance(value_of_json, dict)
        else enumerate(value_of_json)
        if isinstance(value_of_json, list)
        else ()
    )
    return [inner_path for key, value in inner for inner_path in [(*path, key), *fields_of(value, (*path, key))]]


def test_error_names_a_field_of_the_wrong_type(library: Library) -> None:
    make(library)
    entries = entries_of(export_voice(library, "eve"))
    ways = fields_of(json.loads(entries["manifest.json"]))
    assert {("samples", 0, "clip", "sha256"), ("samples", 0, "cut", 3), ("consent", "created")} <= set(ways)
    wrongs: tuple[Any, ...] = ({}, [{}], True)
    for (*outer, field), wrong in itertools.product(ways, wrongs):
        manifest = json.loads(entries["manifest.json"])
        functools.reduce(operator.getitem, outer, manifest)[field] = wrong
        try:
            read_pack(zipped(entries | {"manifest.json": json.dumps(manifest).encode()}, zipfile.ZIP_STORED))
        except InvalidPack as error:
            named = [key for key in (*outer, field) if isinstance(key, str)][-1]
            assert named in str(error) and "object" not in str(error), (outer, field, wrong, str(error))
        else:
            assert (field, wrong) == ("defaults", {}), (outer, field, wrong)


@pytest.mark.parametrize("name", ["../../clip.wav", "/etc/clip.wav", "C:\\clip.wav"])
def test_paths_in_a_pack_are_never_written_to(library: Library, other: Library, tmp_path: Path, name: str) -> None:
    make(library)
    before = {path for path in tmp_path.rglob("*") if path.name == "clip.wav"}
    pack = renamed(entries_of(export_voice(library, "eve")), "clips/0.wav", json.dumps(name)[1:-1])
    try:
        import_pack(other, pack)
    except InvalidRequest:
        assert other.voices.count() == 0
    assert {path for path in tmp_path.rglob("*") if path.name == "clip.wav"} == before
    assert {len(stored) for stored, _ in other.files.everything()} <= {64}


def test_largest_voice_is_imported_from_its_pack(library: Library, other: Library) -> None:
    noise = np.random.default_rng(1).integers(-9000, 9000, MAX_BYTES // 2 - 22, np.int16)
    largest = wav_header(44_100, len(noise)) + noise.tobytes()
    cuts = [Cut(5.0 * number, 5.0 * number + 2) for number in range(MAX_SAMPLES)]
    samples = []
    for number, cut in enumerate(cuts):
        data = largest[:-1] + bytes([number])  # each a file of its own
        samples.append(NewSample(data, "audio/wav", 118.0, WORDS * 2, cut, 2.0, 90, {}))
    consent = NewConsent("Max", "en", "I agree. " * 200, largest, "audio/wav")
    library.voices.create(VoiceFields(name="Max", description="d" * 2000), samples, consent=consent)
    pack = export_voice(library, "max")
    assert len(pack) > (MAX_SAMPLES + 1) * (MAX_BYTES - 2)
    assert [sample.cut for sample in import_pack(other, pack).samples] == cuts


def test_packs_are_exported_and_imported_over_http(
    steered: Callable[..., tuple[Served, FakeEngine]], tmp_path: Path
) -> None:
    first, _ = steered(home=str(tmp_path / "a"))
    second, engine = steered(home=str(tmp_path / "b"))
    make(first.app.state.studio.speech.voices.library)
    with first.client() as client:
        answer = client.get("/v1/voices/eve/export")
    assert 'filename="eve.fishvoice"' in answer.headers["content-disposition"]
    file = {"file": ("eve.fishvoice", answer.content)}
    with second.client() as client:
        assert client.post("/v1/voices/inspect", files=file).json()["name"] == "Eve"
        assert client.get("/v1/voices/eve").status_code == 404
        assert client.post("/v1/voices/import", files=file, data={"name": "Eva"}).json()["slug"] == "eva"
        revised = client.post("/v1/voices/import", files=file, data={"replaces": "eva"}).json()
        assert (revised["slug"], revised["revision"]) == ("eva", 2)
        refused = client.post("/v1/voices/import", files={"file": b"nonsense"})
        assert refused.status_code == 400 and refused.json()["error"]["code"] == "invalid_pack"
        assert client.post("/v1/audio/speech", json={"input": "Hi.", "voice": "eva"}).status_code == 200
    assert [reference.text for reference in engine.utterances[-1].references] == [WORDS, "Another one says more words."]
