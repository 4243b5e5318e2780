"""WS /v1/tts/live: one continuous file per start, small messages, always a finish event, and no work left running."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from socket import SO_RCVBUF, SOL_SOCKET
from socket import socket as Socket
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, ConnectionClosedOK, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from protocols.fish import live
from protocols.fish.message_pack import pack, unpack
from studio.settings import read_keys
from tests.studio.conftest import Steered
from tests.studio.server import Served
from tests.studio.sounds import frames_of
from tests.waiting import wait_until_true

Steer = Callable[..., Steered]


def open_live(served: Served, path: str = "/v1/tts/live", **options: Any) -> ClientConnection:
    url = served.url.replace("http://", "ws://") + path
    return connect(url, proxy=None, **{"compression": None, "max_size": 64 * 1024} | options)


def send(socket: ClientConnection, event: str, **fields: Any) -> None:
    socket.send(pack({"event": event} | fields))


def start(socket: ClientConnection, **request: Any) -> None:
    send(socket, "start", request={"text": "", "format": "wav", "references": []} | request)


def receive(socket: ClientConnection) -> dict[str, Any]:
    data = socket.recv(60)
    assert isinstance(data, bytes)
    message: dict[str, Any] = unpack(data)
    return message


def until_finish(socket: ClientConnection) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    events = []
    while (event := receive(socket))["event"] == "audio":
        events.append(event)
    return events, event


def test_each_start_yields_one_continuous_file_and_another_may_follow(steered: Steer) -> None:
    served, engine = steered()
    with open_live(served) as socket:
        for voice in ("anna", "bert"):
            start(socket, reference_id=voice)
            for text in ("It costs ", "3.", "50 in all.", " And th", "at is it"):
                send(socket, "text", text=text)
            send(socket, "stop")
            events, finish = until_finish(socket)
            audio = b"".join(event["audio"] for event in events)
            assert finish == {"event": "finish", "reason": "stop"}
            assert audio.count(b"RIFF") == 1
            assert frames_of(audio) == (44_100, 9 * 6 * 2048)
    assert [utterance.text for utterance in engine.utterances] == ["It costs 3.50 in all.", "And that is it"] * 2
    assert [turn.text for turn in engine.utterances[1].history] == ["It costs 3.50 in all."]
    assert not engine.utterances[2].history  # each start begins a new conversation


def test_start_text_precedes_later_text_and_flush_speaks_at_once(steered: Steer) -> None:
    served, engine = steered()
    with open_live(served) as socket:
        start(socket, text="Well ", format="pcm")
        send(socket, "text", text="then")
        send(socket, "flush")
        assert len(receive(socket)["audio"]) > 0
        assert engine.utterances[0].text == "Well then"
        send(socket, "flush")  # with no pending text
        send(socket, "stop")
        assert until_finish(socket)[1]["reason"] == "stop"


def test_text_without_words_gives_no_audio_and_no_error(steered: Steer) -> None:
    served, _ = steered()
    with open_live(served) as socket:
        for text in ("", " ", ". ", "... ?! ", "🙂"):
            start(socket, text=text)
            send(socket, "flush")
            send(socket, "stop")
            assert until_finish(socket) == ([], {"event": "finish", "reason": "stop"}), text


def test_unfinished_sentence_is_spoken_once_it_exceeds_chunk_length(steered: Steer) -> None:
    served, engine = steered()
    words = [f" word{number}" for number in range(60)]
    words[14:16] = [" “Or", " don't.” The"]  # cut where the end of a sentence is not decided yet
    with open_live(served) as socket:
        start(socket, chunk_length=100, format="pcm")
        for word in words:
            send(socket, "text", text=word)
        assert receive(socket)["event"] == "audio"  # before the stop
        send(socket, "stop")
        until_finish(socket)
    assert " ".join(utterance.text for utterance in engine.utterances).split() == "".join(words).split()
    assert all(len(utterance.text) <= 110 for utterance in engine.utterances)


def test_sentences_of_a_speaker_keep_its_voice(steered: Steer) -> None:
    served, engine = steered()
    with open_live(served) as socket:
        start(socket, reference_id=["anna", "bert"], format="pcm")
        send(socket, "text", text="<|speaker:1|>Hello. How are you? <|speaker:0|>Fine.")
        send(socket, "stop")
        until_finish(socket)
    assert [utterance.text for utterance in engine.utterances] == ["Hello.", "How are you?", "Fine."]
    voices = [utterance.references[0].text for utterance in engine.utterances]
    assert [text.split()[-1] for text in voices] == ["bert.", "bert.", "anna."]


@pytest.mark.parametrize("audio_format", ["wav", "mp3", "opus", "pcm", "flac"])
def test_audio_messages_are_below_64_kib_in_every_format(untouched: Steered, audio_format: str) -> None:
    served, _ = untouched
    with open_live(served) as socket:  # accepts messages of up to 64 KiB
        start(socket, text="word " * 60, format=audio_format)
        send(socket, "stop")
        events, finish = until_finish(socket)
    assert events and finish["reason"] == "stop"


def test_sentences_have_word_times(steered: Steer) -> None:
    served, _ = steered()
    with open_live(served, "/v1/tts/live/with-timestamp") as socket:
        start(socket, text="Hello there. Bye.", format="wav")
        send(socket, "stop")
        events, _ = until_finish(socket)
    assert frames_of(b"".join(event["audio"] for event in events)) == (44_100, 3 * 6 * 2048)
    timed = [event for event in events if event.get("alignment")]
    assert [event["chunk_seq"] for event in timed] == [0, 1]
    words = [[segment["text"] for segment in event["alignment"]["segments"]] for event in timed]
    assert words == [["Hello", "there"], ["Bye"]]
    assert timed[1]["chunk_audio_offset_sec"] == pytest.approx(2 * 6 * 2048 / 44_100, abs=0.001)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([pack({"event": "text", "text": "a"})], "came before start"),
        ([pack({"event": "dance"})], "unknown event"),
        ([pack({"event": "start"})], "needs a request"),
        ([pack({"event": "start", "request": {"reference_id": "nobody"}})], "nobody"),
        ([pack({"event": "start", "request": {"format": "exe"}})], "format"),
        (
            [pack({"event": "start", "request": {"references": [{"audio": b"x", "text": ""}]}})],
            "the text of a reference is blank",
        ),
        ([pack({"event": "start", "request": {}})] * 2, "before the stop"),
        ([pack({"event": "start", "request": {}}), pack({"event": "text", "text": 5})], "must be a string"),
        (
            [pack({"event": "start", "request": {}}), pack({"event": "text", "text": "a" * 20_000})],
            "characters are waiting",
        ),
        ([b"\xc1"], "MessagePack"),
        ([pack([1])], "map"),
        (["text"], "binary"),
    ],
)
def test_error_is_reported_in_a_finish_event_and_closes_the_socket(
    untouched: Steered, messages: list[bytes | str], words: str
) -> None:
    served, _ = untouched
    with open_live(served) as socket:
        for data in messages:
            socket.send(data)
        _, finish = until_finish(socket)
        assert finish["reason"] == "error" and words in finish["message"]
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(60)
        assert closed.value.rcvd and closed.value.rcvd.code == 1008
    served.until(running=0, waiting=0)


def test_sockets_closed_without_a_stop_leave_no_running_work(steered: Steer) -> None:
    served, engine = steered()
    engine.later_frames_gate.clear()
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(open_live(served)) for _ in range(64)]
        for socket in sockets:
            start(socket, text="one two three. And more")
        served.until(running=2)
        for socket in sockets[::2]:
            socket.socket.close()  # without a closing handshake
    served.until(running=0, waiting=0)
    engine.later_frames_gate.set()
    with open_live(served) as socket:
        start(socket, text="Hello.")
        send(socket, "stop")
        assert until_finish(socket)[1]["reason"] == "stop"


def spoken(served: Served, path: str = "/v1/tts/live", **options: Any) -> bytes:
    with open_live(served, path, **options) as socket:
        start(socket, text="Hello.")
        send(socket, "stop")
        events, finish = until_finish(socket)
        assert finish == {"event": "finish", "reason": "stop"}
    return b"".join(event["audio"] for event in events)


def test_socket_waits_for_another_start_after_a_finish_then_closes(
    steered: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, _ = steered()
    with open_live(served) as socket:
        monkeypatch.setattr(live, "IDLE_SECONDS", 60.0)
        start(socket, text="Hello.")
        send(socket, "stop")
        assert until_finish(socket)[1]["reason"] == "stop"
        start(socket, text="Hello.")
        send(socket, "flush")
        assert receive(socket)["event"] == "audio"  # no longer waiting for a start
        monkeypatch.setattr(live, "IDLE_SECONDS", 0.01)
        send(socket, "stop")
        assert until_finish(socket)[1]["reason"] == "stop"
        with pytest.raises(ConnectionClosedOK) as closed:
            socket.recv(60)
        assert closed.value.rcvd and closed.value.rcvd.code == 1000


def test_client_may_be_silent_before_a_start_and_between_texts(steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than after a finish; pings are answered in the meantime."""
    served, _ = steered()
    monkeypatch.setattr(live, "IDLE_SECONDS", 0.0)
    with open_live(served) as socket:
        assert socket.ping().wait(60)
        start(socket, text="Hello.")
        send(socket, "flush")
        assert receive(socket)["event"] == "audio"
        assert socket.ping().wait(60)
        send(socket, "text", text="More.")
        send(socket, "stop")
        assert until_finish(socket)[1]["reason"] == "stop"


