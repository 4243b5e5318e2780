"""ElevenLabs' sockets: the real SDK, contexts as LiveKit and Pipecat drive them, and invalid input."""

from __future__ import annotations

import base64
import contextlib
import gc
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from elevenlabs.client import ElevenLabs
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.protocol import State
from websockets.sync.client import ClientConnection, connect

from studio.api.text_socket import TextSocket
from studio.settings import read_keys
from studio.work import Job
from tests.studio.api.test_long_work import Gate, job_counts
from tests.studio.conftest import Steered
from tests.studio.server import Served
from tests.waiting import wait_until_true

Steer = Callable[..., Steered]
STREAM = "/elevenlabs/v1/text-to-speech/anna/stream-input?output_format=pcm_44100"
MULTI = "/elevenlabs/v1/text-to-speech/anna/multi-stream-input?output_format=pcm_44100&auto_mode=true"
FRAME = 2048 * 2
"""Bytes of a frame of the fake engine."""


def open_socket(served: Served, path: str, **headers: str) -> ClientConnection:
    """Without compression, which takes as long as the speech of a fake engine."""
    return connect(f"ws{served.url.removeprefix('http')}{path}", compression=None, additional_headers=headers)


def send(socket: ClientConnection, **message: Any) -> None:
    socket.send(json.dumps(message))


