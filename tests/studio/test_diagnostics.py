"""A studio's diagnostics: settings with their source, versions, storage; never a secret."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from studio.settings import Settings, read_keys
from studio.supervisor import HealthCheck
from tests.studio.conftest import Steered

Steer = Callable[..., Steered]
HEADERS = {"Authorization": "Bearer top-secret"}


def test_every_setting_is_listed_with_its_source_and_without_keys(steered: Steer) -> None:
    keys = read_keys("top-secret")
    served, _ = steered(api_keys=keys, max_waiting=3)
    with served.client(headers=HEADERS) as client:
        answer = client.get("/v1/settings")
        file = client.get("/v1/diagnostics")
    settings = {setting["name"]: setting for setting in answer.json()["settings"]}
    assert list(settings) == ["STUDIO_" + name.upper() for name in Settings.model_fields]
    assert settings["STUDIO_MAX_WAITING"] == {"name": "STUDIO_MAX_WAITING", "value": 3, "source": "environment"}
    assert settings["STUDIO_PORT"] == {"name": "STUDIO_PORT", "value": 7860, "source": "default"}
    assert settings["STUDIO_API_KEYS"]["value"] == "1 set" and answer.json()["keys_needed"]
    for text in (answer.text, file.text):
        assert "top-secret" not in text and keys[0].digest.hex() not in text


def test_settings_and_paths_are_shown_only_to_the_first_key(steered: Steer, tmp_path: Path) -> None:
    folder = os.fsdecode(b"h\xf6me") if sys.platform == "linux" else "home"  # a name that is not UTF-8
    served, _ = steered(home=str(tmp_path / folder), api_keys=read_keys("ann=top-secret,bob=other"), max_per_caller=2)
    studio, work = served.app.state.studio, HealthCheck("work")
    home = json.dumps(studio.settings.home)[1:-1]
    logging.getLogger("studio.test").warning("what happened in %s", home)
    work.report_failure(f"the voice of ann's in {home} cannot be prepared")
    studio.speech.background.append(work)
    with served.client(headers=HEADERS) as first, served.client(headers={"Authorization": "Bearer other"}) as other:
        for client, name, is_owner in ((first, "ann", True), (other, "bob", False)):
            for path in ("/v1/settings", "/v1/diagnostics"):
                answer = client.get(path)
                assert answer.json()["is_owner"] == is_owner == bool(answer.json()["settings"]) == (home in answer.text)
            assert is_owner == ("work" in client.get("/v1/diagnostics").json()["background"])
            line = client.get("/v1/queue").json()
            assert (line["caller"], line["max_per_caller"]) == (name, 2)


def test_storage_grows_with_the_stored_takes(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        before = client.get("/v1/settings").json()["storage"]
        take = client.post("/v1/audio/speech", json={"input": "Two words"}).headers["x-request-id"]
        assert client.get(f"/v1/takes/{take}").json()["stored"]
        after = client.get("/v1/settings").json()["storage"]
    assert (before["voices"], before["takes"], after["takes"]) == (2, 0, 1)
    assert after["audio_bytes"] > before["audio_bytes"] > 0 and after["database_bytes"] > 0


def test_diagnostics_file_has_recent_failures_and_warnings(steered: Steer) -> None:
    served, engine = steered()
    engine.spoilt = ["nan", "nan"]
    with served.client() as client:
        client.post("/v1/audio/speech", json={"input": "Two words"})
        logging.getLogger("studio.test").warning("the disk is made of cheese")
        answer = client.get("/v1/diagnostics")
    assert answer.headers["content-disposition"].startswith('attachment; filename="voice-studio-')
    file = answer.json()
    assert file["failed_takes"][0]["error"] and file["engine"]["model"] == "test/model"
    assert "the disk is made of cheese" in file["warnings"][-1]
