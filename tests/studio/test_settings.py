"""Settings come from the environment and .env; invalid values abort the start, unrelated variables are ignored."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from studio.engine_host import engine_config
from studio.errors import SettingsError
from studio.settings import ApiKey, Settings, read_keys

Load = Callable[..., Settings]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads settings from the given variables only, in an empty working directory."""
    monkeypatch.chdir(tmp_path)

    def load(**variables: str) -> Settings:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            return Settings.load()

    return load


def test_an_empty_environment_gives_the_defaults(load: Load) -> None:
    assert load() == load(STUDIO_HOST="", STUDIO_MAX_ROWS="", PORT="") == Settings()
    assert Settings().port == 7860


def test_every_setting_is_read_from_its_variable(load: Load, tmp_path: Path) -> None:
    folder = str(tmp_path)
    written: dict[str, tuple[str, object]] = {
        "host": ("studio.lan.", "studio.lan."),
        "port": ("8000", 8000),
        "page": ("0", False),
        "model": ("fishaudio/s2-pro", "fishaudio/s2-pro"),
        "home": (folder, folder),
        "voices": (folder, folder),
        "codec_device": ("cuda:1", "cuda:1"),
        "weights": ("BFLOAT16", "bfloat16"),
        "max_waiting": ("0", 0),
        "fish_kvcache_attn": ("required", "required"),
        "log_level": ("INFO", "info"),
        "root_path": ("/studio/", "/studio"),
        "cors_origins": ("https://a.example, http://localhost:3000/", ("https://a.example", "http://localhost:3000")),
        "api_keys": ("one, anna=two", read_keys("one,anna=two")),
        "public_listing": ("true", True),
    }
    by_windows = {f"STUDIO_{name.upper()}": f"{text}\r" for name, (text, _) in written.items()}
    settings = load(**by_windows)
    assert {name: getattr(settings, name) for name in written} == {name: value for name, (_, value) in written.items()}
    assert pickle.loads(pickle.dumps(settings)) == settings, "speech processes are given them"


def test_number_of_settings_is_limited() -> None:
    assert len(Settings.model_fields) <= 35


def test_model_port_and_the_attention_switch_work_without_the_prefix_too(load: Load) -> None:
    settings = load(MODEL="a/b", PORT="80", FISH_KVCACHE_ATTN="0")
    assert (settings.model, settings.port, settings.fish_kvcache_attn) == ("a/b", 80, "0")
    assert load(PORT="80", STUDIO_PORT="90").port == 90


def test_dotenv_file_is_read_and_the_environment_takes_precedence(load: Load) -> None:
    Path(".env").write_text("STUDIO_MAX_ROWS=3\nPORT=90\nSTUDIO_HOST=0.0.0.0\nHF_TOKEN=x\n", encoding="utf-8")
    settings = load(STUDIO_HOST="::1")
    assert (settings.max_rows, settings.port, settings.host) == (3, 90, "::1")
    Path(".env").write_text("STUDIO_MAX_ROWS=3\n", encoding="utf-8-sig")
    assert load().max_rows == 3, "Notepad's UTF-8"


