"""The OpenAPI document is accurate: requests it allows never break the server, and it names every field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error

from engine import EngineConfig
from protocols.fish.fish_body import MESSAGE_PACK
from protocols.fish.fish_speech import FishSpeech
from protocols.fish.message_pack import pack
from studio import ROOT, errors
from studio.api.error_responses import ENGINE_STATUSES
from studio.api.foreign import IGNORED, MEAN, REFUSED
from studio.api.speech_bodies import BatchBody, SpeechBody
from studio.errors import StudioError
from studio.settings import Settings
from tests.studio.conftest import Steered
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import serve


@schemathesis.serializer(MESSAGE_PACK)
def packed(ctx: schemathesis.SerializationContext, value: Any) -> bytes:
    """Values that MessagePack cannot represent, such as integers of more than 64 bits, become strings."""
    try:
        return pack(value)
    except TypeError:
        return pack(repr(value).encode("utf-8", "replace").decode())


@pytest.fixture(scope="module")
def api(voices_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    def start(config: EngineConfig, progress: object) -> FakeEngine:
        return FakeEngine(config, rows=8)

    home = str(tmp_path_factory.mktemp("document"))
    with serve(Settings(voices=str(voices_folder), home=home, share_days=30), start) as served:
        yield schemathesis.openapi.from_url(f"{served.url}/openapi.json")


def test_server_survives_any_request(api: Any) -> None:
    """Requests that the document allows and requests that it does not, the same ones in every run."""
    seen = []
    for operation_result in api.get_all_operations():
        operation = operation_result.ok()
        seen.append(operation.label)

        @settings(max_examples=3, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def holds(case: schemathesis.Case) -> None:
            case.call_and_validate(checks=[not_a_server_error], timeout=60)

        holds()
    assert {"POST /v1/audio/speech", "POST /v1/audio/speech/batch", "GET /v1/models/{model_id}"} < set(seen)


def test_every_field_is_in_the_document(steered: object) -> None:
    served: Steered = steered()  # type: ignore[operator]
    with served[0].client() as client:
        document = client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    assert set(schemas["SpeechBody"]["properties"]) == set(SpeechBody.model_fields)
    assert set(schemas["BatchBody"]["properties"]) == set(BatchBody.model_fields)
    assert all(field.get("description") for field in schemas["SpeechBody"]["properties"].values())
    for name in (*MEAN, *IGNORED, *REFUSED, "references"):
        assert f"`{name}`" in document["info"]["description"]
    assert "HTTPValidationError" not in str(document)
    assert "4XX" in document["paths"]["/v1/audio/speech"]["post"]["responses"]


def test_number_limits_use_json_schema_keywords(steered: object) -> None:
    served: Steered = steered()  # type: ignore[operator]
    with served[0].client() as client:
        schemas = client.get("/openapi.json").json()["components"]["schemas"]
    speed, seed, pause = (
        schemas[model]["properties"][name]["anyOf"][0]
        for model, name in (("SpeechBody", "speed"), ("SpeechBody", "seed"), ("ProjectBody", "pause"))
    )
    assert (speed["minimum"], speed["maximum"]) == (0.25, 4)
    assert (seed["minimum"], seed["maximum"]) == (0, 2**63 - 1)
    assert (pause["minimum"], pause["maximum"]) == (0, 30)
    assert not {"ge", "gt", "le", "lt"} & {key for schema in schemas.values() for key in keys_in(schema)}


def keys_in(schema: Any) -> Iterator[str]:
    for value in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from keys_in(value)
    if isinstance(schema, dict):
        yield from schema


def test_document_and_its_page_are_under_the_path_of_a_proxy(steered: object) -> None:
    for root_path, servers in (("", None), ("/studio", [{"url": "/studio"}])):
        served: Steered = steered(root_path=root_path)  # type: ignore[operator]
        with served[0].client() as client:
            assert f"'{root_path}/openapi.json'" in client.get("/docs").text
            assert client.get("/openapi.json").json().get("servers") == servers


def test_docs_page_loads_its_files_from_the_studio_compressed_or_not(steered: object) -> None:
    served: Steered = steered(root_path="/studio")  # type: ignore[operator]
    with served[0].client() as client:
        page = client.get("/docs").text
        addresses = re.findall(r'(?:src|href)="([^"]+)"', page)
        assert len(addresses) == 3 and all(address.startswith("/studio/docs/") for address in addresses)
        for address in addresses:
            at = address.removeprefix("/studio")
            packed, plain = (client.get(at, headers={"Accept-Encoding": encoding}) for encoding in ("gzip", "identity"))
            assert packed.status_code == plain.status_code == 200 and packed.content == plain.content
            assert client.head(at).headers["content-type"] == plain.headers["content-type"]
        assert client.head("/docs").status_code == 200
        assert client.get("/docs/openapi.py").status_code == 404


def test_every_field_is_in_the_manual() -> None:
    manual = (ROOT / "docs" / "api.md").read_text("utf-8")
    for name in (*SpeechBody.model_fields, *MEAN, *IGNORED, *REFUSED):
        assert f"`{name}`" in manual, name


def test_every_field_of_fish_audio_is_in_its_manual() -> None:
    manual = (ROOT / "docs" / "fish.md").read_text("utf-8")
    ignored = (
        "latency max_new_tokens repetition_penalty min_chunk_length condition_on_previous_chunks early_stop_threshold "
        "features streaming use_memory_cache prosody.normalize_loudness"
    )
    for name in (*FishSpeech.model_fields, *ignored.split()):
        assert f"`{name}`" in manual, name


def test_every_error_code_is_in_the_manual() -> None:
    manual = (ROOT / "docs" / "api.md").read_text("utf-8")
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, StudioError)]
    codes = {code for _, code in ENGINE_STATUSES.values()} | {kind.code for kind in kinds}
    for code in codes - {None}:
        assert f"`{code}`" in manual, code
