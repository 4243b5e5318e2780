"""The head of the page's HTML: the preview of a shared link, and the facts about the model before it is loaded."""

from __future__ import annotations

import gzip
import json
import re
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path

import gradio.routes
import pytest

from studio.settings import Settings, read_keys
from studio.ui.front import CACHED
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, serve

CARD = {"demo": True, "languages": ["en"]}


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("model")
    (folder / "card.json").write_text(json.dumps(CARD))
    settings = Settings(model=str(folder), home=str(tmp_path_factory.mktemp("home")))
    with serve(settings, FakeEngine.start, page=True) as served:
        yield served


def metas(studio: Served, **headers: str) -> dict[str, str]:
    with studio.client() as client:
        answer = client.get("/", headers=headers)
    assert int(answer.headers["content-length"]) == answer.num_bytes_downloaded
    assert "Gradio" not in re.findall('property="og:title" content="(.*?)"', answer.text)
    pairs = re.findall(r'<meta (?:property|name)="([\w:-]+)" content="(.*?)"', answer.text.partition("<body")[0])
    assert len(pairs) == len(dict(pairs))  # each once
    return {name: unescape(content) for name, content in pairs}


def test_page_is_compressed_once_for_accepting_browsers(studio: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    compress, compressed = gzip.compress, Counter[int]()
    monkeypatch.setattr(gzip, "compress", lambda data, level: compressed.update([level]) or compress(data, level))
    with studio.client() as client:
        for _ in range(2):
            client.get("/", headers={"Accept-Encoding": "gzip", "X-Forwarded-Host": "once.example"})
        assert compressed.total() == 1
        small, plain = (client.get("/", headers={"Accept-Encoding": coding}) for coding in ("gzip", "identity"))
    assert small.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
    assert small.num_bytes_downloaded < plain.num_bytes_downloaded / 3
    assert "Accept-Encoding" in small.headers["vary"] and "Accept-Encoding" in plain.headers["vary"]


def test_page_and_descriptions_are_built_once_per_language_for_all_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: Counter[str] = Counter()
    roots = gradio.routes.route_utils.get_root_url  # which Gradio needs for each answer that it builds
    monkeypatch.setattr(
        gradio.routes.route_utils,
        "get_root_url",
        lambda request, *args, **named: built.update([request.url.path]) or roots(request, *args, **named),
    )
    settings = Settings(model="test/model", home=str(tmp_path))
    with serve(settings, FakeEngine.start, page=True) as studio, studio.client() as client:

        def page(path: str = "/", language: str = "fr", host: str = "here.example") -> str:
            headers = {"Accept-Language": language, "X-Forwarded-Host": host}
            return client.get(path, headers=headers).raise_for_status().text

        first = page()
        assert (
            page() == page("/?page=endpoints") == page("/?page=nonsense&deep_link=1") == page("/?__theme=dark") == first
        )
        assert 'lang="de"' in page(language="de")
        paths = (*sorted(CACHED), "/config/")  # Gradio builds what its two descriptions share for the first of them
        for path in paths:
            page(path)
        built_once = built.copy()
        with ThreadPoolExecutor(4) as threads:
            answers = [*threads.map(lambda at: page(paths[at], host=f"host{at}.example"), range(len(paths)))]
        assert built == built_once and {*built} == {"/", "/config", "/gradio_api/info"}
    for at, (path, answer) in enumerate(zip(paths, answers, strict=True)):
        addresses = set(re.findall(r"http://([\w.]+\.(?:example|invalid))", answer))
        assert addresses == (set() if "openapi" in path else {f"host{at}.example"})


def test_the_page_is_withheld_from_callers_without_access(tmp_path: Path) -> None:
    settings = Settings(model="test/model", home=str(tmp_path), api_keys=read_keys("secret"))
    with serve(settings, FakeEngine.start, page=True) as studio, studio.client() as client:
        answer = client.get("/", headers={"Authorization": "Bearer secret"})
        stranger = client.get("/")
    assert answer.status_code == 200 and "gradio_config" in answer.text
    assert "gradio_config" not in stranger.text


def test_browser_does_not_get_endpoints_for_gradio_client(studio: Served) -> None:
    with studio.client() as client:
        page, config = client.get("/").text, client.get("/config").json()
        elsewhere = client.get("/endpoints")
    names = {endpoint["api_name"] for endpoint in config["dependencies"] if endpoint["api_visibility"] == "public"}
    assert {"synthesize", "voices_list", "take_get", "batch_submit"} <= names
    page_config = json.loads(re.findall(r"window.gradio_config = (.*?);</script>", page, re.DOTALL)[0])
    assert not names & {endpoint["api_name"] for endpoint in page_config["dependencies"]}
    assert len(page_config["components"]) < len(config["components"]) / 2
    assert elsewhere.is_redirect and elsewhere.headers["location"] == "/"  # Gradio's own page for them is not served


def test_link_preview_describes_the_studio(studio: Served) -> None:
    tags = metas(studio)
    assert tags["og:title"] == "Voice Studio" and tags["og:description"] == tags["description"]
    assert tags["og:url"] == f"{studio.url}/" and tags["og:image"].startswith(f"{studio.url}/page/")
    with studio.client() as client:
        picture = client.get(tags["og:image"])
    assert picture.headers["content-type"] == "image/png"
    size = struct.unpack(">II", picture.content[16:24])
    assert size == (int(tags["og:image:width"]), int(tags["og:image:height"]))
    assert json.loads(tags["studio-card"]) == CARD


def test_link_preview_uses_the_proxys_address(studio: Served) -> None:
    tags = metas(studio, **{"x-forwarded-host": "voices.example", "x-forwarded-proto": "https"})
    assert tags["og:url"] == "https://voices.example/"
    assert tags["og:image"].startswith("https://voices.example/page/")


@pytest.mark.parametrize("card", [None, "{", '{"demo": 1}'], ids=["none", "broken", "wrong"])
def test_page_is_served_before_the_model_is_ready(tmp_path: Path, card: str | None) -> None:
    if card is not None:
        (tmp_path / "card.json").write_text(card)
    settings = Settings(model=str(tmp_path), home=str(tmp_path / "home"))
    with serve(settings, FakeEngine.start, page=True) as studio:
        assert json.loads(metas(studio).get("studio-card", "{}")).get("demo", False) is False


def test_idle_server_sleeps(studio: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradio's queue looked for work a thousand times a second."""
    selector = studio.loop._selector  # type: ignore[union-attr]
    select, naps, are_enough = selector.select, [], threading.Event()

    def noted(timeout: float | None) -> object:
        naps.append(timeout)
        if len(naps) == 50:
            are_enough.set()
        return select(timeout)

    monkeypatch.setattr(selector, "select", noted)
    assert are_enough.wait(60)
    lengths = [nap for nap in naps if nap is not None]
    assert sum(lengths) / len(lengths) > 0.002  # seconds; a busy loop is often late and asks for none