@pytest.mark.parametrize(
    "line",
    [
        'STUDIO_API_KEYS="anne=0123456789abcdef0123',
        "STUDIO_API_KEYS: anne=0123456789abcdef",
        "$env:STUDIO_API_KEYS='anne=0123456789abcdef'",
    ],
)
def test_a_dotenv_file_that_cannot_be_read_stops_the_start_because_keys_may_be_in_it(load: Load, line: str) -> None:
    file = Path(".env")
    file.write_text(f"STUDIO_MAX_ROWS=3\n{line}\nSTUDIO_PORT=90\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"line 2 of \.env cannot be read; lines are NAME=value"):
        load()
    file.write_text(line, encoding="utf-16")
    with pytest.raises(SettingsError, match=r"\.env cannot be read: it is not UTF-8"):
        load()
    file.unlink()
    file.mkdir()  # as Docker makes of the mount of a missing file
    with pytest.raises(SettingsError, match=r"\.env cannot be read: (Is a directory|Permission denied)"):
        load()


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("STUDIO_PORT", "eighty", "valid integer"),
        ("PORT", "70000", "less than or equal to 65535"),
        ("STUDIO_HOST", "http://localhost", "a host name or an IP address"),
        ("STUDIO_HOST", "studio..lan", "a host name or an IP address"),
        ("STUDIO_ALLOWED_HOSTS", ".example.org", "a host name or an IP address"),
        ("STUDIO_DEVICE", "gpu", "cpu, cuda"),
        ("STUDIO_WEIGHTS", "float16", "'bfloat16'"),
        ("STUDIO_MAX_ROWS", "0", "greater than or equal to 1"),
        ("STUDIO_MAX_WAITING", "1.5", "valid integer"),
        ("STUDIO_MAX_CONTEXT", "255", "greater than or equal to 256"),
        ("STUDIO_THREADS", "٣", "valid integer"),
        ("STUDIO_LOG_LEVEL", "loud", "'warning'"),
        ("STUDIO_ROOT_PATH", "studio", "/studio"),
        ("STUDIO_KEEP_TAKES", "-1", "greater than or equal to 0"),
        ("STUDIO_CORS_ORIGINS", "example.org", "https://example.org"),
        ("STUDIO_VOICES", "/no/such/folder", "existing folder"),
        ("STUDIO_REF_SOURCES", "/no/such/folder", "existing folder"),
        ("STUDIO_REF_SOURCES", "/,/usr", "one folder"),
        ("STUDIO_HOME", "/proc/version/below", "read and write"),
        # Like a folder that is closed to the studio's user, which root, who may run this test, does not know.
        ("STUDIO_VOICES", f"/{'x' * 300}", "existing folder"),
        ("STUDIO_REF_SOURCES", f"/{'x' * 300}", "existing folder"),
        ("STUDIO_BACKUP_DIR", "~nobody-of-this-name/backup", "no home folder"),
        ("STUDIO_REF_SOURCES", "~nobody-of-this-name/clips", "no home folder"),
        ("STUDIO_HOME", "\r", "it is blank"),
        ("STUDIO_WYOMING", "127.0.0.1:10200", "tcp://127.0.0.1:10200"),
        ("STUDIO_WYOMING", "tcp://127.0.0.1:70000", "tcp://127.0.0.1:10200"),
    ],
)
def test_bad_value_is_refused_with_variable_value_and_allowed_values(
    load: Load, name: str, value: str, allowed: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        load(**{name: value})
    assert str(refused.value).startswith(f"{name}={value!r} cannot be used: ") and allowed in str(refused.value)


def test_home_folder_stands_for_a_tilde_in_every_path(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    folders = {"STUDIO_REF_SOURCES": "10.0.0.0/8, ~", "STUDIO_TRANSCRIBER": "faster-whisper:~/base"}
    settings = load(STUDIO_MODEL="~/s2-pro", STUDIO_VOICES="~/", STUDIO_HOME="~/home", **folders)
    assert [settings.model, settings.home] == [str(tmp_path / name) for name in ("s2-pro", "home")]
    assert (Path(settings.voices), settings.ref_folder) == (tmp_path, tmp_path)
    assert settings.transcriber == f"faster-whisper:{tmp_path / 'base'}"


@pytest.mark.linux
@pytest.mark.parametrize("unset", [{}, {"STUDIO_HOME": ""}])
def test_default_that_cannot_be_used_is_named_as_a_default(load: Load, unset: dict[str, str]) -> None:
    with pytest.raises(SettingsError) as refused:
        load(XDG_DATA_HOME="/proc/version", LOCALAPPDATA="/proc/version", **unset)
    message = (
        "the default of STUDIO_HOME, '/proc/version/fish-voice-studio', cannot be used: it must be a folder that the"
        " studio's user may read and write"
    )
    assert str(refused.value) == f"{message}; set STUDIO_HOME to another one"


def test_memory_budget_takes_decimals(load: Load) -> None:
    assert engine_config(load(STUDIO_MEMORY_BUDGET="5.5")).memory_bytes == 11 * 2**29
    with pytest.raises(SettingsError, match="STUDIO_MEMORY_BUDGET='nan'"):
        load(STUDIO_MEMORY_BUDGET="nan")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("STUDIO_ENGINE", " (did you mean STUDIO_ENGINES?)"),
        ("STUDIO_MODLE", " (did you mean STUDIO_MODEL?)"),
        ("STUDIO_COLOUR", ""),
    ],
)
def test_unknown_setting_is_ignored_with_a_warning(
    load: Load, caplog: pytest.LogCaptureFixture, name: str, nearest: str
) -> None:
    assert load(**{name: "1"}) == Settings()
    (record,) = caplog.records
    assert record.getMessage() == f"{name} is not a setting and is ignored{nearest}; see docs/settings.md"


@pytest.mark.parametrize("where", ["environment", "file"])
def test_keys_without_the_prefix_or_of_two_people_stop_the_start(load: Load, where: str) -> None:
    if where == "file":
        Path(".env").write_text("API_KEYS=secret\n", encoding="utf-8")
    for name in ("API_KEYS", "STUDIO_API_KEY", "STUDIO_API_KEYS_FILE") if where == "environment" else ("API_KEYS",):
        with pytest.raises(SettingsError, match=f"^{name} is not a setting: name it STUDIO_API_KEYS"):
            load(**({name: "secret"} if where == "environment" else {}))
        assert load(**{name: "secret"}, STUDIO_API_KEYS="other").api_keys == read_keys("other")
    with pytest.raises(SettingsError, match=r"^STUDIO_API_KEYS=… cannot be used: two of the names have the same key"):
        load(STUDIO_API_KEYS="anne=0123456789abcdef,bob=0123456789abcdef")


