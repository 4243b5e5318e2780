"""gradio_client through the named endpoints: the same speech as the API, whole and in pieces, and refusals in words."""

from __future__ import annotations

import base64
import io
import wave
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError

from tests.studio.server import Served
from tests.studio.sounds import tone, wav

FRAMES = 20
WORDS = "The same words."


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[Client]:
    client = Client(served.url, verbose=False)
    yield client
    client.close()


def spoken(served: Served, **fields: object) -> bytes:
    body = {"input": WORDS, "seed": 7, "max_new_tokens": FRAMES} | fields
    return httpx.post(f"{served.url}/v1/audio/speech", json=body, timeout=60).raise_for_status().content


def samples(file: str) -> bytes:
    with wave.open(file) as wav_file:
        assert wav_file.getnframes() == FRAMES * 2048
        return wav_file.readframes(wav_file.getnframes())


def test_the_same_seed_gives_the_same_speech_as_the_api(served: Served, client: Client) -> None:
    file, take = client.predict(text=WORDS, voice="bert", seed=7, max_new_tokens=FRAMES, api_name="/synthesize")
    assert samples(file) == spoken(served, voice="bert", response_format="wav")[44:]
    assert (take["seed"], take["voice"], take["frames"], take["finish_reason"]) == (7, "bert", FRAMES, "length")


def test_only_the_text_is_needed(client: Client) -> None:
    file, take = client.predict(WORDS, max_new_tokens=FRAMES, api_name="/synthesize")
    assert len(samples(file)) > 0
    assert take["voice"] == "anna"


def test_pieces_join_to_the_apis_pcm(served: Served, client: Client) -> None:
    job = client.submit(text=WORDS, seed=7, max_new_tokens=FRAMES, api_name="/synthesize_stream")
    pieces = list(job)
    assert len(pieces) > 2
    assert [piece["number"] for piece in pieces] == list(range(len(pieces)))
    joined = b"".join(base64.b64decode(piece["pcm"]) for piece in pieces)
    assert joined == spoken(served, response_format="pcm")
    assert pieces[-1]["done"] and pieces[-1]["seed"] == 7


def test_a_cancelled_stream_frees_its_row(served: Served, client: Client) -> None:
    cancelled = served.load()["cancelled"]
    job = client.submit(text=WORDS, max_new_tokens=2000, api_name="/synthesize_stream")
    next(iter(job))
    job.cancel()
    served.until(running=0, cancelled=cancelled + 1)


def test_a_clip_of_ones_own_becomes_the_voice(client: Client, tmp_path: Path) -> None:
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


def test_a_refusal_reaches_the_caller_in_words(client: Client) -> None:
    with pytest.raises(AppError, match="there is no voice 'nobody'"):
        client.predict(text=WORDS, voice="nobody", api_name="/synthesize")
    with pytest.raises(AppError, match="blank"):
        client.predict(text=" ", api_name="/synthesize")


def test_a_dialogue_is_spoken_by_its_cast(steered: Callable[..., Served]) -> None:
    client = Client(steered().url, verbose=False)
    file, take = client.predict("Anna: Hello.\nBo: Hi there.", {"Bo": "bert"}, turn_gap=0.5, api_name="/dialogue")
    with wave.open(file) as wav_file:
        assert wav_file.getnframes() == 18 * 2048 + 22_050
    assert [(turn["speaker"], turn["voice"]) for turn in take["turns"]] == [("Anna", "anna"), ("Bo", "bert")]
    with pytest.raises(AppError, match="line 2: 'Bo' has no voice"):
        client.predict("Anna: Hello.\nBo: Hi there.", api_name="/dialogue")
    client.close()


def test_voices_and_health_are_told(client: Client) -> None:
    assert {"anna", "bert"} <= {voice["id"] for voice in client.predict(api_name="/voices_list")}
    assert client.predict(api_name="/health")["state"] == "ready"


def test_nothing_but_the_frozen_names_is_offered(client: Client) -> None:
    named = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert set(named) == {
        "/synthesize",
        "/synthesize_stream",
        "/dialogue",
        "/batch_submit",
        "/batch_status",
        "/voices_list",
        "/health",
    }
    for name in named:
        assert all(parameter["parameter_has_default"] for parameter in named[name]["parameters"]), name


def test_a_batch_is_a_project_of_its_caller(steered: Callable[..., Served], tmp_path: Path) -> None:
    studio = steered()
    client = Client(studio.url, verbose=False)
    batch = client.predict(["One.", "Two three."], voice="bert", api_name="/batch_submit")
    assert batch["parts"]["total"] == 2
    while (now := client.predict(batch["id"], api_name="/batch_status"))["state"] != "done":
        assert now["state"] == "running"
    assert [item["state"] for item in now["items"]] == ["done", "done"]
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
