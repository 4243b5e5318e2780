"""Deleted voices: listed in pages and searched like other voices as long as they can be restored."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from tests.studio.answers import assert_envelope
from tests.studio.clips import WORDS, spoken
from tests.studio.conftest import Steered

VOICES = "/v1/voices"
Steer = Callable[..., Steered]


def deleted_names(client: httpx.Client, **wanted: str | int) -> list[str]:
    """The names of the voices of all pages."""
    names: list[str] = []
    after: dict[str, str | int] = {}
    while True:
        page = client.get(VOICES, params={"deleted": "true", **wanted, **after}).json()
        names += [voice["name"] for voice in page["data"]]
        if not page["has_more"]:
            return names
        assert len(page["data"]) == wanted["limit"] and page["last_id"] != after.get("after")
        after = {"after": page["last_id"]}


def test_deleted_voices_are_listed_in_pages_and_searched_like_others(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        for name, gender, tags in (("Ada", "female", "warm"), ("Carl", "male", "warm, low"), ("Dora", "female", "")):
            fields = {"name": name, "ref_text": WORDS, "gender": gender, "tags": tags}
            creation = client.post("/v1/audio/voices", data=fields, files={"audio_sample": ("a.wav", spoken())})
            assert creation.status_code == 200
            assert client.delete(f"{VOICES}/{name}").status_code == 200
        assert (
            deleted_names(client)
            == deleted_names(client, limit=1)
            == deleted_names(client, limit=2)
            == ["Dora", "Carl", "Ada"]
        )
        assert deleted_names(client, order="name", limit=2) == ["Dora", "Carl", "Ada"]
        assert deleted_names(client, gender="female", limit=1) == ["Dora", "Ada"]
        assert deleted_names(client, tag="warm") == ["Carl", "Ada"]
        assert deleted_names(client, q="ad") == ["Ada"] and deleted_names(client, q="anna") == []
        assert deleted_names(client, favourite="true") == []


def test_page_cursor_must_be_a_voice_of_the_same_list(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        anna = client.get(f"{VOICES}/anna").json()["id"]
        assert client.delete(f"{VOICES}/{anna}").status_code == 200
        assert client.get(VOICES, params={"deleted": "true", "after": anna}).json()["data"] == []
        assert_envelope(client.get(VOICES, params={"after": anna}), 404, "after")
        assert client.post(f"{VOICES}/{anna}/restore").status_code == 200
        assert_envelope(client.get(VOICES, params={"deleted": "true", "after": anna}), 404, "after")