def test_unrelated_variables_are_ignored(load: Load, caplog: pytest.LogCaptureFixture) -> None:
    names = ("HOST", "HOSTNAME", "API_KEY", "VOICE", "DEVICE", "LOG_LEVEL", "OMP_NUM_THREADS", "RAY_ADDRESS", "PROFILE")
    assert load(**dict.fromkeys(names, "x86_64-conda-linux-gnu")) == Settings()
    assert not caplog.records


@pytest.mark.parametrize(
    "origin",
    ["chrome-extension://abcdefghijklmnop", "moz-extension://1b2c-3d", "app://obsidian.md", "tauri://localhost"],
)
def test_origins_of_extensions_and_apps_are_accepted(load: Load, origin: str) -> None:
    # Browsers send names in lower case.
    assert load(STUDIO_CORS_ORIGINS=f"https://Example.org/,{origin}").cors_origins == ("https://example.org", origin)


def test_reference_sources_may_be_a_folder_and_networks(load: Load, tmp_path: Path) -> None:
    settings = load(STUDIO_REF_SOURCES=f"10.0.0.0/8, {tmp_path},fd00::/8")
    assert settings.ref_folder == tmp_path
    assert [str(network) for network in settings.ref_networks] == ["10.0.0.0/8", "fd00::/8"]


def test_audio_storage_limit_grows_with_the_number_of_stored_takes(load: Load) -> None:
    assert load().take_bytes == load(STUDIO_KEEP_TAKES="5").take_bytes == 4 * 2**30
    assert load(STUDIO_KEEP_TAKES="100000").take_bytes == 400_000 * 2**20


@pytest.mark.parametrize(
    ("weights", "dtype", "held", "codec"),
    [
        ("", None, None, None),
        ("float32", "float32", "bf16", "float32"),
        ("bfloat16", "bfloat16", "bf16", None),
        ("int8", None, "int8", None),
    ],
)
def test_one_setting_selects_the_types_of_weights_and_codec(
    load: Load, weights: str, dtype: str | None, held: str | None, codec: str | None
) -> None:
    config = engine_config(load(STUDIO_WEIGHTS=weights))
    assert (config.dtype, config.weights, config.codec_dtype) == (dtype, held, codec)


def test_space_listens_on_all_interfaces_and_stores_no_takes_by_default(load: Load) -> None:
    assert (load().host, load().keep_takes) == ("127.0.0.1", 1000)
    space = load(SPACE_ID="me/studio")
    assert (space.host, space.keep_takes) == ("0.0.0.0", 0)
    settings = load(SPACE_ID="me/studio", STUDIO_HOST="::1", STUDIO_KEEP_TAKES="9")
    assert (settings.host, settings.keep_takes) == ("::1", 9)


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        (Settings(), "http://127.0.0.1:7860"),
        (Settings(host="0.0.0.0", port=80), "http://127.0.0.1:80"),
        (Settings(host="::"), "http://[::1]:7860"),
        (Settings(host="fe80::1", root_path="/studio"), "http://[fe80::1]:7860"),
    ],
)
def test_address_is_reachable_from_this_machine(settings: Settings, address: str) -> None:
    assert settings.address == address


def test_keys_may_be_named_and_unnamed_keys_keep_their_owner() -> None:
    named, base64, hashed = read_keys(f"Anna B.=a-long-long-secret, YWJjZGVmZ2hpamtsbQ==,bert=sha256:{'0' * 64}")
    assert (named.owner, hashed.owner, hashed.digest) == ("owner Anna B.", "owner bert", bytes(32))
    assert base64.owner == base64.unnamed_owner == f"key {base64.digest.hex()[:12]}"
    assert base64 == ApiKey(read_keys("YWJjZGVmZ2hpamtsbQ==")[0].digest)
    with pytest.raises(ValueError, match="the name before ="):
        read_keys("<b>=secret")
    lines = ["anna=a-long-long-secret", "bert=another-long-secret"]
    assert len(read_keys(",\n".join(lines))) == 2
    with pytest.raises(ValueError, match="separated by commas"):
        read_keys("\n".join(lines))


@pytest.mark.parametrize("text", [",", " , ", " ", "anna=", "anna=a-long-long-secret,bert="])
def test_list_without_a_key_is_refused(text: str) -> None:
    """As a script writes it whose variables are not set: the studio would be open to everybody."""
    with pytest.raises(ValueError, match="no key"):
        read_keys(text)


def test_guessable_key_gives_a_warning_that_does_not_contain_it(caplog: pytest.LogCaptureFixture) -> None:
    read_keys(f"hunter2,{'a' * 16},sha256:{'0' * 64}")
    (record,) = caplog.records
    assert "fewer than 16 characters" in record.getMessage() and "hunter2" not in record.getMessage()
