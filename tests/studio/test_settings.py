"""Settings come from the environment, and what cannot be meant stops the start with the reason."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import pytest

import studio.settings
from studio.errors import SettingsError
from studio.settings import Settings


def test_an_empty_environment_gives_the_defaults() -> None:
    assert Settings.from_environment({}) == Settings()
    assert Settings.from_environment({"PORT": "", "MODEL": "  "}) == Settings()


def test_every_setting_is_read_from_its_variable(tmp_path: Path) -> None:
    written = {
        "HOST": "0.0.0.0",
        "PORT": "8000",
        "PAGE": "0",
        "MODEL": "fishaudio/s2-pro",
        "VOICES": str(tmp_path),
        "DEVICE": "cuda:1",
        "CODEC_DEVICE": "cpu",
        "DTYPE": "BFLOAT16",
        "MAX_ROWS": "16",
        "MAX_WAITING": "0",
        "MAX_CONTEXT": "2048",
        "THREADS": "4",
        "LOG_LEVEL": "INFO",
        "ROOT_PATH": "/studio/",
        "CORS_ORIGINS": "https://a.example, http://localhost:3000/",
        "API_KEYS": "one,two",
        "PUBLIC_LISTING": "true",
        "MAX_PER_CALLER": "4",
        "REQUESTS_PER_MINUTE": "60",
        "SEND_TIMEOUT": "30",
    }
    assert Settings.from_environment(written) == Settings(
        host="0.0.0.0",
        port=8000,
        page=False,
        model="fishaudio/s2-pro",
        voices=str(tmp_path),
        device="cuda:1",
        codec_device="cpu",
        dtype="bfloat16",
        max_rows=16,
        max_waiting=0,
        max_context=2048,
        threads=4,
        log_level="info",
        root_path="/studio",
        cors_origins=("https://a.example", "http://localhost:3000"),
        api_keys=(hashlib.sha256(b"one").digest(), hashlib.sha256(b"two").digest()),
        public_listing=True,
        max_per_caller=4,
        requests_per_minute=60,
        send_timeout=30,
    )


def test_every_setting_has_a_reader() -> None:
    assert set(studio.settings._READERS) == {field.name for field in dataclasses.fields(Settings)}


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PORT", "eighty"),
        ("PORT", "70000"),
        ("PORT", "-1"),
        ("HOST", "http://localhost"),
        ("DEVICE", "gpu"),
        ("DTYPE", "float16"),
        ("MAX_ROWS", "0"),
        ("MAX_WAITING", "1.5"),
        ("MAX_CONTEXT", "255"),
        ("THREADS", "٣"),
        ("LOG_LEVEL", "loud"),
        ("ROOT_PATH", "studio"),
        ("CORS_ORIGINS", "example.org"),
        ("VOICES", "/no/such/folder"),
    ],
)
def test_a_bad_value_is_refused_with_variable_value_and_what_is_allowed(variable: str, value: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.from_environment({variable: value})
    assert variable in str(refused.value) and value in str(refused.value) and "must be" in str(refused.value)


@pytest.mark.parametrize("name", ["MAX_ROW", "MAXROWS", "MODLE", "DEVISE", "max_rows", "MAX-ROWS", "API_KEY", "ENGINE"])
def test_a_name_that_is_nearly_a_setting_is_ignored_with_a_warning(name: str, caplog: pytest.LogCaptureFixture) -> None:
    assert Settings.from_environment({name: "1"}) == Settings()
    (record,) = caplog.records
    assert f"ignoring {name}, which is not a setting (did you mean " in record.getMessage()


def test_the_platform_that_condas_compilers_keep_in_host_is_not_an_address() -> None:
    assert Settings.from_environment({"HOST": "x86_64-conda-linux-gnu"}).host == Settings().host
    assert Settings.from_environment({"HOST": "arm64-apple-darwin20.0.0"}).host == Settings().host


@pytest.mark.parametrize(
    "origin",
    ["chrome-extension://abcdefghijklmnop", "moz-extension://1b2c-3d", "app://obsidian.md", "tauri://localhost"],
)
def test_extensions_and_apps_are_origins_as_sites_are(origin: str) -> None:
    assert Settings.from_environment({"CORS_ORIGINS": f"https://example.org,{origin}"}).cors_origins[1] == origin


def test_variables_of_others_are_left_alone() -> None:
    others = ("PATH", "HOSTNAME", "HOME", "POST", "TERM", "LANG", "SHELL", "USER", "OMP_NUM_THREADS", "HF_HOME")
    assert Settings.from_environment(dict.fromkeys(others, "x")) == Settings()


def test_a_space_is_served_on_every_interface_unless_said_otherwise() -> None:
    assert Settings.from_environment({"SPACE_ID": "me/studio"}).host == "0.0.0.0"
    assert Settings.from_environment({"SPACE_ID": "me/studio", "HOST": "127.0.0.1"}).host == "127.0.0.1"


def test_a_space_keeps_no_takes_of_its_visitors_unless_said_otherwise() -> None:
    assert Settings.from_environment({}).keep_takes == 1000
    assert Settings.from_environment({"SPACE_ID": "me/studio"}).keep_takes == 0
    assert Settings.from_environment({"SPACE_ID": "me/studio", "KEEP_TAKES": "9"}).keep_takes == 9


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        (Settings(), "http://127.0.0.1:7860"),
        (Settings(host="0.0.0.0", port=80), "http://127.0.0.1:80"),
        (Settings(host="::"), "http://[::1]:7860"),
        (Settings(host="fe80::1", root_path="/studio"), "http://[fe80::1]:7860"),
    ],
)
def test_the_address_is_one_that_this_machine_reaches(settings: Settings, address: str) -> None:
    assert settings.address == address


def test_zerogpu_is_used_where_there_is_one_and_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.from_environment({"SPACES_ZERO_GPU": "true"}).profile == "zero"
    assert Settings.from_environment({"PROFILE": "zero"}).profile == "zero"
    with pytest.raises(SettingsError, match="PAGE=0"):
        Settings.from_environment({"PROFILE": "zero", "PAGE": "0"})
    monkeypatch.setattr(studio.settings.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="pip install spaces"):
        Settings.from_environment({"PROFILE": "zero"})


def test_a_key_that_can_be_guessed_is_logged_without_it(caplog: pytest.LogCaptureFixture) -> None:
    Settings.from_environment({"API_KEYS": f"hunter2,{'a' * 16},sha256:{'0' * 64}"})
    (record,) = caplog.records
    assert "fewer than 16 characters" in record.getMessage() and "hunter2" not in record.getMessage()
