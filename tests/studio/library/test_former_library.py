"""A library made before the baseline of the tables: it opens and answers as before; older ones are refused.

`tests/data/former-library` contains the library and that studio's responses. The library has two voices, takes
(regenerated, cut, starred, deleted, a dialogue, shared), a project (with a regenerated part, one with two takes, a
stale one, two merged ones, a deleted one), one with a cast (eight of its parts are deleted or merged, and a character
is), and a deleted project. Deletions and the link expire in the year 2100.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from longform.library.project_repository import ProjectLibrary
from studio import ROOT
from studio.errors import LibraryUnavailable
from studio.library import Backup
from tests.studio.conftest import Steered

DATA = Path(__file__).parents[2] / "data" / "former-library"
Steer = Callable[..., Steered]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The former library, unpacked."""
    shutil.unpack_archive(DATA / "library.zip", tmp_path / "home")
    return tmp_path / "home"


def addresses(client: httpx.Client) -> Iterator[str]:
    """Addresses of everything readable in the library, including takes that are not listed."""
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
    """The responses by address: the status, and JSON as it is or a hash of other content."""
    by_address: dict[str, Any] = {}
    for address in addresses(client):
        answer = client.get(address)
        by_address[address] = [answer.status_code, _content(answer)]
    return by_address


def _content(answer: httpx.Response) -> Any:
    kind = answer.headers["content-type"].partition(";")[0]
    if answer.is_error:
        return answer.json()["error"]["code"]
    if kind == "application/json":
        return {name: value for name, value in answer.json().items() if name != "retention"}  # depends on the settings
    if kind == "application/zip":
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            return {name: _hash(archive.read(name)) for name in archive.namelist() if name != "manifest.json"}
    return None if kind == "text/html" else _hash(answer.content)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def served_from(home: Path, steered: Steer, **settings: object) -> Steered:
    return steered(home=str(home), share_days=30, **settings)


def contains(now: Any, before: Any) -> bool:
    """Whether the response now contains all of the earlier one; more fields are allowed, and fractions of seconds."""
    if isinstance(now, dict) and isinstance(before, dict):
        return all(name in now and contains(now[name], value) for name, value in before.items())
    if isinstance(now, list) and isinstance(before, list):
        return len(now) == len(before) and all(map(contains, now, before))
    return bool(now == before or (isinstance(now, float) and int(now) == before))


def test_every_route_answers_as_before(home: Path, steered: Steer) -> None:
    served, _ = served_from(home, steered)
    with served.client() as client:
        now = answers(client)
    before = json.loads((DATA / "answers.json").read_text())
    assert list(now) == list(before)
    for address, answer in now.items():
        assert contains(answer, before[address]), (address, answer, before[address])


def test_deleted_part_is_restored_and_a_sentence_of_a_part_is_regenerated(home: Path, steered: Steer) -> None:
    served, _ = served_from(home, steered)
    with closing(sqlite3.connect(home / "library.db")) as db:
        [gone] = db.execute("select id from takes where deleted is not null").fetchone()
        [deleted] = db.execute("select id from projects where deleted is not null and title != ''").fetchone()
        [part] = db.execute("select id from all_parts where text = 'To be deleted.'").fetchone()
    with served.client() as client:
        [_, project] = client.get("/v1/projects").json()["data"]
        at = f"/v1/projects/{project['id']}"
        assert client.post(f"/v1/takes/{gone}/restore").json()["text"] == "It goes away."
        assert client.post(f"/v1/projects/{deleted}/restore").json()["parts"]["done"] == 1
        assert client.post(f"{at}/parts/restore", json={"ids": [part]}).json()["count"] == 1
        [back] = [one for one in client.get(f"{at}/parts").json()["data"] if one["id"] == part]
        sound = client.get(f"{at}/takes/{back['chosen']}/audio")
        assert back["state"] == "done" and sound.status_code == 200 and len(sound.content) > 44
        first = client.get(f"{at}/parts").json()["data"][0]
        body = {"text": first["text"], "start": 0, "end": 1}
        after = client.post(f"{at}/parts/{first['id']}/regenerate", json=body).json()
        assert len(after["takes"]) == len(first["takes"]) + 1 and after["chosen"] == after["takes"][0]["id"]


