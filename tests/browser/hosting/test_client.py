"""gradio_client through the named endpoints: the API's speech, complete and streamed, and readable error messages."""

from __future__ import annotations

import base64
import io
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError

from studio.work import WorkQueue
from tests.studio.server import Served
from tests.studio.sounds import tone, wav

FRAMES = 20
WORDS = "The same words."


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[Client]:
    client = Client(served.url, verbose=False)
    yield client
    client.close()


def speech_of_api(served: Served, **fields: object) -> bytes:
    body = {"input": WORDS, "seed": 7, "max_new_tokens": FRAMES} | fields
    return httpx.post(f"{served.url}/v1/audio/speech", json=body, timeout=60).raise_for_status().content


def samples(file: str) -> bytes:
    with wave.open(file) as wav_file:
        assert wav_file.getnframes() == FRAMES * 2048
        return wav_file.readframes(wav_file.getnframes())


def test_the_same_seed_gives_the_same_speech_as_the_api(served: Served, client: Client) -> None:
    file, take = client.predict(text=WORDS, voice="bert", seed=7, max_new_tokens=FRAMES, api_name="/synthesize")
    assert samples(file) == speech_of_api(served, voice="bert", response_format="wav")[44:]
    assert (take["seed"], take["voice"], take["frames"], take["finish_reason"]) == (7, "bert", FRAMES, "length")


def test_only_text_is_required(client: Client) -> None:
    file, take = client.predict(WORDS, max_new_tokens=FRAMES, api_name="/synthesize")
    assert len(samples(file)) > 0
    assert take["voice"] == "anna"


def test_streamed_pieces_join_to_the_pcm_of_the_api(served: Served, client: Client) -> None:
    job = client.submit(text=WORDS, seed=7, max_new_tokens=FRAMES, api_name="/synthesize_stream")
    pieces = list(job)
    assert len(pieces) > 2
    assert [piece["number"] for piece in pieces] == list(range(len(pieces)))
    joined = b"".join(base64.b64decode(piece["pcm"]) for piece in pieces)
    assert joined == speech_of_api(served, response_format="pcm")
    assert pieces[-1]["done"] and pieces[-1]["seed"] == 7


def test_a_cancelled_stream_frees_its_row(served: Served, client: Client) -> None:
    cancelled = served.load()["cancelled"]
    job = client.submit(text=WORDS, max_new_tokens=2000, api_name="/synthesize_stream")
    next(iter(job))
    job.cancel()
    served.until(running=0, cancelled=cancelled + 1)


def test_uploaded_clip_becomes_the_voice(client: Client, tmp_path: Path) -> None:
    clip = tmp_path / "me.wav"
    clip.write_bytes(wav(tone(1.5)))
    _, take = client.predict(
        text=WORDS,
        ref_audio=handle_file(clip),
        ref_text="A tone.",
        max_new_tokens=FRAMES,
        api_name="/synthesize",
    )
    assert take["voice"] == "clip"


def test_refusals_have_readable_messages(client: Client) -> None:
    with pytest.raises(AppError, match="there is no voice 'nobody'"):
        client.predict(text=WORDS, voice="nobody", api_name="/synthesize")
    with pytest.raises(AppError, match="blank"):
        client.predict(text=" ", api_name="/synthesize")


def test_takes_are_listed_and_returned_with_their_audio(served: Served, client: Client) -> None:
    file, take = client.predict(text="Kept in the history.", seed=9, max_new_tokens=FRAMES, api_name="/synthesize")
    _, secret = client.predict(text="Not kept.", store=False, max_new_tokens=FRAMES, api_name="/synthesize")
    listed = client.predict(query="in the history", api_name="/history_list")
    assert [listed_take["id"] for listed_take in listed["data"]] == [take["request_id"]] and not listed["has_more"]
    assert client.predict(starred=True, api_name="/history_list")["data"] == []
    kept_file, facts = client.predict(take["request_id"], api_name="/take_get")
    assert samples(kept_file) == samples(file) and kept_file.endswith(".wav")
    assert (facts["text"], facts["seed"], facts["request"]["seed"]) == ("Kept in the history.", 9, 9)
    assert client.predict(secret["request_id"], api_name="/take_get")[0] is None
    with pytest.raises(AppError, match="there is no take"):
        client.predict("req_none", api_name="/take_get")
    with pytest.raises(AppError, match="limit must be"):
        client.predict(limit=0, api_name="/history_list")


