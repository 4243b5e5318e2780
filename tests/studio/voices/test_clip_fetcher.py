"""Remote references: public clips are fetched; private addresses are unreachable, and refused all alike."""

from __future__ import annotations

import asyncio
import base64
import http.server
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from audio import InvalidClip
from studio.voices import clip_fetcher
from studio.voices.clip_fetcher import ClipFetcher, is_public
from tests.studio.clips import WORDS, spoken
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served

HERE = (ipaddress.ip_network("127.0.0.1/32"),)


class Site(http.server.ThreadingHTTPServer):
    """A site on all addresses of this machine that records the paths and hosts requested."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("0.0.0.0", 0), Page)
        self.paths: list[str] = []
        self.hosts: list[str] = []
        self.port = self.server_address[1]
        self.leads: dict[str, str] = {}
        self.released = threading.Event()


class Page(http.server.BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self.server.hosts.append(self.headers["Host"])
        if self.path in self.server.leads:
            self.send_response(302)
            self.send_header("Location", self.server.leads[self.path])
            self.end_headers()
        elif self.path == "/clip":
            self._answer(spoken())
        elif self.path == "/endless":
            self.send_response(200)
            self.end_headers()
            try:
                while not self.server.released.is_set():
                    self.wfile.write(bytes(65536))
            except OSError:
                pass
        elif self.path == "/slow":
            self.send_response(200)
            self.end_headers()
            self.server.released.wait(30)
        else:
            self.send_error(404)

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def site() -> Iterator[Site]:
    server = Site()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()


async def refusal(fetcher: ClipFetcher, url: str) -> str:
    with pytest.raises(InvalidClip) as refused:
        await fetcher.fetch(url)
    return str(refused.value)


async def test_a_clip_is_fetched_and_redirects_are_followed(site: Site) -> None:
    site.leads = {"/old": "/newer", "/newer": f"http://127.0.0.1:{site.port}/clip"}
    assert await ClipFetcher(trusted=HERE).fetch(f"http://127.0.0.1:{site.port}/old") == spoken()


PRIVATE = [
    "127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0", "0.0.0.0", "[::1]", "[::]",
    "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "10.0.0.1", "192.168.1.1",
    "172.16.0.1", "100.64.0.1", "169.254.169.254", "[fe80::1]", "[fd00::1]", "[::ffff:169.254.169.254]",
    "224.0.0.1", "255.255.255.255", "192.0.2.1", "[2001:db8::1]", "127.0.0.1.", "１２７.0.0.1", "localhost.",
]  # fmt: skip


@pytest.mark.parametrize("host", PRIVATE)
async def test_private_addresses_are_unreachable_in_any_notation(
    site: Site, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(clip_fetcher.PORTS, "http", site.port)  # so that it is not the port that is refused
    messages = {await refusal(ClipFetcher(), f"http://{host}{port}/clip") for port in ("", f":{site.port}", ":22")}
    assert messages == {await refusal(ClipFetcher(), "https://no-such-host.invalid/clip")}
    assert site.paths == []


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "0.0.0.0", "10.1.2.3", "100.64.0.1", "169.254.169.254", "172.31.0.1", "192.168.0.1", "192.0.0.1",
     "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fc00::1", "fec0::1", "ff02::1",
     "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::1",
     "2002:a9fe:a9fe::", "2002:101:101::1", "2001:0:a9fe:a9fe::1", "2001:db8::1", "::ffff:0:127.0.0.1"],
)  # fmt: skip
def test_private_addresses_are_recognised(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111"])
def test_public_addresses_are_allowed(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


async def test_every_redirect_is_checked(site: Site) -> None:
    fetcher = ClipFetcher(trusted=HERE)
    targets = [f"http://127.0.0.2:{site.port}/clip", "http://169.254.169.254/latest/meta-data/", "file:///etc/passwd"]
    targets += [f"http://[::ffff:127.0.0.2]:{site.port}/clip", "ftp://127.0.0.1/x", "http://", "//[::1]/clip", ""]
    messages = set()
    for number, target in enumerate(targets):
        site.leads[f"/{number}"] = target
        messages.add(await refusal(fetcher, f"http://127.0.0.1:{site.port}/{number}"))
    assert len(messages) == 1
    assert "/clip" not in site.paths


async def test_name_is_resolved_once_and_the_checked_address_is_used(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {"clips.example": [["127.0.0.1"], ["127.0.0.2"]], "both.example": [["127.0.0.1", "127.0.0.2"]]}
    real = socket.getaddrinfo

    def resolve(host: Any, port: Any, *arguments: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name not in answers:
            return real(host, port, *arguments, **options)
        addresses = answers[name].pop(0)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    fetcher = ClipFetcher(trusted=HERE)
    assert await fetcher.fetch(f"http://clips.example:{site.port}/clip") == spoken()
    assert site.hosts == [f"clips.example:{site.port}"] and len(answers["clips.example"]) == 1
    await refusal(fetcher, f"http://both.example:{site.port}/clip")
    await refusal(fetcher, f"http://clips.example:{site.port}/clip")
    assert len(site.paths) == 1


async def test_silent_name_servers_hold_up_no_other_work(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    answered, real = threading.Event(), socket.getaddrinfo

    def resolve(host: Any, *arguments: Any, **options: Any) -> Any:
        if is_silent := str(host).startswith("silent"):
            answered.wait()
        return real("127.0.0.1" if is_silent else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(clip_fetcher, "TIMEOUT", 0.01)
    fetcher, urls = ClipFetcher(trusted=HERE), [f"http://silent{n}.example:{site.port}/clip" for n in range(64)]
    try:
        for url in urls[:1] * 80 + urls[:63]:
            await refusal(fetcher, url)
        assert await asyncio.wait_for(asyncio.to_thread(str, "other work"), 10) == "other work"
        monkeypatch.setattr(clip_fetcher, "TIMEOUT", 10)
        assert await fetcher.fetch(f"http://127.0.0.1:{site.port}/clip") == spoken(), (
            "one host's callers share a lookup"
        )
        monkeypatch.setattr(clip_fetcher, "TIMEOUT", 0.01)
        await refusal(fetcher, urls[63])
        monkeypatch.setattr(clip_fetcher, "TIMEOUT", 10)
        await refusal(fetcher, f"http://silent.example:{site.port}/clip")  # at once: too many are waiting
    finally:
        answered.set()
    for thread in threading.enumerate():
        if thread.name.endswith("(resolve)"):
            await asyncio.to_thread(thread.join)
    assert await fetcher.fetch(urls[0]) == spoken()


async def test_all_failed_downloads_get_the_same_message(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clip_fetcher, "TIMEOUT", 0.5)
    site.leads = {"/round": "/round"}
    fetcher = ClipFetcher(trusted=HERE)
    urls = [f"http://127.0.0.1:{site.port}{path}" for path in ("/endless", "/slow", "/round", "/nothing")]
    urls += [f"http://user:secret@127.0.0.1:{site.port}/clip", f"http://127.0.0.1:{site.port}/{'x' * 3000}"]
    urls += ["http://127.0.0.1:1/refused", "http:///clip", "http://127.0.0.1:99999/clip", "http://[::1/clip"]
    assert len({await refusal(fetcher, url) for url in urls}) == 1


@pytest.mark.posix
async def test_files_are_read_only_from_the_reference_folder(tmp_path: Path) -> None:
    folder = tmp_path / "clips"
    folder.mkdir()
    (folder / "my clip.wav").write_bytes(spoken())
    (tmp_path / "secret.wav").write_bytes(spoken())
    (folder / "link.wav").symlink_to(tmp_path / "secret.wav")
    fetcher = ClipFetcher(folder)
    assert await fetcher.fetch((folder / "my clip.wav").as_uri()) == spoken()
    outside = [
        (tmp_path / "secret.wav").as_uri(),
        (tmp_path / "nothing.wav").as_uri(),
        (folder / "link.wav").as_uri(),
        f"file://{folder}/../secret.wav",
        f"file://{folder}/%2e%2e/secret.wav",
        f"file://somewhere{folder}/my%20clip.wav",
        f"file://{folder}",
        "file:///dev/zero",
        "file:///etc/passwd\x00.wav",
    ]
    assert len({await refusal(fetcher, url) for url in outside}) == 1
    await refusal(ClipFetcher(), (folder / "my clip.wav").as_uri())


@pytest.mark.parametrize("url", ["gopher://x", "clip.wav", "", "data:audio/wav,hello", "data:;base64,!!!"])
async def test_invalid_address_is_refused_with_a_message(url: str) -> None:
    assert "ref_audio" in await refusal(ClipFetcher(), url)


@pytest.mark.parametrize("size", range(7))
async def test_base64_is_decoded_strictly(size: int) -> None:
    """Surplus bits at the end are ignored, whatever their value."""
    data = bytes(range(249, 249 + size))
    written = base64.b64encode(data).decode()
    assert await ClipFetcher().fetch(f"data:audio/wav;base64,{written}") == data
    if size % 3:
        last = written.rstrip("=")[-1]
        odd = written.replace(last + "=", chr(ord(last) + 1) + "=")
        assert await ClipFetcher().fetch(f"DATA:;x=y;BASE64,{odd}") == data
        assert "not valid base64" in await refusal(ClipFetcher(), f"data:;base64,{written.rstrip('=')}")
    for wrong in (f"{written[:-1]}-", f"{written[:3]}\n", f"{written}AAA_", f"{written}é==="):
        assert "not valid base64" in await refusal(ClipFetcher(), f"data:;base64,{wrong}")


def test_fetched_clip_is_used_as_the_voice_and_the_same_clip_encoded_once(
    site: Site, steered: Callable[..., tuple[Served, FakeEngine]], tmp_path: Path
) -> None:
    served, engine = steered(ref_sources=(*HERE, tmp_path))
    (tmp_path / "clip.wav").write_bytes(spoken())
    sources = [
        f"http://127.0.0.1:{site.port}/clip",
        (tmp_path / "clip.wav").as_uri(),
        f"data:audio/wav;base64,{base64.b64encode(spoken()).decode()}",
    ]
    with served.client() as client:
        for source in sources:
            body = {"input": "Hi.", "ref_audio": source, "ref_text": WORDS}
            assert client.post("/v1/audio/speech", json=body).status_code == 200
        refused = client.post("/v1/audio/speech", json={"input": "Hi.", "ref_audio": sources[0]})
        assert refused.status_code == 400 and refused.json()["error"]["param"] == "ref_text"
        bad = {"input": "Hi.", "ref_audio": "http://169.254.169.254/latest", "ref_text": WORDS}
        answer = client.post("/v1/audio/speech", json=bad)
        assert answer.status_code == 400 and answer.json()["error"]["code"] == "invalid_audio"
    assert [text for _, _, text in engine.encoded].count(WORDS) == 1
    assert engine.utterances[-1].references[0].text == WORDS
    assert site.paths == ["/clip"], "a request without its words fetches nothing"