def until(socket: ClientConnection, is_last: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """The messages up to one that is the last."""
    messages: list[dict[str, Any]] = []
    while not messages or not is_last(messages[-1]):
        messages.append(json.loads(socket.recv(30)))
    return messages


def until_final(socket: ClientConnection, context: str | None = None) -> list[dict[str, Any]]:
    return until(socket, lambda message: message.get("isFinal") is True and message.get("contextId") == context)


def audio_of(messages: list[dict[str, Any]], context: str | None = None) -> bytes:
    mine = (message for message in messages if message.get("contextId") == context)
    return b"".join(base64.b64decode(message.get("audio") or "") for message in mine)


def words_of(messages: list[dict[str, Any]], kind: str = "alignment") -> str:
    return "".join("".join(message[kind]["chars"]) for message in messages if message.get(kind))


def refusal(socket: ClientConnection) -> str:
    """The message of the error that ends a socket."""
    messages = until(socket, lambda message: "message" in message)
    with pytest.raises(ConnectionClosed) as closed:
        socket.recv(30)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008 == messages[-1]["code"]
    return str(messages[-1]["message"])


def test_crowd_of_sockets_leaves_the_threads_of_plain_routes_free(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, count = Gate(), 45  # more than these threads
    monkeypatch.setattr(Job, "run", lambda job, *values: gate.run(job, *values))
    with contextlib.ExitStack() as opened, served.client() as client:
        sockets = [opened.enter_context(open_socket(served, STREAM)) for _ in range(count)]
        for socket in sockets:
            send(socket, text="Hi. ")
        wait_until_true(lambda: sum(job_counts(client, "texts")) == count)  # their voice is looked up there
        assert client.get("/v1/takes").json()["data"] == []
        gate.is_open.set()
        assert {refusal(socket) for socket in sockets} == {"the gate was opened"}


@pytest.fixture
def served(steered: Steer) -> Served:
    return steered(max_rows=8)[0]


def test_the_sdk_streams_text_in_progress(steered: Steer) -> None:
    served, engine = steered()
    client = ElevenLabs(api_key="none", base_url=f"{served.url}/elevenlabs")
    speech: Any = client.text_to_speech
    speech._ws_base_url = f"ws{served.url.removeprefix('http')}/elevenlabs"  # the SDK always dials wss:

    def words() -> Iterator[str]:
        yield from ("Hello ", "there. ", "How are ", "you?")

    audio = b"".join(speech.convert_realtime("anna", text=words(), output_format="pcm_44100"))
    assert [utterance.text for utterance in engine.utterances] == ["Hello there.", "How are you?"]
    assert len(audio) == 5 * 6 * FRAME
    with pytest.raises(Exception, match="nobody"):
        list(speech.convert_realtime("nobody", text=words()))


def test_a_sentence_is_spoken_once_complete_and_timed_from_its_own_start(served: Served) -> None:
    with open_socket(served, STREAM) as socket:
        send(socket, text=" ", voice_settings={"stability": 0.5, "similarity_boost": 0.8})
        send(socket, text="Hello there. How ")
        first = until(socket, lambda message: message.get("alignment") is not None)
        send(socket, text="are you?")
        send(socket, text="")
        rest = until_final(socket)
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(30)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1000
    assert words_of(first + rest) == words_of(first + rest, "normalizedAlignment") == "Hello there. How are you? "
    assert len(audio_of(first + rest)) == 5 * 6 * FRAME
    timed = [message["alignment"] for message in first + rest if message.get("alignment")]
    assert [times["charStartTimesMs"][0] for times in timed] == [0, 0]
    for times, words in zip(timed, (2, 3), strict=True):
        assert len(times["chars"]) == len(times["charStartTimesMs"]) == len(times["charDurationsMs"])
        seconds = words * 6 * 2048 / 44_100
        assert times["charStartTimesMs"][-1] + times["charDurationsMs"][-1] == pytest.approx(seconds * 1000, abs=2)


def test_sync_alignment_counts_from_the_start_of_the_audio(served: Served) -> None:
    with open_socket(served, f"{STREAM}&sync_alignment=true") as socket:
        send(socket, text="Hello there. How are you?")
        send(socket, text="")
        timed = [message["alignment"] for message in until_final(socket) if message.get("alignment")]
    assert timed[1]["charStartTimesMs"][0] == pytest.approx(2 * 6 * 2048 / 44.1, abs=2)


def test_turns_as_livekit_drives_them(served: Served) -> None:
    with open_socket(served, f"{MULTI}&inactivity_timeout=180&sync_alignment=true", **{"xi-api-key": "none"}) as socket:
        for turn in ("c1", "c2"):
            send(socket, text=" ", context_id=turn, voice_settings={"stability": 0.4})
            send(socket, text="Hello there. ", context_id=turn, flush=True)
            send(socket, text="How are you? ", context_id=turn, flush=True)
            send(socket, text="", context_id=turn, flush=True)
            send(socket, context_id=turn, close_context=True)
            messages = until_final(socket, turn)
            assert len(audio_of(messages, turn)) == 5 * 6 * FRAME
            assert words_of(messages, "normalizedAlignment") == "Hello there. How are you? "
        send(socket, close_socket=True)
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(30)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1000


def test_turns_as_pipecat_drives_them_and_an_interruption(steered: Steer) -> None:
    served, engine = steered(max_rows=2)
    engine.later_frames_gate.clear()
    with open_socket(served, MULTI.replace("&auto_mode=true", "")) as socket:
        send(socket, text=" ", context_id="old")
        send(socket, text="One two three four.", context_id="old")
        send(socket, context_id="old", flush=True)
        until(socket, lambda message: bool(message.get("audio")))
        send(socket, context_id="old", close_context=True)  # the user speaks
        send(socket, text="")  # keeps the socket
        send(socket, text=" ", context_id="new")
        send(socket, text="Yes.", context_id="new")
        send(socket, context_id="new", flush=True)
        messages = until(socket, lambda message: bool(message.get("audio")) and message["contextId"] == "new")
        assert not any(message.get("isFinal") for message in messages)  # the old one does not delay the new one
        engine.later_frames_gate.set()
        until_final(socket, "old")
        send(socket, text="", context_id="new")  # keeps the context
        send(socket, context_id="new", close_context=True)
        until_final(socket, "new")


def test_leaving_frees_the_rows_and_stores_only_live_takes(steered: Steer) -> None:
    served, engine = steered()
    engine.later_frames_gate.clear()
    with open_socket(served, MULTI) as socket:
        for name in ("a", "b"):
            send(socket, text="One two three.", context_id=name)
        served.until(running=2)
    served.until(running=0, waiting=0)
    engine.later_frames_gate.set()
    served.until_left()
    with served.client() as client:
        kinds = {take["state"] for take in client.get("/v1/takes").json()["data"]}
    assert kinds <= {"cancelled"}
    assert all(take.live for take in served.app.state.studio.library.takes.page())


def test_a_context_left_alone_ends_by_itself(served: Served) -> None:
    with open_socket(served, f"{MULTI}&inactivity_timeout=1") as socket:
        send(socket, text="Hello there", context_id="c")
        assert audio_of(until_final(socket, "c"), "c")
    with open_socket(served, f"{STREAM}&inactivity_timeout=1") as socket:
        send(socket, text="Hello there")
        assert len(audio_of(until_final(socket))) == 2 * 6 * FRAME


def test_contexts_are_bounded_and_one_too_many_disturbs_no_other(steered: Steer) -> None:
    served, engine = steered()
    engine.first_frame_gate.clear()
    with open_socket(served, MULTI) as socket:
        for number in range(300):
            send(socket, text="Hello.", context_id=f"c{number}")
        refused = [json.loads(socket.recv(30)) for _ in range(300 - 16)]
        assert {message["contextId"] for message in refused} == {f"c{number}" for number in range(16, 300)}
        assert all("16 contexts" in message["error"] for message in refused)
        engine.first_frame_gate.set()
        send(socket, close_socket=True)
        finals, received = 0, 0
        with pytest.raises(ConnectionClosed):
            while True:
                message = json.loads(socket.recv(30))
                finals, received = finals + bool(message.get("isFinal")), received + bool(message.get("audio"))
    assert finals == 16 <= received


def test_a_failing_context_is_reported_and_final_while_others_go_on(steered: Steer) -> None:
    served, engine = steered()
    engine.spoilt += ["mute", "mute"]
    with open_socket(served, MULTI) as socket:
        send(socket, text="Hello there.", context_id="bad")
        messages = until_final(socket, "bad")
        assert any(message.get("error") and message["contextId"] == "bad" for message in messages)
        send(socket, text="Hello there.", context_id="good")
        send(socket, context_id="good", close_context=True)
        assert audio_of(until_final(socket, "good"), "good")


def test_text_after_the_end_of_a_context_is_refused_for_it_alone(steered: Steer) -> None:
    served, engine = steered()
    engine.later_frames_gate.clear()
    with open_socket(served, MULTI) as socket:
        send(socket, text="Hello there.", context_id="c")
        send(socket, context_id="c", close_context=True)
        send(socket, text="More.", context_id="c")
        messages = until(socket, lambda message: "error" in message)
        assert messages[-1]["contextId"] == "c" and "isFinal" in messages[-1]["error"]
        engine.later_frames_gate.set()
        until_final(socket, "c")


@pytest.mark.parametrize("path", [STREAM, MULTI])
@pytest.mark.parametrize(
    ("first", "words"),
    [
        ("hello", "parse the JSON"),
        ("[]", "must be a JSON object"),
        ("{}", "needs text"),
        ('{"text": 5}', "text must be a string"),
        ('{"text": "a", "voice_settings": {"stability": 7}}', "voice_settings.stability"),
        (
            '{"text": "a", "pronunciation_dictionary_locators": [{"version_id": "x"}]}',
            "does not exist",
        ),
        (b"\x00", "JSON text, not binary"),
        (json.dumps({"text": "a" * 17_000}), "16384 characters"),
        (json.dumps({"text": "a" * 10_000_000}), "16384 characters"),
        ("[" * 100_000, "parse the JSON"),
    ],
)
def test_malformed_first_messages_are_refused_in_words(served: Served, path: str, first: Any, words: str) -> None:
    with open_socket(served, path) as socket:
        socket.send(first)
        assert words in refusal(socket)
    served.until_left()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("anna", "nobody"), "no voice 'nobody'"),
        (("pcm_44100", "mp3_1_1"), "output_format"),
        (("?", "?seed=x&"), "seed"),
        (("?", "?inactivity_timeout=9999&"), "inactivity_timeout"),
    ],
)
def test_invalid_addresses_are_refused_in_words(served: Served, change: tuple[str, str], words: str) -> None:
    with open_socket(served, STREAM.replace(*change)) as socket:
        send(socket, text=" ")
        assert words in refusal(socket)


