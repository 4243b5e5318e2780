"""Fish Audio's own Python SDK, its new and its old package, unmodified except for the address, against the studio."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import fish_audio_sdk
import pytest
import soundfile
from fish_audio_sdk.exceptions import HttpCodeErr, WebSocketErr
from fishaudio import AsyncFishAudio, FishAudio, WebSocketError
from fishaudio.exceptions import APIError, NotFoundError
from fishaudio.types import Prosody, ReferenceAudio, TTSConfig

from studio import ROOT
from tests.clients.test_node import NODE
from tests.studio.clips import WORDS, spoken
from tests.studio.conftest import Steered
from tests.studio.server import Served

PIECES = ("Hello ", "there. How ", "are you", "? Fine.")


@pytest.fixture
def served(steered: Callable[..., Steered]) -> Served:
    """A studio whose engine ends takes by itself: the SDK cannot limit a take."""
    return steered()[0]


@pytest.fixture
def client(served: Served) -> Iterator[FishAudio]:
    client = FishAudio(api_key="any", base_url=served.url)
    yield client
    client.close()


def rate_of(audio: bytes) -> int:
    return int(soundfile.info(io.BytesIO(audio)).samplerate)


def test_speech_is_generated_whole_and_streamed(client: FishAudio) -> None:
    assert rate_of(client.tts.convert(text="Hello.")) == 44_100
    streamed = b"".join(client.tts.stream(text="Hello.", format="wav", config=TTSConfig(sample_rate=24_000)))
    assert streamed[:4] == b"RIFF" and int.from_bytes(streamed[24:28], "little") == 24_000
    slow = client.tts.convert(text="Hello.", config=TTSConfig(format="opus", prosody=Prosody(speed=0.5, volume=0)))
    assert slow[:4] == b"OggS"


def test_voice_is_cloned_for_one_take_stored_renamed_and_deleted(client: FishAudio) -> None:
    references = [ReferenceAudio(audio=spoken(), text=WORDS)] * 2
    assert client.tts.convert(text="Hello.", references=references)
    voice = client.voices.create(title="SDK voice", voices=[spoken()], texts=[WORDS], tags=["calm"])
    assert client.voices.get(voice.id).title == "SDK voice"
    assert voice.id in [other.id for other in client.voices.list(page_size=100, title="sdk").items]
    assert client.tts.convert(text="Hello.", reference_id=voice.id)
    client.voices.update(voice.id, title="Renamed", visibility="private", cover_image=b"\x89PNG")
    assert client.voices.get(voice.id).title == "Renamed"
    client.voices.delete(voice.id)
    with pytest.raises(NotFoundError, match="there is no voice"):
        client.voices.get(voice.id)


def test_text_streamed_in_pieces_yields_one_wav_file(client: FishAudio) -> None:
    audio = b"".join(client.tts.stream_websocket(iter(PIECES), format="wav", latency="balanced"))
    assert audio.count(b"RIFF") == 1 and len(audio) > 10_000


async def test_async_client_generates_streams_and_lists_voices(served: Served) -> None:
    async def pieces() -> AsyncIterator[str]:
        for piece in PIECES:
            yield piece

    client = AsyncFishAudio(api_key="any", base_url=served.url)
    assert await client.tts.convert(text="Hello.")
    audio = b"".join([part async for part in client.tts.stream_websocket(pieces(), format="pcm")])
    assert audio and len(audio) % 2 == 0
    assert (await client.voices.list()).total >= 2
    await client.close()


def test_account_reports_credit_and_balance(client: FishAudio) -> None:
    assert client.account.get_credits().credit > 0
    assert client.account.get_package().balance > 0


def test_refusals_raise_the_sdks_own_errors(client: FishAudio) -> None:
    with pytest.raises(APIError, match="there is no voice 'nobody'"):
        client.tts.convert(text="Hello.", reference_id="nobody")
    with pytest.raises(APIError, match="blank"):
        client.tts.convert(text=" ")
    with pytest.raises(WebSocketError):
        list(client.tts.stream_websocket(iter(PIECES), reference_id="nobody"))


def test_the_old_session_and_its_sockets_work(served: Served) -> None:
    session = fish_audio_sdk.Session("any", base_url=served.url)
    assert rate_of(b"".join(session.tts(fish_audio_sdk.TTSRequest(text="Hello.")))) == 44_100
    model = session.create_model(title="Old", voices=[spoken()], texts=[WORDS], cover_image=None)
    assert session.get_model(model.id).title == "Old"
    assert session.list_models(title="old").items[0].id == model.id
    session.update_model(model.id, title="Older")
    session.delete_model(model.id)
    assert session.get_api_credit().credit and session.get_package().finished_at
    with pytest.raises(HttpCodeErr) as refused:
        list(session.tts(fish_audio_sdk.TTSRequest(text="Hello.", reference_id="nobody")))
    assert refused.value.status == 400
    with pytest.raises(HttpCodeErr) as missing:
        session.get_model("nobody")
    assert missing.value.status == 404
    with fish_audio_sdk.WebSocketSession("any", base_url=served.url) as live:
        request = fish_audio_sdk.TTSRequest(text="", format="mp3")
        assert rate_of(b"".join(live.tts(request, iter(PIECES)))) == 44_100
        with pytest.raises(WebSocketErr):
            list(live.tts(fish_audio_sdk.TTSRequest(text="", reference_id="nobody"), iter(PIECES)))


async def test_the_old_async_socket_works(served: Served) -> None:
    async def pieces() -> AsyncIterator[str]:
        for piece in PIECES:
            yield piece

    async with fish_audio_sdk.AsyncWebSocketSession("any", base_url=served.url) as live:
        request = fish_audio_sdk.TTSRequest(text="", format="wav")
        assert b"".join([part async for part in live.tts(request, pieces())])[:4] == b"RIFF"


PROGRAM = """
const { SNIPPETS } = await import(process.argv[1]);
console.log(SNIPPETS["Python, Fish SDK"](JSON.parse(process.argv[2]), process.argv[3], true));
"""


@pytest.mark.parametrize(
    "fields",
    [
        {"voice": "bert", "response_format": "wav", "speed": 4, "temperature": 1.5, "top_p": 0.9, "seed": 3},
        {"ref_audio": "data:,", "ref_text": WORDS, "response_format": "flac"},
    ],
)
def test_python_snippet_of_the_page_generates_speech(served: Served, tmp_path: Path, fields: dict[str, object]) -> None:
    (tmp_path / "clip.wav").write_bytes(spoken())
    request = json.dumps({"input": 'It\'s "so" \\ 😀'} | fields)
    snippets = (ROOT / "assets/page/api/snippets.js").as_uri()
    command = [NODE, "--input-type=module", "--eval", PROGRAM, snippets, request, served.url]
    program = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    assert "YOUR_KEY" in program
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=60)
    sound = next(tmp_path.glob("take.*")).read_bytes()
    assert sound[:4] == b"RIFF" if "voice" in fields else sound[:2] == b"\xff\xfb"