def test_deleted_and_merged_parts_return_to_their_places(home: Path) -> None:
    library = ProjectLibrary(home)
    [arranged, _] = library.projects.page(None)
    numbers = [f"Part number {number}." for number in range(14)]
    texts = [part.text for part in library.projects.parts(arranged.id, None)]
    assert texts == [numbers[12], *numbers[1:3], "Inserted.", numbers[7], " ".join(numbers[8:10]), *numbers[10:12]]
    gone = [item.id for item in library.trash.page(None) if item.kind == "part" and item.project_id == arranged.id]
    library.arrangement.restore(arranged.id, None, gone)
    parts = library.projects.parts(arranged.id, None)
    assert [part.text for part in parts] == [
        *(numbers[0], numbers[12], *numbers[1:7], "Inserted.", *numbers[7:12], numbers[13]),
    ]
    assert {part.text: part.chapter for part in parts if part.chapter} == {numbers[0]: "One", numbers[6]: "Two"}
    assert [part.text for part in parts if part.continues] == [numbers[3], numbers[5], numbers[9], numbers[11]]
    [character] = [item for item in library.trash.page(None) if item.kind == "character"]
    library.trash.restore([("character", character.id)], None)
    assert {member.name for member in library.cast.members(arranged.id, None)} == {"", "Tom Reed", "Thomas"}


def tables(path: Path) -> set[tuple[str, str, str]]:
    """Types, names and SQL of everything in a database's schema, without spaces, quotation marks and the reference from
    takes to parts."""
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("select type, name, coalesce(sql, '') from sqlite_master").fetchall()
    return {(kind, name, re.sub(r'[\s";]|references "all_parts" \(id\)', "", sql.lower())) for kind, name, sql in rows}


def test_baseline_has_the_tables_of_the_former_library(home: Path) -> None:
    ProjectLibrary(home)
    ProjectLibrary(home / "new")
    assert tables(home / "library.db") == tables(home / "new" / "library.db")


def test_library_older_than_the_former_one_is_refused_with_a_remedy(home: Path) -> None:
    with closing(sqlite3.connect(home / "library.db")) as db, db:
        db.execute("delete from _sqlite_migrations where name = 'm034_favourites'")
    with pytest.raises(LibraryUnavailable, match="open it once with the version of commit 6db5e448"):
        ProjectLibrary(home)


def test_interrupted_migration_leaves_the_library_as_it_was(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise RuntimeError("killed")

    before = tables(home / "library.db")
    with monkeypatch.context() as patched:
        patched.setattr("longform.library.project_schema._note_chapters", killed)
        with pytest.raises(RuntimeError, match="killed"):
            ProjectLibrary(home)
    assert tables(home / "library.db") == before
    test_deleted_and_merged_parts_return_to_their_places(home)


def test_library_of_a_newer_version_is_refused_with_a_remedy(home: Path) -> None:
    ProjectLibrary(home)
    with closing(sqlite3.connect(home / "library.db")) as db, db:
        db.execute("insert into _sqlite_migrations (migration_set, name) values ('studio', 'm999_of_tomorrow')")
    with pytest.raises(LibraryUnavailable, match="newer version of the studio; update"):
        ProjectLibrary(home)


OPEN = """
import os, sys
from pathlib import Path
from longform.library.project_repository import ProjectLibrary

if os.getuid() == 0:  # whom no permission stops
    os.setuid(65534)
ProjectLibrary(Path(sys.argv[1]))
"""


@pytest.mark.posix
def test_unwritable_former_library_is_reported(home: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        old = Path(shutil.copytree(home, Path(folder) / "home"))
        for path in (old, *old.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        command = [sys.executable, "-c", OPEN, str(old)]
        opened = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        for path in (old, *old.rglob("*")):
            path.chmod(0o700)
    assert "cannot be written; allow the studio's user to write there" in opened.stderr


def test_backup_of_a_former_library_is_restored_with_its_parts(home: Path, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    shutil.copytree(home / "audio", copies / "audio")
    shutil.copyfile(home / "library.db", copies / "backup-1.db")
    Backup(tmp_path / "new", copies).restore()
    library = ProjectLibrary(tmp_path / "new")
    [_, project] = library.projects.page(None)
    takes = [take for part in library.projects.parts(project.id, None) for take in part.takes]
    assert len(takes) == 7 and all(library.files.read(take.audio) for take in takes)
