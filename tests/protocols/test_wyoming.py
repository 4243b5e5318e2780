"""Wyoming: its own client in Home Assistant's order of events; one sound per text, and no work left running."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import struct
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path

import pytest
from wyoming.asr import Transcribe, Transcript
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncTcpClient
from wyoming.error import Error
from wyoming.event import Event
from wyoming.info import Describe, Info
from wyoming.ping import Ping, Pong
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeStopped,
    SynthesizeVoice,
)

from protocols.wyoming import MAX_BLOCK
from tests.studio.conftest import Steered
from tests.waiting import wait_until_true

Steer = Callable[..., Steered]
FRAME_BYTES = 2 * 2048


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def served_at(steered: Steer, **settings: object) -> tuple[Steered, int]:
    port = free_port()
    made = steered(wyoming=f"tcp://127.0.0.1:{port}", **settings)

    def is_listening() -> bool:
        with closing(socket.socket()) as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until_true(is_listening)
    return made, port


@asynccontextmanager
async def connected(port: int) -> AsyncGenerator[AsyncTcpClient, None]:
    async with asyncio.timeout(60), AsyncTcpClient("127.0.0.1", port) as client:
        yield client


async def until(client: AsyncTcpClient, kind: str) -> list[Event]:
    events: list[Event] = []
    while not events or events[-1].type != kind:
        event = await client.read_event()
        assert event is not None, events
        events.append(event)
    return events


def sound_in(events: list[Event]) -> tuple[int, int]:
    """The bytes of audio and its rate. There is one start, then chunks of its format, then one stop."""
    audio = [event for event in events if event.type.startswith("audio-")]
    chunks = [AudioChunk.from_event(event) for event in audio[1:-1]]
    start = AudioStart.from_event(audio[0])
    assert AudioStop.is_type(audio[-1].type) and all(AudioChunk.is_type(event.type) for event in audio[1:-1])
    formats = {(chunk.rate, chunk.width, chunk.channels) for chunk in chunks}
    assert formats <= {(start.rate, start.width, start.channels)}
    assert (start.width, start.channels) == (2, 1)
    return sum(len(chunk.audio) for chunk in chunks), start.rate


async def test_home_assistants_whole_and_streamed_speech(steered: Steer) -> None:
    (served, engine), port = served_at(steered)
    engine.info = replace(engine.info, speakers=("Uncle_Fu",))
    async with connected(port) as client:
        await client.write_event(Describe().event())
        info = Info.from_event((await until(client, "info"))[0])
        (program,) = info.tts
        assert program.installed and program.supports_synthesize_streaming and not info.asr
        assert {(voice.name, voice.description) for voice in program.voices} == {
            ("anna", "Anna"),
            ("bert", "Bert"),
            ("uncle_fu", "Uncle Fu"),
        }
        assert all(voice.languages and voice.installed for voice in program.voices)
    async with connected(port) as client:
        await client.write_event(Synthesize("It costs 3.50 in all.", SynthesizeVoice("uncle_fu")).event())
        assert sound_in(await until(client, "audio-stop")) == (5 * 6 * FRAME_BYTES, 44_100)
    async with connected(port) as client:
        await client.write_event(SynthesizeStart(SynthesizeVoice("anna")).event())
        for words in ("It costs ", "3.", "50 in all.", " And th", "at is it"):
            await client.write_event(SynthesizeChunk(words).event())
        await client.write_event(Synthesize("It costs 3.50 in all. And that is it", SynthesizeVoice("anna")).event())
        await client.write_event(SynthesizeStop().event())
        events = await until(client, "synthesize-stopped")
        assert sound_in(events[:-1]) == (9 * 6 * FRAME_BYTES, 44_100) and SynthesizeStopped.is_type(events[-1].type)
    texts = [utterance.text for utterance in engine.utterances]
    assert texts == ["It costs 3.50 in all.", "It costs 3.50 in all.", "And that is it"]
    assert [turn.text for turn in engine.utterances[2].history] == ["It costs 3.50 in all."]
    served.until_left()


async def test_the_first_sentence_is_heard_while_the_text_is_written_and_leaving_frees_the_row(steered: Steer) -> None:
    (served, engine), port = served_at(steered, max_rows=1)
    engine.later_frames_gate.clear()
    async with connected(port) as client:
        await client.write_event(SynthesizeStart().event())
        await client.write_event(SynthesizeChunk("One sentence is whole. And an").event())
        assert AudioChunk.is_type((await until(client, "audio-chunk"))[-1].type)
        served.until(running=1)
    served.until_left()
    served.until(running=0, waiting=0)
    assert engine.cancelled == 1


async def test_a_voice_of_the_language_is_found_and_words_without_sound_give_one_empty_sound(steered: Steer) -> None:
    (served, engine), port = served_at(steered)
    with served.client() as http:
        assert http.patch("/v1/voices/bert", json={"language": "de"}).status_code == 200
    async with connected(port) as client:
        await client.write_event(Ping("here?").event())
        assert Pong.from_event((await until(client, "pong"))[0]).text == "here?"
        await client.write_event(Event("select-program", {"name": "any"}))
        await client.write_event(Synthesize("Hallo.", SynthesizeVoice(language="de_AT")).event())
        assert sound_in(await until(client, "audio-stop"))[0] > 0
        await client.write_event(SynthesizeStart().event())
        await client.write_event(SynthesizeChunk("... ?! ").event())
        await client.write_event(SynthesizeStop().event())
        assert sound_in((await until(client, "synthesize-stopped"))[:-1]) == (0, 44_100)
        await client.write_event(Synthesize("And on it goes.").event())  # the connection is still usable
        assert sound_in(await until(client, "audio-stop"))[0] > 0
    assert [reference.text for reference in engine.utterances[0].references] == ["My name is bert."]


BAD_INPUT = (
    (b"GET / HTTP/1.1\r\n\r\n", "JSON"),
    (b"[]\n", "JSON object"),
    (b'{"type": 3}\n', "type"),
    (b'{"type": "describe", "data": []}\n', "data: Input should be an object"),
    (b'{"type": "audio-chunk", "payload_length": 4000000000}\n', "payload_length"),
    (b'{"type": "audio-chunk", "data_length": -1}\n', "data_length"),
    (b'{"type": "describe", "x": "' + b"a" * 10_000_000, "line"),
    (b'{"type": "synthesize", "data": {"text": ["a"]}}\n', "text: Input should be a valid string"),
    (b'{"type": "synthesize", "data": {"text": ""}}\n', "blank"),
    (b'{"type": "synthesize", "data": {"text": "Hi.", "voice": {"name": "nobody"}}}\n', "nobody"),
    (b'{"type": "synthesize", "data": {"text": "<b>Hi</b>", "text_format": "ssml"}}\n', "SSML"),
    (b'{"type": "synthesize-chunk", "data": {"text": "Hi."}}\n', "before synthesize-start"),
    (json.dumps({"type": "synthesize", "data": {"text": "a " * 10_000}}).encode() + b"\n", "16384"),
    (b'{"type": "transcribe"}\n', "recogniser"),
    (b'{"type": "audio-chunk"}\n', "before audio-start"),
)


async def test_bad_input_is_answered_by_an_error_and_the_end(steered: Steer) -> None:
    (served, _), port = served_at(steered)
    faults: list[object] = []
    assert served.loop is not None
    served.loop.set_exception_handler(lambda loop, context: faults.append(context))
    for sent, problem in BAD_INPUT:
        async with connected(port) as client:
            assert client._writer is not None
            client._writer.write(sent)
            (event,) = await until(client, "error")
            assert problem in Error.from_event(event).text
            assert await client.read_event() is None, sent[:80]
        served.until_left()
    gc.collect()
    assert not faults


async def test_one_more_connection_ends_the_oldest_idle_one_of_the_address_with_the_most(
    steered: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("protocols.wyoming.MAX_CONNECTIONS", 4)
    (served, engine), port = served_at(steered)
    engine.first_frame_gate.clear()
    made: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def answer(number: int, sent: str = "ping") -> str:
        """The answer to a new client, whose address ends with this number."""
        made.append(await asyncio.open_connection("127.0.0.1", port, local_addr=(f"127.0.0.{number}", 0)))
        return await heard(-1, sent)

    async def heard(client: int, sent: str = "ping") -> str:
        reader, writer = made[client]
        writer.write(f'{{"type": "{sent}", "data": {{"text": "Hello."}}}}\n'.encode())
        if sent != "ping":
            return ""
        head = json.loads(await reader.readline())
        await reader.readexactly(head["data_length"])
        return str(head["type"])

    async with asyncio.timeout(60):
        await answer(2, "synthesize")  # busy
        await asyncio.to_thread(served.until, running=1)
        assert [await answer(number) for number in (2, 2, 3, 4)] == ["pong"] * 4
        assert await heard(1) == "error" and [await heard(client) for client in (2, 3, 4)] == ["pong"] * 3
        await answer(2, "synthesize")
        await asyncio.to_thread(served.until, running=2)
        assert await answer(2) == "pong"
        await heard(-1, "synthesize")
        assert await heard(-1) == "error", "half of all are busy for this address"
        assert await answer(5) == "pong"
    for _, writer in made:
        writer.close()


async def test_recordings_are_transcribed(steered: Steer, tmp_path: Path) -> None:
    from tests.studio.voices.whisper import write_model

    write_model(tmp_path / "whisper", ["Turn", "on", "the", "light"], 1.0)
    (_, _), port = served_at(steered, transcriber=f"faster-whisper:{tmp_path / 'whisper'}")
    second = struct.pack("<16000h", *(1000 if at // 40 % 2 else -1000 for at in range(16_000)))
    async with connected(port) as client:
        await client.write_event(Describe().event())
        (program,) = Info.from_event((await until(client, "info"))[0]).asr
        assert program.installed and "en" in program.models[0].languages
        await client.write_event(Transcribe(language="en").event())
        await client.write_event(AudioStart(16_000, 2, 1).event())
        for start in range(0, len(second), 2048):
            await client.write_event(AudioChunk(16_000, 2, 1, second[start : start + 2048]).event())
        await client.write_event(AudioStop().event())
        transcript = Transcript.from_event((await until(client, "transcript"))[-1])
        assert (transcript.text, transcript.language) == ("Turn on the light", "en")
        await client.write_event(AudioStart(16_000, 2, 1).event())
        for _ in range(4 * 2**20 // MAX_BLOCK + 1):
            await client.write_event(AudioChunk(16_000, 2, 1, bytes(MAX_BLOCK)).event())
        assert "send shorter ones" in Error.from_event((await until(client, "error"))[-1]).text