def test_context_names_are_short_strings(served: Served) -> None:
    for name in (5, "x" * 257):
        with open_socket(served, MULTI) as socket:
            send(socket, text="a", context_id=name)
            assert "context_id" in refusal(socket)


def test_ten_thousand_characters_without_a_sentence_end_are_spoken(steered: Steer) -> None:
    served, _ = steered()
    words = "sentence " * 1112
    with open_socket(served, STREAM) as socket:
        send(socket, text=words)
        send(socket, text="")
        assert words_of(until_final(socket)).split() == words.split()


def test_keys_are_read_from_every_place_and_wrong_ones_are_refused(
    steered: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, _ = steered(api_keys=read_keys("anna=right-key-1234567890"))
    right = "right-key-1234567890"
    with open_socket(served, STREAM, **{"xi-api-key": right}) as socket:
        send(socket, text="")
        until_final(socket)
    for key in ({"xi-api-key": right}, {"xi_api_key": right}, {"authorization": f"Bearer {right}"}):
        with open_socket(served, STREAM) as socket:
            socket.send(json.dumps({"text": "Hello."} | key))
            send(socket, text="")
            until_final(socket)
    takes = served.app.state.studio.speech.register.recent()
    assert {take.caller for take in takes} == {served.app.state.studio.settings.api_keys[0].owner}
    for headers in ({"xi-api-key": "wrong"}, {"Authorization": "Bearer wrong"}):
        with pytest.raises(InvalidStatus):
            open_socket(served, STREAM, **headers)
    for message in ({"text": "Hello."}, {"text": "Hello.", "xi_api_key": "wrong"}, {"text": "Hello.", "xi_api_key": 5}):
        with open_socket(served, STREAM) as socket:
            send(socket, **message)
            assert "xi-api-key" in refusal(socket)
    wait_until_true(
        lambda: gc.collect() >= 0 and not any(TextSocket in type(each).__mro__ for each in gc.get_objects())
    )
    with pytest.raises(InvalidStatus):
        open_socket(served, "/v1/tts/live")  # only this protocol has keys in messages

    # Sockets that send no key leave room for others of their address.
    monkeypatch.setattr("studio.api.text_socket.MAX_SOCKETS", 2)
    with open_socket(served, STREAM) as first, open_socket(served, STREAM) as second, open_socket(served, STREAM):
        assert "needed the place" in refusal(first)
        for text in ("Hello.", ""):
            send(second, text=text, xi_api_key=right)
        until_final(second)
    with ThreadPoolExecutor(16) as threads, contextlib.ExitStack() as stack:  # at once: most do not wait yet
        sockets = [*threads.map(lambda _: stack.enter_context(open_socket(served, STREAM)), range(16))]
        wait_until_true(lambda: sum(socket.protocol.state is State.OPEN for socket in sockets) == 2)
    wait_until_true(lambda: not served.app.state.studio.speech.sockets)


def test_other_origins_are_refused(served: Served) -> None:
    with pytest.raises(InvalidStatus):
        open_socket(served, STREAM, Origin="https://elsewhere.example")