def test_a_dialogue_is_spoken_by_its_cast(steered: Callable[..., Served]) -> None:
    client = Client(steered().url, verbose=False)
    file, take = client.predict("Anna: Hello.\nBo: Hi there.", {"Bo": "bert"}, turn_gap=0.5, api_name="/dialogue")
    with wave.open(file) as wav_file:
        assert wav_file.getnframes() == 18 * 2048 + 22_050
    assert [(turn["speaker"], turn["voice"]) for turn in take["turns"]] == [("Anna", "anna"), ("Bo", "bert")]
    with pytest.raises(AppError, match="line 2: 'Bo' has no voice"):
        client.predict("Anna: Hello.\nBo: Hi there.", api_name="/dialogue")
    client.close()


def test_voices_and_health_are_served(client: Client) -> None:
    assert {"anna", "bert"} <= {voice["id"] for voice in client.predict(api_name="/voices_list")}
    assert client.predict(api_name="/health")["state"] == "ready"
    line = client.predict(api_name="/queue_status")
    assert (line["running"], line["max_rows"], line["requests"]) == (0, 2, [])


OPTIONS = "ref_audio ref_text seed temperature top_p top_k max_new_tokens speed store"
CUT = "start end gain_db channel"
FROZEN = {
    "/synthesize": f"text voice {OPTIONS}",
    "/synthesize_stream": f"text voice {OPTIONS}",
    "/dialogue": f"script cast voice turn_gap {OPTIONS}",
    "/voices_list": "",
    "/health": "",
    "/queue_status": "",
    "/history_list": "query voice starred limit after",
    "/take_get": "take_id",
    "/batch_submit": "texts document voice title pause speed notes",
    "/batch_status": "project_id",
    "/voice_get": "voice",
    "/voice_create": f"name audio text {CUT} description tags language licence consent",
    "/voice_update": "voice name description tags language licence favourite defaults",
    "/voice_delete": "voice",
    "/voice_export": "voice",
    "/voice_import": "pack name",
    "/voice_preview": "voice sample",
    "/analyze_reference": f"audio text {CUT}",
    "/transcribe": "audio language text",
}
"""The arguments of each endpoint, in order."""


def test_endpoints_and_arguments_match_the_frozen_list(client: Client) -> None:
    named = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    arguments = {
        name: " ".join(parameter["parameter_name"] for parameter in endpoint["parameters"])
        for name, endpoint in named.items()
    }
    assert arguments == FROZEN
    for name, endpoint in named.items():
        assert all(parameter["parameter_has_default"] for parameter in endpoint["parameters"]), name
        assert endpoint["description"], name


def test_voice_is_rated_created_updated_exported_deleted_and_imported(client: Client, tmp_path: Path) -> None:
    clip = tmp_path / "me.wav"
    clip.write_bytes(wav(tone(6, level=0.005)))
    advice = client.predict(audio=handle_file(clip), text="A steady tone.", api_name="/analyze_reference")
    assert "quiet" in [finding["code"] for finding in advice["findings"]] and advice["cut"]["end"] is None
    voice = client.predict(
        name="Tony",
        audio=handle_file(clip),
        text="A steady tone.",
        end=5,
        gain_db=advice["fixed"]["gain_db"],
        tags="flat, electric",
        consent="Yes, I am a tone.",
        api_name="/voice_create",
    )
    assert voice["slug"] == "tony" and voice["tags"] == ["flat", "electric"] and voice["consent"]
    assert voice["samples"][0]["seconds"] == 5 and voice["samples"][0]["cut"]["gain_db"] > 10
    changed = client.predict(
        voice="tony", description="Flat.", favourite=True, defaults={"temperature": 0.5}, api_name="/voice_update"
    )
    assert (changed["description"], changed["favourite"], changed["tags"]) == ("Flat.", True, ["flat", "electric"])
    assert changed["defaults"] == {"temperature": 0.5}
    assert client.predict(voice="tony", description="", api_name="/voice_update")["description"] == ""
    with wave.open(client.predict(voice="tony", api_name="/voice_preview")) as preview:
        assert preview.getnframes() == 5 * 44_100
    pack = client.predict(voice="tony", api_name="/voice_export")
    assert Path(pack).name == "tony.fishvoice"
    assert client.predict(voice="tony", api_name="/voice_delete")["deleted"]
    with pytest.raises(AppError, match="there is no voice 'tony'"):
        client.predict(voice="tony", api_name="/voice_get")
    again = client.predict(pack=handle_file(pack), name="Tom", api_name="/voice_import")
    assert again["slug"] == "tom" and client.predict(voice="tom@1", api_name="/voice_get")["samples"]
    client.predict(voice="tom", api_name="/voice_delete")


