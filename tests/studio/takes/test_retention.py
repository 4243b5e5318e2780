"""The retention: callers who leave and agents push out nothing that a person made, and nobody another's takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from protocols.fish.message_pack import pack
from studio.library import Library
from studio.library.take import Take
from studio.settings import read_keys
from tests.protocols.fish.test_live import open_live, start, until_finish
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.library.worker import stored_take
from tests.studio.takes.test_history import SPEECH, TAKES, ids, library_of, speak

Steer = Callable[..., Steered]


def kept_texts(client: httpx.Client) -> list[str]:
    return [take["excerpt"] for take in client.get(TAKES).json()["data"] if take["stored"]]


def removed_next(client: httpx.Client) -> list[tuple[str, str]]:
    retention = client.get(TAKES).json()["retention"]
    return [(take["kind"], take["excerpt"]) for take in retention["removes_next"]]


def test_callers_who_leave_before_the_audio_push_out_nothing(steered: Steer) -> None:
    served, engine = steered(keep_takes=5)
    with served.client() as client:
        kept = speak(client, "Keep me.")
        engine.first_frame_gate.clear()
        for number in range(12):
            served.hang_up(SPEECH, {"input": f"Left {number}.", "voice": "random"}, running=1)
            served.until(running=0)
        engine.first_frame_gate.set()
        assert ids(client) == [kept]
        assert client.get(f"{TAKES}/{kept}/audio").status_code == 200


def test_takes_cut_off_are_counted_separately(steered: Steer) -> None:
    served, engine = steered(keep_takes=2)
    with served.client() as client:
        speak(client, "Keep me.")
        engine.later_frames_gate.clear()
        for number in range(3):
            with client.stream("POST", SPEECH, json={"input": f"Cut {number}.", "response_format": "wav"}) as answer:
                pieces = answer.iter_raw()  # losing this reference would close the connection
                next(pieces)
            served.until(running=0)
        assert kept_texts(client) == ["Cut 2.", "Cut 1.", "Keep me."]
        assert removed_next(client) == [("cut_off", "Cut 1.")]


def test_live_takes_of_agents_are_counted_separately(steered: Steer) -> None:
    served, _ = steered(keep_takes=2)
    with served.client() as client:
        speak(client, "Keep me.")
        with open_live(served) as socket:
            for number in range(3):
                start(socket, text=f"Live {number}.")
                socket.send(pack({"event": "stop"}))
                until_finish(socket)
        assert kept_texts(client) == ["Live 2.", "Live 1.", "Keep me."]
        speak(client, "An agent's.", live=True)
        assert kept_texts(client) == ["An agent's.", "Live 2.", "Keep me."]
        assert client.post("/v1/tts", json={"text": "Over HTTP."}).status_code == 200
        assert kept_texts(client) == ["Over HTTP.", "An agent's.", "Keep me."]
        assert removed_next(client) == [("live", "An agent's.")]
        speak(client, "The second.")
        assert removed_next(client) == [("finished", "Keep me."), ("live", "An agent's.")]


def test_takes_of_a_batch_are_finished_unless_they_say_otherwise(steered: Steer) -> None:
    served, _ = steered(keep_takes=2)
    with served.client() as client:
        assert client.post("/v1/tts", json={"text": "Live."}).status_code == 200
        for text in ("First.", "Second.", "Third."):
            batch = {"items": [{"input": text, "voice": "random"}]}
            assert client.post(f"{SPEECH}/batch", json=batch).json()["succeeded"] == 1
        assert kept_texts(client) == ["Third.", "Second.", "Live."]
        assert removed_next(client) == [("finished", "Second.")]
        items = [{"input": "An agent's.", "live": True}, {"input": "Another's.", "live": True}]
        assert client.post(f"{SPEECH}/batch", json={"items": items, "voice": "random"}).json()["succeeded"] == 2
        assert {"Third.", "Second."} < set(kept_texts(client)) and removed_next(client)[0] == ("finished", "Second.")
        assert client.get("/v1/trash").json()["data"] == [], "the limit was not lowered"


def test_each_key_has_its_own_retention(steered: Steer) -> None:
    served, _ = steered(keep_takes=2, api_keys=read_keys("key-a,key-b"))
    anna, bert = (served.client(headers={"Authorization": f"Bearer key-{name}"}) for name in "ab")
    with anna, bert:
        for text in ("First.", "Second."):
            speak(anna, text)
        for number in range(4):
            speak(bert, f"Number {number}.")
        assert kept_texts(anna) == ["Second.", "First."] and kept_texts(bert) == ["Number 3.", "Number 2."]
        assert removed_next(bert) == [("finished", "Number 2.")]


@pytest.mark.parametrize("most_bytes", [250, 350])
def test_beyond_the_size_those_cut_off_go_first_and_then_live_ones(tmp_path: Path, most_bytes: int) -> None:
    library = Library(tmp_path)
    kinds = ({"state": "finished"}, {"state": "finished", "live": True}, {"state": "cancelled"})
    for number, fields in enumerate((*kinds, *kinds)):
        library.takes.add(Take(f"req_{number}", 1.0, "anna", 1, text="Hi.", **fields), b"%d" % number * 100)  # type: ignore[arg-type]
    library.takes.keep_newest(10, most_bytes)
    expected = {250: ["req_3", "req_0"], 350: ["req_4", "req_3", "req_0"]}
    assert [take.id for take in library.takes.page()] == expected[most_bytes]


def test_takes_of_keys_stay_without_keys_and_those_beyond_a_lowered_limit_are_in_the_trash(tmp_path: Path) -> None:
    library = Library(tmp_path)
    for number, caller in enumerate(["owner anna", "key 1234"] * 3 + ["address ::1"] * 3):
        library.takes.add(Take(f"req_{number}", 1.0, "anna", 1, "finished", caller, "Hi."), b"%d" % number)
    assert library.takes.removed_next(3, 1000)["finished"].id == "req_6"
    assert library.takes.keep_newest(2, 1000) == 1
    assert [take.id for take in library.takes.page()] == ["req_8", "req_7", *(f"req_{n}" for n in range(5, -1, -1))]
    assert library.takes.keep_newest(1, 1000, "owner anna", most=1) == 0
    assert {item.id for item in library.trash.page(None)} == {"req_0", "req_2"}
    assert library.takes.keep_newest(3, 1, "key 1234", most=1) == 0, "fewer takes have fewer bytes, too"
    assert {item.id for item in library.trash.page(None)} == {f"req_{n}" for n in range(4)}


def test_a_lowered_number_moves_even_a_few_takes_to_the_trash_and_later_ones_are_removed(
    steered: Steer, tmp_path: Path
) -> None:
    for number, texts in ((4, ("One.", "Two.", "Three.")), (2, ("Four.", "Five."))):
        served, _ = steered(home=str(tmp_path / "home"), keep_takes=number)
        with served.client() as client:
            for text in texts:
                speak(client, text)
            assert kept_texts(client) == list(reversed(texts))
            trash = client.get("/v1/trash").json()["data"]
    assert {item["title"] for item in trash} == {"One.", "Two."}, "Three. made room for Five."


def test_take_that_is_removed_for_the_size_is_shown(tmp_path: Path) -> None:
    library = Library(tmp_path)
    for number in range(3):
        library.takes.add(stored_take(f"req_{number}", "Hi.", "anna"), b"%d" % number * 100)
    assert library.takes.removed_next(10, 400) == {}
    assert [take.id for take in library.takes.removed_next(10, 350).values()] == ["req_0"]


def test_number_of_starred_takes_is_limited(steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.library.take_repository.MAX_STARRED", 2)
    served, _ = steered(api_keys=read_keys("key-a,key-b"))
    with served.client(headers={"Authorization": "Bearer key-a"}) as client:
        takes = [speak(client, f"Number {number}.") for number in range(3)]
        for _ in range(2):  # starring one again changes nothing
            for take_id in takes[:2]:
                assert client.patch(f"{TAKES}/{take_id}", json={"starred": True}).status_code == 200
        refused = client.patch(f"{TAKES}/{takes[2]}", json={"starred": True})
        assert_envelope(refused, 400, "starred")
        assert "unstar" in refused.json()["error"]["message"]
        client.patch(f"{TAKES}/{takes[0]}", json={"starred": False})
        assert client.patch(f"{TAKES}/{takes[2]}", json={"starred": True}).status_code == 200
    with served.client(headers={"Authorization": "Bearer key-b"}) as other:
        assert other.patch(f"{TAKES}/{speak(other)}", json={"starred": True}).status_code == 200
    assert len(library_of(served).takes.page()) == 4
