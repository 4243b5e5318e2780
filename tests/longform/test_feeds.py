"""Private podcast feeds: valid RSS, episodes that are made once and play, links that are revoked and expire."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from xml.etree import ElementTree

import av
import httpx
import pytest

from longform.feeds import Feeds
from longform.render import Masterings
from studio.library import shares
from studio.settings import read_keys
from tests.longform.test_projects import PROJECTS, Json, change, create_project, parts_of, until
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.documents import png
from tests.studio.server import Served

Steer = Callable[..., Steered]
KEYS: dict[str, object] = {"api_keys": read_keys("Ann=one,Bea=two")}
ITEMS = [
    {"input": "One.", "chapter": "First & <best>"},
    {"input": "Two three."},
    {"input": "Four.", "chapter": "Second"},
]
ITUNES = "{http://www.itunes.com/dtds/podcast-1.0.dtd}"


@pytest.fixture
def shared(steered: Steer, tmp_path: Path) -> tuple[Served, Json, Json]:
    """A studio with a finished project, and a link to its feed."""
    served, _ = steered(share_days=30, home=str(tmp_path / "home"))
    project = create_project(served, items=ITEMS, title="A Bük", author="I. M.", seed=3, start=True)
    until(served, project, "done")
    with served.client() as client:
        files = {"cover": ("x.png", png())}
        client.put(f"{PROJECTS}/{project['id']}/cover", files=files).raise_for_status()
        return served, project, client.post(f"{PROJECTS}/{project['id']}/feeds", json={"days": 7}).json()


def items_of(client: httpx.Client, link: Json) -> list[ElementTree.Element]:
    answer = client.get(link["path"])
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("application/rss+xml")
    return ElementTree.fromstring(answer.content).findall("channel/item")  # noqa: S314 - our own


def enclosure(item: ElementTree.Element) -> dict[str, str]:
    found = item.find("enclosure")
    assert found is not None
    return dict(found.attrib)


def test_podcast_app_gets_a_feed_with_a_playable_file_for_each_chapter(
    shared: tuple[Served, Json, Json], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, project, link = shared
    assert link["expires"] - link["created"] == 7 * 86_400 and link["project"] == project["id"]
    with served.client() as client:
        channel = ElementTree.fromstring(client.get(link["path"]).content).find("channel")  # noqa: S314 - our own
        assert channel is not None
        assert [channel.findtext(name) for name in ("title", f"{ITUNES}author", f"{ITUNES}block")] == [
            "A Bük", "I. M.", "Yes",
        ]  # fmt: skip
        proxied = client.get(
            link["path"], headers={"X-Forwarded-Host": "books.example, x", "X-Forwarded-Proto": "https"}
        )
        assert set(re.findall(r'(?:url|href)="(https?://[^/]*)', proxied.text)) == {"https://books.example"}
        image = channel.find(f"{ITUNES}image")
        assert image is not None
        cover = client.get(image.attrib["href"])
        assert cover.headers["content-type"] == "image/png" and image.attrib["href"].endswith("/cover.png")
        assert cover.content == png()
        items = channel.findall("item")
        assert [item.findtext("title") for item in items] == ["First & <best>", "Second"]
        assert [item.findtext("guid") for item in items] == [
            part["id"] for part in parts_of(served, project) if part["chapter"]
        ]
        assert len({item.findtext("pubDate") for item in items}) == 2
        for number, item in enumerate(items, start=1):
            file = enclosure(item)
            head, whole = client.head(file["url"]), client.get(file["url"])
            assert head.headers["content-length"] == whole.headers["content-length"] == file["length"]
            assert head.headers["content-type"] == file["type"] == "audio/mpeg"
            piece = client.get(file["url"], headers={"Range": "bytes=10-19"})
            assert (piece.status_code, piece.content) == (206, whole.content[10:20])
            with av.open(io.BytesIO(whole.content), "r") as audio:
                seconds = sum(frame.samples for frame in audio.decode(audio=0)) / audio.streams.audio[0].rate
                assert audio.metadata["track"] == f"{number}/2" and audio.metadata["album"] == "A Bük"
            assert seconds == pytest.approx(float(item.findtext(f"{ITUNES}duration") or ""), abs=0.6)
        made = sorted((tmp_path / "home" / "episodes").glob("*/*"))
        times = [path.stat().st_mtime_ns for path in made]
        assert len(made) == 2 and len(items_of(client, link)) == 2
        assert [path.stat().st_mtime_ns for path in made] == times  # made once
        monkeypatch.setattr(Feeds, "_episodes", lambda *_: [])
        assert len(items_of(client, link)) == 2, "nothing has changed"
        change(served, project, parts_of(served, project)[0], pause=2)
        assert items_of(client, link) == []


def test_feed_follows_its_project(shared: tuple[Served, Json, Json], tmp_path: Path) -> None:
    served, project, link = shared
    with served.client() as client:
        first, second = map(enclosure, items_of(client, link))
        change(served, project, parts_of(served, project)[0], text="Other words.")
        assert [item.findtext("title") for item in items_of(client, link)] == ["Second"]
        assert client.get(second["url"]).status_code == 200
        client.post(f"{PROJECTS}/{project['id']}/speak", json={})
        until(served, project, "done")
        again, same = map(enclosure, items_of(client, link))
        assert again["url"] != first["url"] and same == second
        assert client.get(first["url"]).status_code == 404
        made = set((tmp_path / "home" / "episodes").glob("*/*"))
        assert len(made) == 2

        at, library = f"{PROJECTS}/{project['id']}", served.app.state.studio.library
        _, lost, last = parts_of(served, project)
        audio = library.files.path(library.takes.get(lost["chosen"]).audio)
        sound = audio.read_bytes()
        audio.unlink()
        change(served, project, last, pause=2)  # at the end of an episode, which stays the same
        assert list(map(enclosure, items_of(client, link))) == [again, same]
        assert "2 is missing" in client.get(f"{at}/feeds").json()["problem"]
        for content in (b"", sound[:44] + bytes(len(sound) - 44)):  # the second is noticed only when it is read
            audio.write_bytes(content)
            client.patch(at, json={"author": f"Ann {len(content)}"}).raise_for_status()
            assert [item.findtext("title") for item in items_of(client, link)] == ["Second"]
            assert set((tmp_path / "home" / "episodes").glob("*/*")) > made, "it may be the only copy of lost audio"
        audio.write_bytes(sound)
        assert len(items_of(client, link)) == 2 and client.get(f"{at}/feeds").json()["problem"] is None
        assert len(list((tmp_path / "home" / "episodes").glob("*/*"))) == 2


def test_revoked_and_expired_links_open_nothing_and_leave_no_files(
    shared: tuple[Served, Json, Json], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, project, link = shared
    feeds = f"{PROJECTS}/{project['id']}/feeds"
    own = tmp_path / "home" / "episodes" / "Season 1"  # the library is in somebody's folder
    own.mkdir(parents=True)
    with served.client() as client:
        other = client.post(feeds, json={}).json()
        addresses = [other["path"], *(enclosure(item)["url"] for item in items_of(client, other))]
        addresses.append(other["path"].replace("feed.xml", "cover.png"))
        assert client.delete(f"{feeds}/{other['token']}").json()["deleted"] is True
        assert [client.get(address).status_code for address in addresses] == [404] * 4
        assert len(items_of(client, link)) == 2  # the other link's files stay
        client.delete(f"{PROJECTS}/{project['id']}")
        assert client.get(link["path"]).status_code == 404
        client.post(f"{PROJECTS}/{project['id']}/restore")
        assert client.get(link["path"]).status_code == 200
        for path in ("nothing.mp3", "cover.", "%2E%2E", "..%2Flibrary.db", "feed", "a.b.c"):
            assert client.get(f"/shared/{link['token']}/{path}").status_code == 404
        monkeypatch.setattr(shares, "now", lambda: link["expires"] + 1.0)
        assert client.get(link["path"]).status_code == 404
        assert client.get(feeds).json()["data"] == []
        assert list((tmp_path / "home" / "episodes").iterdir()) == [own]


def test_only_the_owner_manages_feeds_and_anyone_with_the_link_listens(steered: Steer, tmp_path: Path) -> None:
    served, _ = steered(share_days=30, home=str(tmp_path / "home"), **KEYS)
    ann, bea = ({"Authorization": f"Bearer {key}"} for key in ("one", "two"))
    with served.client() as stranger:
        project = stranger.post(PROJECTS, json={"items": ITEMS}, headers=ann).json()
        stranger.patch(f"{PROJECTS}/{project['id']}", json={"sharing": "edit"}, headers=ann).raise_for_status()
        feeds = f"{PROJECTS}/{project['id']}/feeds"
        link = stranger.post(feeds, json={}, headers=ann).json()
        assert items_of(stranger, link) == []  # nothing has been generated yet
        for answer in (
            stranger.post(feeds, json={}, headers=bea),
            stranger.get(feeds, headers=bea),
            stranger.delete(f"{feeds}/{link['token']}", headers=bea),
        ):
            assert answer.status_code == 403
        assert stranger.get(feeds).status_code == stranger.post(link["path"]).status_code == 401
        assert_envelope(stranger.post(feeds, json={"days": 31}, headers=ann), 400, "days")
    off, _ = steered(home=str(tmp_path / "home"), **KEYS)
    with off.client() as stranger:
        assert_envelope(stranger.post(feeds, json={}, headers=ann), 501, "project_id")
        assert stranger.get(link["path"]).status_code == 404


def test_feed_whose_episodes_cannot_be_written_is_unavailable_not_empty(
    shared: tuple[Served, Json, Json], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, _, link = shared
    (tmp_path / "home" / "episodes").write_text("no folder")
    with served.client() as client:
        refused = client.get(link["path"])
        assert refused.status_code == 503 and "cannot be written" in refused.text
        (tmp_path / "home" / "episodes").unlink()
        with monkeypatch.context() as patched:
            patched.setattr("studio.library.disk_reserve.SPARE", 2**60)
            assert "are free on the library's disk" in client.get(link["path"]).text
        assert len(items_of(client, link)) == 2


@pytest.mark.parametrize("removed", ["/feeds/{token}", ""])
def test_episodes_are_not_made_on_when_their_link_or_project_is_gone(
    shared: tuple[Served, Json, Json], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removed: str
) -> None:
    served, project, link = shared
    begun, is_gone, ended = threading.Event(), threading.Event(), threading.Event()
    chapters, tidy = list[object](), Feeds.tidy

    def find(_: Masterings, chapter: object, *__: object) -> Generator[bytes, None, None]:
        chapters.append(chapter)
        begun.set()
        assert is_gone.wait(30)
        yield b""

    def tidied(feeds: Feeds) -> None:
        tidy(feeds)
        if is_gone.is_set():
            ended.set()

    monkeypatch.setattr(Masterings, "find", find)
    monkeypatch.setattr(Feeds, "tidy", tidied)
    monkeypatch.setattr("longform.feeds.PATIENCE", 0)
    with served.client() as client:
        assert items_of(client, link) == []
        assert begun.wait(30)
        client.delete(f"{PROJECTS}/{project['id']}{removed.format(**link)}").raise_for_status()
        is_gone.set()
        assert ended.wait(30)
    assert len(chapters) == 1 and not list((tmp_path / "home").glob("episodes/*"))