def test_invalid_voice_requests_have_readable_messages(client: Client, tmp_path: Path) -> None:
    clip = tmp_path / "me.wav"
    clip.write_bytes(wav(tone(2)))
    with pytest.raises(AppError, match="audio is missing"):
        client.predict(name="Tony", text="A tone.", api_name="/voice_create")
    with pytest.raises(AppError, match="a sample needs the words"):
        client.predict(name="Tony", audio=handle_file(clip), api_name="/voice_create")
    with pytest.raises(AppError, match="no speech recogniser is installed"):
        client.predict(audio=handle_file(clip), api_name="/transcribe")
    with pytest.raises(AppError, match="no sample number 3"):
        client.predict(sample=3, api_name="/voice_preview")
    with pytest.raises(AppError, match="from 0 to 2"):
        client.predict(voice="anna", defaults={"temperature": 9}, api_name="/voice_update")


def test_clip_is_transcribed_if_a_recogniser_is_installed(
    recogniser: None, steered: Callable[..., Served], tmp_path: Path
) -> None:
    clip = tmp_path / "me.wav"
    clip.write_bytes(wav(tone(2)))
    client = Client(steered(transcriber="faster-whisper:tiny").url, verbose=False)
    transcript = client.predict(audio=handle_file(clip), text="A steady bell.", api_name="/transcribe")
    client.close()
    assert transcript["text"] == "A steady tone." and transcript["language"] == "en"
    assert transcript["words"][2] == {"word": "tone.", "start": 0.2, "end": 0.3, "probability": 0.9}
    assert transcript["marks"][1] == {"text": "bell", "heard": "tone"}


def test_batch_becomes_a_project_of_its_caller(
    steered: Callable[..., Served], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    studio, queued, run = steered(), list[str](), WorkQueue.run

    def noted(queue: WorkQueue, *values: Any) -> Any:
        queued.append(queue.name)
        return run(queue, *values)

    monkeypatch.setattr(WorkQueue, "run", noted)
    client = Client(studio.url, verbose=False)
    batch = client.predict(["One.", "Two three."], voice="bert", api_name="/batch_submit")
    assert batch["parts"]["total"] == 2
    while (now := client.predict(batch["id"], api_name="/batch_status"))["state"] != "done":
        assert now["state"] == "running"
    assert [item["state"] for item in now["items"]] == ["done", "done"]
    assert "reads" in queued, "reading all parts of a book would keep others from the shared threads"
    assert httpx.get(f"{studio.url}/v1/projects").json()["data"][0]["id"] == batch["id"]
    with wave.open(io.BytesIO(httpx.get(studio.url + now["audio"]).content)) as whole:
        assert whole.getnframes() == 18 * 2048 + 22_050
    table = tmp_path / "table.csv"
    table.write_text("text,voice\nHello.,anna\n")
    batch = client.predict(document=handle_file(table), title="A table", api_name="/batch_submit")
    assert (batch["title"], batch["parts"]["total"]) == ("A table", 1)
    with pytest.raises(AppError, match="list of texts"):
        client.predict(api_name="/batch_submit")
    with pytest.raises(AppError, match="no project"):
        client.predict("proj_x", api_name="/batch_status")
    client.close()
