"""A library that version 24 of the tables has written: it opens, every route answers as before, and a crash is no loss.

`tests/data/library-v24` has the library and what that studio answered. In it: two voices, takes (regenerated, cut,
starred, deleted, a dialogue, one that is shared), a project (a regenerated part, one with two takes, a stale one, two
that were merged, a deleted one), and a deleted project. Deletions and the link do not expire until the year 2100.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.studio.conftest import Steered

DATA = Path(__file__).parents[2] / "data" / "library-v24"
Steer = Callable[..., Steered]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The old library, unpacked."""
    shutil.unpack_archive(DATA / "library.zip", tmp_path / "home")
    return tmp_path / "home"


def addresses(client: httpx.Client) -> Iterator[str]:
    """Everything that can be read in the library, takes that are listed nowhere too."""
    yield from ("/v1/takes", "/v1/takes?q=two", "/v1/takes?starred=true", "/v1/takes?voice=anna", "/v1/takes?limit=2")
    yield from ("/v1/takes/export", "/v1/voices", "/v1/pronunciations", "/v1/projects")
    for take in client.get("/v1/takes").json()["data"]:
        at = f"/v1/takes/{take['id']}"
        yield from (at, f"{at}/audio", f"{at}/timestamps?of=word", f"{at}/timestamps?of=sentence", f"{at}/shares")
        yield from (share["path"] for share in client.get(f"{at}/shares").json()["data"])
    for voice in client.get("/v1/voices").json()["data"]:
        yield f"/v1/voices/{voice['id']}"
    for project in client.get("/v1/projects").json()["data"]:
        at = f"/v1/projects/{project['id']}"
        yield from (at, f"{at}/parts", f"{at}/timeline?partial=true", f"{at}/subtitles?partial=true")
        yield from (f"{at}/audio?partial=true", f"{at}/zip?partial=true")
        for part in client.get(f"{at}/parts").json()["data"]:
            for take in part["takes"]:
                yield from (f"{at}/takes/{take['id']}/audio", f"{at}/takes/{take['id']}/timestamps?of=sentence")


def answers(client: httpx.Client) -> dict[str, Any]:
    """What is answered at each address: the status, and JSON as it is, of the rest the hash."""
    told: dict[str, Any] = {}
    for address in addresses(client):
        answer = client.get(address)
        told[address] = [answer.status_code, _content(answer)]
    return told


def _content(answer: httpx.Response) -> Any:
    kind = answer.headers["content-type"].partition(";")[0]
    if answer.is_error:
        return answer.json()["error"]["code"]
    if kind == "application/json":
        return {name: value for name, value in answer.json().items() if name != "retention"}  # which is the studio's
    if kind == "application/zip":
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            return {name: _hash(archive.read(name)) for name in archive.namelist() if name != "manifest.json"}
    return None if kind == "text/html" else _hash(answer.content)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def served_from(home: Path, steered: Steer, **settings: object) -> Steered:
    return steered(studio_home=str(home), share_days=30, **settings)


def holds(now: Any, before: Any) -> bool:
    """Whether all that was answered before is answered now; there may be more fields."""
    if isinstance(now, dict) and isinstance(before, dict):
        return all(name in now and holds(now[name], value) for name, value in before.items())
    if isinstance(now, list) and isinstance(before, list):
        return len(now) == len(before) and all(map(holds, now, before))
    return bool(now == before)


def test_every_route_answers_as_it_did(home: Path, steered: Steer) -> None:
    served, _ = served_from(home, steered)
    with served.client() as client:
        now = answers(client)
    before = json.loads((DATA / "answers.json").read_text())
    assert list(now) == list(before)
    for address, answer in now.items():
        assert holds(answer, before[address]), (address, answer, before[address])