def test_client_that_stops_reading_is_disconnected_and_frees_its_row(
    steered: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.api.text_socket.SEND_SECONDS", 0.3)
    served, engine = steered()
    slow = socket_with_small_buffer(served)
    with open_live(served, sock=slow, max_queue=1) as socket:
        start(socket, text="word " * 3000, format="wav")
        send(socket, "stop")
        wait_until_true(lambda: engine.utterances)
        served.until(running=0, waiting=0)
        socket.socket.close()
    assert spoken(served)


def socket_with_small_buffer(served: Served) -> Socket:
    slow = Socket()
    slow.setsockopt(SOL_SOCKET, SO_RCVBUF, 4096)
    slow.connect(("127.0.0.1", int(served.url.rpartition(":")[2])))
    return slow


def test_close_right_after_a_stop_drops_the_work_and_a_reconnect_is_served(steered: Steer) -> None:
    served, engine = steered()
    engine.later_frames_gate.clear()
    for _ in range(3):  # as Pipecat does at the end of a call, and to reconnect after an interruption
        with open_live(served) as socket:
            start(socket, text="one two three four")
            send(socket, "stop")
        served.until(running=0, waiting=0)
    engine.later_frames_gate.set()
    assert spoken(served)


@pytest.mark.parametrize("path", ["//v1/tts/live", "//v1/tts/live/with-timestamp"])
def test_base_url_with_a_trailing_slash_works(steered: Steer, path: str) -> None:
    served, _ = steered()
    assert spoken(served, path)[:4] == b"RIFF"
    answer = httpx.post(f"{served.url}//v1/tts", json={"text": "Hello."})
    assert answer.headers["content-type"] == "audio/mpeg"
    assert httpx.post(f"{served.url}//v1/tts", json={}).json().keys() == {"status", "message"}


def test_messages_may_be_compressed(steered: Steer) -> None:
    served, _ = steered()
    assert len(spoken(served, compression="deflate")) == len(spoken(served))


def test_socket_speech_counts_towards_the_callers_limits(steered: Steer) -> None:
    served, engine = steered(max_per_caller=1, requests_per_minute=3, max_rows=4)
    engine.later_frames_gate.clear()
    with open_live(served) as first, open_live(served) as second:
        start(first, text="one two. ")
        send(first, "flush")
        served.until(running=1)
        start(second, text="Hello.")
        send(second, "stop")
        _, finish = until_finish(second)
        assert finish["reason"] == "error" and "at most 1 at a time are allowed" in finish["message"]
        engine.later_frames_gate.set()
        send(first, "text", text="That is it. So it was. This is more. Bye.")
        send(first, "stop")
        _, finish = until_finish(first)
        assert finish["reason"] == "error" and "at most 3 requests a minute" in finish["message"]


def test_starts_may_be_queued_but_not_without_limit(steered: Steer) -> None:
    served, engine = steered()
    engine.later_frames_gate.clear()
    with open_live(served) as socket:
        for _ in range(live.MAX_STARTS + 2):
            start(socket, text="one two three.")
            send(socket, "stop")
        _, finish = until_finish(socket)
        assert finish["reason"] == "error" and "starts are queued" in finish["message"]


def test_a_socket_needs_a_key(steered: Steer) -> None:
    served, _ = steered(api_keys=read_keys("secret"))
    with pytest.raises(InvalidStatus):
        open_live(served)
    with open_live(served, additional_headers={"Authorization": "Bearer secret"}) as socket:
        start(socket, text="Hello.")
        send(socket, "stop")
        assert until_finish(socket)[1]["reason"] == "stop"
