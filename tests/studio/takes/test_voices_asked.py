"""Takes filtered by voice and revision, under the voice's current and earlier names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.studio.conftest import Steered
from tests.studio.takes.test_history import ids, speak

Steer = Callable[..., Steered]


def test_takes_of_a_revision_are_found_by_every_name_of_its_voice(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        voice = client.get("/v1/voices/anna").json()
        first = speak(client, "One.", voice="anna")
        sample = voice["samples"][0]["id"]
        revised = client.patch(f"/v1/voices/anna/samples/{sample}", json={"text": "My name is Ann."})
        assert revised.json()["revision"] == 2
        second = speak(client, "Two.", voice="anna")
        dialogue = speak(client, "A: Three.\nB: Four.", cast={"A": "anna@1", "B": "bert"})
        for name in ("anna", "Anna", "ANNA", voice["id"]):
            assert ids(client, voice=f"{name}@1") == [dialogue, first]
            assert ids(client, voice=f"{name}@2") == [second]
            assert ids(client, voice=f"{name}@3") == []
        assert ids(client, voice="Bert@1") == [dialogue]
        assert client.patch("/v1/voices/anna", json={"name": "Zoë Q", "slug": "zoe"}).status_code == 200
        third = speak(client, "Five.", voice="zoe")
        for name in ("zoe", "zoë q", voice["id"]):
            assert ids(client, voice=name) == [third, dialogue, second, first]
            assert ids(client, voice=f"{name}@1") == [dialogue, first]
            assert ids(client, voice=f"{name}@2") == [third, second]
        assert ids(client, voice="anna@2") == [second]
        assert client.delete("/v1/voices/zoe").status_code == 200
        assert ids(client, voice=f"{voice['id']}@1") == [dialogue, first]


@pytest.mark.parametrize("name", ["clip@1", "random@1", "nobody@1", "@1", "@"])
def test_invalid_revision_finds_no_takes(steered: Steer, name: str) -> None:
    served, _ = steered()
    with served.client() as client:
        speak(client, voice="random")
        assert ids(client, voice=name) == []
