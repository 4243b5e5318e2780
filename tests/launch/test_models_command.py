"""fish-voice-studio models: the list, and the choice for the next start."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from launch.models_command import main
from studio.models.catalogue import BUNDLED_FOLDER, CATALOGUE
from studio.models.model_choice import resolve, starting_model
from studio.settings import Settings


@pytest.fixture(autouse=True)
def _settings(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDIO_HOME", str(tmp_path / "home"))


def test_list_shows_the_requirements_of_models(capsys: pytest.CaptureFixture[str], quick_checkpoint: Path) -> None:
    assert main([]) == 0
    table = capsys.readouterr().out.splitlines()
    assert all(any(model.name in line for line in table) for model in CATALOGUE)
    assert table[1].startswith("* bundled") and "float32" in table[1]
    assert main(["list", str(quick_checkpoint), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed[-1]["path"] == str(quick_checkpoint) and listed[-1]["fits"] is True
    assert [model["name"] for model in listed if model["loaded"]] == ["bundled"]


def test_a_path_that_does_not_exist_is_reported_as_not_found(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = str(tmp_path / "missing")
    assert main(["list", missing]) == 0
    assert capsys.readouterr().out.splitlines()[-2].startswith(f"  not found: {str(missing)!r}; name one of bundled, ")
    monkeypatch.setenv("STUDIO_MODEL", missing)
    assert main([]) == 0
    assert capsys.readouterr().out.splitlines()[-2].startswith(f"* not found: {str(missing)!r}; ")


def test_next_start_loads_the_chosen_model(
    capsys: pytest.CaptureFixture[str], quick_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert starting_model(Settings.load()).model == BUNDLED_FOLDER
    assert main(["use", "s2-pro"]) == 1 and "models download s2-pro" in capsys.readouterr().err
    assert main(["use", str(quick_checkpoint)]) == 0
    assert starting_model(Settings.load()).model == str(quick_checkpoint)
    empty = shutil.copytree(quick_checkpoint, tmp_path / "empty")
    (empty / "model.safetensors").write_bytes(b"")
    assert main(["use", str(empty)]) == 1 and "(0 bytes) cannot be read" in capsys.readouterr().err
    assert starting_model(Settings.load()).model == str(quick_checkpoint)
    monkeypatch.setenv("STUDIO_MODEL", BUNDLED_FOLDER)
    assert main(["use", "bundled"]) == 0 and "takes precedence" in capsys.readouterr().err
    assert starting_model(Settings.load()).model == BUNDLED_FOLDER


def test_download_from_a_models_former_repository_is_found_under_every_name(
    cache: Path, quick_checkpoint: Path
) -> None:
    former = "Audio8/Audio8-TTS-Preview-0.6b"
    folder = cache / f"models--{former.replace('/', '--')}" / "snapshots" / "0"
    shutil.copytree(quick_checkpoint, folder)
    for needed in ("codec.pth", "tokenizer.json"):
        (folder / needed).touch()
    for name in ("audio8-0.6b", former, "Edge0/Audio8-TTS-Preview-0.6b"):
        assert resolve(name) == str(folder)
    shutil.rmtree(folder)
    with pytest.raises(ValueError, match=r"models download audio8-0\.6b"):
        resolve(former)


@pytest.mark.parametrize("proxy", ["", "http://anna:secret@127.0.0.1:9/"])
def test_failed_download_reports_the_reason_and_the_proxy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    with ThreadPoolExecutor(1) as thread:  # a browser test may have left an event loop in this one
        assert thread.submit(main, ["download", "audio8-0.6b"]).result() == 1
    error = capsys.readouterr().err
    assert "was not downloaded: 127.0.0.1 cannot be reached" in error and "secret" not in error
    assert (
        " reached through the proxy 127.0.0.1:9/ (HTTPS_PROXY" if proxy else "needs a proxy, set HTTPS_PROXY"
    ) in error


def test_error_names_an_invalid_hub_address(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://[::1")
    for command in ([], ["use", "audio8-0.6b"], ["download", "audio8-0.6b"]):
        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(main, command).result() == 1
        assert "HF_ENDPOINT='http://[::1' is not an address" in capsys.readouterr().err


@pytest.mark.posix
def test_the_loaded_model_is_marked_however_it_is_named(
    capsys: pytest.CaptureFixture[str], quick_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(quick_checkpoint)
    monkeypatch.chdir(quick_checkpoint.parent)
    for name in (f"{quick_checkpoint}/", f"./{quick_checkpoint.name}", str(tmp_path / "link")):
        monkeypatch.setenv("STUDIO_MODEL", name)
        assert main(["list", str(quick_checkpoint), "--json"]) == 0
        listed = json.loads(capsys.readouterr().out)
        assert [model["name"] for model in listed if model["loaded"]] == [name] == [listed[-1]["name"]]
    monkeypatch.delenv("STUDIO_MODEL")
    for name in ("bundled", f"{BUNDLED_FOLDER}/"):
        assert main(["list", name, "--json"]) == 0
        assert len(json.loads(capsys.readouterr().out)) == len(CATALOGUE)
