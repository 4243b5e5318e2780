"""Lists ask the library as often for many items as for few."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from studio.library import store
from tests.longform.test_projects import PROJECTS
from tests.studio.clips import WORDS, spoken
from tests.studio.conftest import Steered

FEW, MANY = 2, 6
EACH_ALONE = {"/v1/takes/export"}
"""Reads at most 200 takes one by one, beside the files of each."""


def add_items(client: httpx.Client, number: int) -> None:
    """A voice, a consent, a take, an entry of the dictionary, a project, and one in the trash."""
    clip, name = ("a.wav", spoken()), f"item {number}"
    voice = {"name": name, "ref_text": WORDS}
    client.post("/v1/audio/voices", data=voice, files={"audio_sample": clip}).raise_for_status()
    consent = {"name": name, "language": "en"}
    client.post("/v1/audio/voice_consents", data=consent, files={"recording": clip}).raise_for_status()
    client.post("/v1/audio/speech", json={"input": name}).raise_for_status()
    client.post("/v1/pronunciations", json={"phrase": f"word{number}", "said": "x"}).raise_for_status()
    projects = [client.post(PROJECTS, json={"input": name}).raise_for_status().json() for _ in range(2)]
    client.delete(f"{PROJECTS}/{projects[0]['id']}").raise_for_status()


def test_lists_ask_as_often_for_many_items_as_for_few(
    steered: Callable[..., Steered], monkeypatch: pytest.MonkeyPatch
) -> None:
    served, _ = steered()
    statements = 0

    def counted(connection: sqlite3.Connection, *statement: Any) -> sqlite3.Cursor:
        nonlocal statements
        statements += 1
        return sqlite3.Connection.execute(connection, *statement)

    used: dict[str, list[int]] = {}
    with served.client() as client:
        documented = client.get("/openapi.json").json()["paths"]
        lists = [path for path, kinds in documented.items() if "get" in kinds and "{" not in path]
        assert {"/v1/voices", "/v1/takes", "/v1/trash", "/v1/projects"} <= set(lists)
        for begin, end in ((0, FEW), (FEW, MANY)):
            for number in range(begin, end):
                add_items(client, number)
            client.get("/v1/takes").raise_for_status()  # all takes are stored by now
            with monkeypatch.context() as patch:
                patch.setattr(store._Connection, "execute", counted)
                for path in lists:
                    counts = []
                    for _ in range(3):  # the end of the previous answer may still be read in another thread
                        statements = 0
                        client.get(path)
                        counts.append(statements)
                    used.setdefault(path, []).append(min(counts))
    assert {path: count for path, count in used.items() if count[0] != count[1]}.keys() <= EACH_ALONE, used
