"""The socket: text is sent as it is written, sentences come back as audio, and a cancel takes effect at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.studio.conftest import Steered
from tests.studio.server import Served
from tests.studio.sounds import frames_of
from tests.waiting import wait_until_true

Steer = Callable[..., Steered]


def open_socket(served: Served, **options: Any) -> ClientConnection:
    url = served.url.replace("http://", "ws://") + "/v1/audio/speech/stream"
    return connect(url, proxy=None, compression=None, max_size=None, **options)


def send(socket: ClientConnection, kind: str, **fields: object) -> None:
    socket.send(json.dumps({"type": kind} | fields))


def sentence(socket: ClientConnection) -> tuple[dict[str, Any], bytes, dict[str, Any]]:
    """The next sentence: its start, its bytes, its end."""
    start = json.loads(socket.recv(60))
    assert start["type"] == "audio.start", start
    audio = b""
    while isinstance(message := socket.recv(60), bytes):
        audio += message
    return start, audio, json.loads(message)


def test_sentences_are_spoken_as_soon_as_they_are_complete(steered: Steer) -> None:
    served, engine = steered()
    with open_socket(served) as socket:
        send(socket, "session.config", voice="bert", response_format="wav", seed=7)
        send(socket, "input.text", text="It costs 3.")
        send(socket, "input.text", text="50 in all. And th")
        start, audio, end = sentence(socket)
        assert start["sentence_text"] == "It costs 3.50 in all."
        assert (start["voice"], start["seed"], start["sample_rate"], start["format"]) == ("bert", 7, 44_100, "wav")
        assert frames_of(audio) == (44_100, 5 * 6 * 2048)
        assert end == {"type": "audio.done", "sentence_index": 0, "finish_reason": "stop"}
        send(socket, "input.text", text="at is it")
        send(socket, "input.done")
        start, audio, _ = sentence(socket)
        assert (start["sentence_index"], start["sentence_text"]) == (1, "And that is it")
        assert json.loads(socket.recv(60)) == {"type": "session.done", "total_sentences": 2}
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(60)
        assert closed.value.rcvd and closed.value.rcvd.code == 1000
    assert [turn.text for turn in engine.utterances[1].history] == ["It costs 3.50 in all."]


@pytest.mark.parametrize("config", [{}, {"response_format": None}, {"format": None}])
def test_default_format_is_pcm_at_24_khz(studio: Served, config: dict[str, object]) -> None:
    with open_socket(studio) as socket:
        send(socket, "session.config", max_new_tokens=10, seed=1, **config)
        send(socket, "input.text", text="Hello")
        send(socket, "input.done")
        start, audio, _ = sentence(socket)
        assert (start["media_type"], start["sample_rate"]) == ("audio/pcm", 24_000)
        with studio.client() as client:
            body = {"input": "Hello", "max_new_tokens": 10, "seed": 1, "response_format": "pcm"}
            assert audio == client.post("/v1/audio/speech", json=body).content


def test_large_messages_of_one_caller_are_bounded_together(steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.api.body.MAX_HELD", 4 * 2**20)
    served, _ = steered()
    large, piece = {"x": "a" * 1_500_000}, b"\x00\x80\0\0\0\0"  # an empty piece of a message, with its mask

    def refusal(socket: ClientConnection) -> int:
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(60)
        return closed.value.rcvd.code if closed.value.rcvd else 0

    with open_socket(served) as first, open_socket(served) as second, open_socket(served) as third:
        send(first, "session.config", **large)
        send(first, "input.text", text="It swam.")  # small ones are not bounded
        send(first, "input.flush")
        assert sentence(first)[1], "the first socket's message is in memory"
        send(second, "session.config", **large)
        assert refusal(second) == 1013
        third.socket.sendall(b"\x01" + piece[1:] + piece * 500_000)
        assert refusal(third) == 1013
        send(first, "input.done")
    served.until_left()
    with open_socket(served) as last:
        send(last, "session.config", **large)
        send(last, "input.text", text="It swam.")
        send(last, "input.flush")
        assert sentence(last)[1], "the memory of the closed sockets is free again"


def test_flush_speaks_the_pending_text(steered: Steer) -> None:
    served, _ = steered()
    with open_socket(served) as socket:
        send(socket, "input.text", text="Well")
        send(socket, "input.flush")
        assert sentence(socket)[0]["sentence_text"] == "Well"


def test_lone_pauses_precede_the_next_sentence(steered: Steer) -> None:
    served, engine = steered()
    with open_socket(served) as socket:
        send(socket, "session.config", response_format="wav")
        send(socket, "input.text", text="One.\n\n[pause:1s]\n\nTwo. [pa")
        assert sentence(socket)[0]["sentence_text"] == "One."
        start, audio, _ = sentence(socket)
        assert start["sentence_text"] == "[pause:1s] Two."
        assert frames_of(audio) == (44_100, 44_100 + 6 * 2048)
        send(socket, "input.text", text="use:300ms]")
        send(socket, "input.flush")
        send(socket, "input.flush")
        send(socket, "input.text", text="[pause:200ms]\nThree")
        send(socket, "input.flush")
        start, audio, _ = sentence(socket)
        assert start["sentence_text"] == "[pause:300ms] [pause:200ms] Three"
        assert frames_of(audio) == (44_100, 22_050 + 6 * 2048)
        send(socket, "input.text", text="[pause:1s]\n[pause:1s]")
        send(socket, "input.done")
        assert json.loads(socket.recv(60)) == {"type": "session.done", "total_sentences": 3}
    assert [utterance.text for utterance in engine.utterances] == ["One.", "Two.", "Three"]


def test_cancel_stops_the_speech_drops_the_rest_and_keeps_the_session(steered: Steer) -> None:
    served, engine = steered()
    engine.later_frames_gate.clear()
    with open_socket(served) as socket:
        send(socket, "input.text", text="One two. Three four. Five")
        assert json.loads(socket.recv(60))["type"] == "audio.start"
        send(socket, "input.cancel")
        while isinstance(message := socket.recv(60), bytes):
            pass
        assert json.loads(message) == {"type": "audio.cancelled", "sentence_index": 0}
        served.until(running=0, cancelled=1)
        engine.later_frames_gate.set()
        send(socket, "input.text", text="Six seven")
        send(socket, "input.done")
        start, _, _ = sentence(socket)
        assert (start["sentence_index"], start["sentence_text"]) == (1, "Six seven")
        assert json.loads(socket.recv(60))["type"] == "session.done"


def test_cancel_after_the_last_text_ends_the_session(steered: Steer) -> None:
    served, engine = steered()
    engine.first_frame_gate.clear()
    with open_socket(served) as socket:
        send(socket, "input.text", text="One. Two. Three")
        send(socket, "input.done")
        served.until(running=1)
        send(socket, "input.cancel")
        assert json.loads(socket.recv(60))["type"] == "audio.cancelled"
        assert json.loads(socket.recv(60))["type"] == "session.done"
    served.until(running=0)


def test_disconnect_frees_the_row(steered: Steer) -> None:
    served, engine = steered()
    engine.first_frame_gate.clear()
    with open_socket(served) as socket:
        send(socket, "input.text", text="One. Two")
        send(socket, "input.done")
        served.until(running=1)
    served.until(running=0, cancelled=1)


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("no json", None),
        ("[]", None),
        (b"\x00\x01", "type"),
        ('{"type": "input.sing"}', "type"),
        ('{"type": "input.text"}', "text"),
        ('{"type": "input.text", "text": 5}', "text"),
        ('{"type": "session.config", "voice": "nobody"}', "voice"),
        ('{"type": "session.config", "speed": 9}', "speed"),
        ('{"type": "session.config", "cast": {"Anna": "anna"}}', "cast"),
        ('{"type": "session.config", "stream_format": "sse"}', "stream_format"),
        ('{"type": "session.config", "word_timestamps": true}', "word_timestamps"),
        ('{"type": "input.text", "text": "' + "a" * 17_000 + '"}', "text"),
    ],
)
def test_a_bad_message_is_reported_and_ends_the_session(
    untouched: Steered, message: str | bytes, param: str | None
) -> None:
    served, engine = untouched
    with open_socket(served) as socket:
        socket.send(message)
        event = json.loads(socket.recv(60))
        assert event["type"] == "error" and event["error"]["param"] == param
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(60)
        assert closed.value.rcvd and closed.value.rcvd.code == 1008
    assert not engine.utterances


@pytest.mark.parametrize("before", [["session.config"], ["input.text"], ["input.text", "input.cancel"]])
def test_settings_are_refused_after_earlier_settings_or_text(steered: Steer, before: list[str]) -> None:
    served, engine = steered()
    engine.first_frame_gate.clear()
    with open_socket(served) as socket:
        for kind in before:
            send(socket, kind, **({"text": "Hello. "} if kind == "input.text" else {}))
        send(socket, "session.config", speed=2)
        while json.loads(event := socket.recv(60))["type"] != "error":
            continue
        assert "before any text" in str(event)
    engine.first_frame_gate.set()


def test_pending_text_is_limited_in_characters_and_freed_once_spoken(steered: Steer) -> None:
    served, engine = steered()
    engine.first_frame_gate.clear()
    with open_socket(served) as socket:
        send(socket, "input.text", text="One. Two. ")  # the first is spoken, and waits for no more
        served.until(running=1)
        for _ in range(4):
            send(socket, "input.text", text=("a" * 3998 + ". "))
        send(socket, "input.text", text="b" * 500)
        event = json.loads(socket.recv(60))
        assert event["type"] == "error" and "16384 characters" in event["error"]["message"]
    engine.first_frame_gate.set()
    with open_socket(served) as socket:
        send(socket, "session.config", max_new_tokens=1)
        for _ in range(6):
            send(socket, "input.text", text="word " * 1000 + "end. And ")
            send(socket, "input.cancel")
            send(socket, "input.flush")
        send(socket, "input.text", text="The last one.")
        send(socket, "input.done")
        while isinstance(message := socket.recv(60), bytes) or json.loads(message)["type"] != "session.done":
            assert isinstance(message, bytes) or json.loads(message)["type"] != "error", message


def test_only_known_keys_and_origins_are_admitted(steered: Steer) -> None:
    from studio.settings import read_keys

    served, _ = steered(api_keys=read_keys("first"), cors_origins=("https://good.example",))
    with pytest.raises(InvalidStatus) as refused:
        open_socket(served)
    assert refused.value.response.status_code == 403
    key = {"Authorization": "Bearer first"}
    with pytest.raises(InvalidStatus):
        open_socket(served, additional_headers=key, origin="https://bad.example")
    for origin in (None, "https://good.example", served.url):
        with open_socket(served, additional_headers=key, origin=origin) as socket:
            send(socket, "input.done")
            assert json.loads(socket.recv(60)) == {"type": "session.done", "total_sentences": 0}


@pytest.mark.parametrize(
    ("path", "first_message"),
    [
        ("/v1/audio/speech/stream", '{"type": "input.text", "text": "One"}'),
        ("/v1/tts/live", b"\x82\xa5event\xa5start\xa7request\x81\xa4text\xa0"),
        ("/elevenlabs/v1/text-to-speech/anna/stream-input", '{"text": " "}'),
    ],
)
def test_sockets_are_limited_in_number_and_silence(
    steered: Steer, monkeypatch: pytest.MonkeyPatch, path: str, first_message: str | bytes
) -> None:
    def closing_words(socket: ClientConnection) -> str:
        words = str(socket.recv(60))
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(60)
        assert closed.value.rcvd and closed.value.rcvd.code == 1008
        return words

    monkeypatch.setattr("studio.api.text_socket.MAX_SOCKETS", 2)
    served, _ = steered()
    url = served.url.replace("http://", "ws://") + path
    speech = served.app.state.studio.speech
    with connect(url, proxy=None) as first, connect(url, proxy=None):
        first.send(first_message)  # one that speaks counts as one that waits does
        wait_until_true(lambda: sum(map(len, speech.sockets.values())) == 2)
        with connect(url, proxy=None) as third:
            assert "you have 2 open sockets" in closing_words(third)
    wait_until_true(lambda: not speech.sockets)
    monkeypatch.setattr("studio.api.text_socket.FIRST_SECONDS", 0.01)
    with connect(url, proxy=None) as late:
        assert "no message came within 0.01 s" in closing_words(late)


def test_socket_is_closed_if_nothing_is_said_in_either_direction(
    steered: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, _ = steered()
    with open_socket(served) as socket:
        send(socket, "input.text", text="One.")
        send(socket, "input.flush")
        sentence(socket)
        monkeypatch.setattr("studio.api.text_socket.IDLE_SECONDS", 0.01)
        send(socket, "input.text", text="Two.")
        error = json.loads(socket.recv(60))["error"]
        assert "no message came within 0.01 s" in error["message"]
