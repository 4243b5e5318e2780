"""The studio's settings: a frozen record read from STUDIO_… variables and .env; an invalid value prevents the start."""

from __future__ import annotations

import difflib
import hashlib
import ipaddress
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from studio import ASSETS
from studio.errors import SettingsError

log = logging.getLogger(__name__)

PREFIX = "STUDIO_"
ENV_FILE = ".env"
ENCODING = "utf-8-sig"
"""UTF-8, also as Notepad writes it."""
UNPREFIXED = ("MODEL", "PORT", "FISH_KVCACHE_ATTN")
"""Settings that also work without the prefix, because platforms and fish-speech users set them."""

SPACE_DATA = Path("/data")
"""The persistent storage of a Space, if it has any; everything else is lost on a restart."""
TAKE_BYTES = 4 * 2**20  # default room for each kept take: the FLAC of a minute and a half
MIN_TAKE_BYTES = 4 * 2**30
ALL_GPUS = 0
"""STUDIO_ENGINES=all: one engine for each GPU."""
MAX_TRASH_DAYS = 3650
_ADDRESS = re.compile(r"https?://[A-Za-z0-9._\[\]:-]+(/[A-Za-z0-9._~/-]*)?")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

SHORT = 16
"""Keys with fewer characters can be guessed."""


class ApiKey(NamedTuple):
    """One of STUDIO_API_KEYS."""

    digest: bytes
    """SHA-256 of the key."""
    name: str = ""
    """Name of the holder; blank: takes and projects belong to the key itself."""

    @property
    def unnamed_owner(self) -> str:
        """Owner of takes and projects while the key has no name."""
        return f"key {self.digest.hex()[:12]}"

    @property
    def owner(self) -> str:
        """Owner of takes and projects as stored in the library; keys with the same name share them."""
        return f"owner {self.name}" if self.name else self.unnamed_owner


def read_keys(text: str) -> tuple[ApiKey, ...]:
    """Parse KEY or NAME=KEY, separated by commas; a key may be given as sha256:HEX. Raises ValueError, also for a text
    without any key: a studio that was meant to have keys must not be open to everybody."""
    keys = tuple(_read_key(part.strip()) for part in text.split(",") if part.strip())
    if text and not keys:
        raise ValueError("the list has no key; remove the variable to run a studio without keys")
    if len({key.digest for key in keys}) < len(keys):
        raise ValueError("two of the names have the same key, which would open only one's takes; each needs its own")
    return keys


def _read_key(text: str) -> ApiKey:
    name, _, key = text.partition("=")
    if not key.strip("="):  # no name, or base64 padding at the end of a key
        if text.endswith("=") and len(text) < SHORT:
            raise ValueError(f"{text!r} has a name and no key")
        return ApiKey(_digest(text))
    if not re.fullmatch(r"[\w.@ -]{1,64}", name.strip()):
        raise ValueError("the name before = must consist of letters, digits, spaces and . _ - @")
    return ApiKey(_digest(key.strip()), name.strip())


def _digest(key: str) -> bytes:
    if re.search(r"[\x00-\x1f]", key):
        raise ValueError("keys are separated by commas, not by line breaks or tabs, which no program can send in a key")
    if not key.startswith("sha256:"):
        if len(key) < SHORT:
            log.warning("one of STUDIO_API_KEYS has fewer than %d characters and can be guessed", SHORT)
        return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
    if not re.fullmatch(r"sha256:[0-9a-fA-F]{64}", key):
        raise ValueError("each must be a key, or sha256: and 64 hexadecimal digits")
    return bytes.fromhex(key.removeprefix("sha256:"))


def default_home() -> Path:
    """The studio's folder in the system's folder for user data, perhaps with ~, which a user need not have."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Application Support"
    else:
        base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base, "fish-voice-studio")


def on_space() -> bool:
    """Whether this is a Hugging Face Space."""
    return bool(os.environ.get("SPACE_ID"))


def _default_backup() -> str | None:
    return str(SPACE_DATA / "studio") if on_space() and os.access(SPACE_DATA, os.W_OK) else None


def _host(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_-]{1,63}+(?:\.[A-Za-z0-9_-]{1,63}+)*+\.?", text):
        return text
    try:
        return str(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        raise ValueError("it must be a host name or an IP address") from None


def _matches(pattern: str, allowed: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"it must be {allowed}")
        return text

    return AfterValidator(check)


def _from_text(parse: Callable[[str], object]) -> BeforeValidator:
    """Parses a variable; a value that is no text, given in Python, stays as it is."""
    return BeforeValidator(lambda value: parse(value) if isinstance(value, str) else value)


def _engines(text: str) -> object:
    if text.lower() == "all":
        return ALL_GPUS
    minimum, dash, maximum = text.partition("-")
    numbers = [int(part) for part in (minimum, maximum if dash else minimum) if re.fullmatch("[1-9][0-9]{0,3}", part)]
    if len(numbers) != 2 or (dash and numbers[0] >= numbers[1]):
        raise ValueError("it must be a number of engines, all, or a range such as 2-8")
    return tuple(numbers) if dash else numbers[0]


def expanded(text: str) -> str:
    """The text, with the home folder for ~. Raises ValueError for a blank one, and the ~ of a user who is not there."""
    if not text.strip():  # it would be the working directory
        raise ValueError("it is blank; name a folder")
    if (path := os.path.expanduser(text)).startswith("~"):
        raise ValueError("the user has no home folder, for which ~ stands")
    return path


def _folder(text: str) -> str:
    text = expanded(text)
    # Unlike Path's before Python 3.14, these do not fail in a folder that is closed to us.
    if not os.path.isdir(text) or not os.access(text, os.R_OK | os.X_OK):
        raise ValueError("it must be an existing folder that the studio's user may read")
    return text


def _writable(text: str) -> str:
    folder = Path(expanded(text)).absolute()
    existing = next(parent for parent in (folder, *folder.parents) if os.path.exists(parent))
    if not existing.is_dir() or not os.access(existing, os.R_OK | os.W_OK | os.X_OK):
        raise ValueError("it must be a folder that the studio's user may read and write")
    return str(folder)


def _ref_sources(text: str) -> object:
    sources = [_ref_source(part) for part in _split(text)]
    if sum(isinstance(source, Path) for source in sources) > 1:
        raise ValueError("it may have one folder at most")
    return sources


def _ref_source(text: str) -> Path | Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        if os.path.isdir(text := expanded(text)):
            return Path(text)
    raise ValueError("it must be an existing folder, networks such as 192.168.1.0/24, or both, separated by commas")


def _origins(parts: tuple[str, ...]) -> tuple[str, ...]:
    origins = tuple(part.rstrip("/").lower() for part in parts)  # as browsers send them
    for origin in origins:
        if origin != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[A-Za-z0-9._\[\]:-]+", origin):
            examples = "https://example.org, chrome-extension://ID or app://obsidian.md"
            raise ValueError(f"it must be * or a comma-separated list of origins such as {examples}")
    return origins


def _hosts(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name if name == "*" else _host(name).lower() for name in parts)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _chat(text: str) -> object:
    parts = text.split()
    if len(parts) not in (2, 3) or not _ADDRESS.fullmatch(parts[0]):
        what = "it must be an address, a model and, if needed, a key, separated by spaces"
        raise ValueError(f"{what}, such as http://127.0.0.1:11434/v1 llama3.1")
    return parts


def _wyoming(text: str) -> str:
    match = re.fullmatch(r"tcp://(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})", text)
    if match is None or not 1 <= int(match[1]) <= 65535:
        raise ValueError("it must be an address with a port, such as tcp://127.0.0.1:10200")
    return text


def _weights(text: str) -> object:
    return {"auto": None, "bf16": "bfloat16", "fp32": "float32"}.get(text.lower(), text.lower())


def _with_and_without_prefix(name: str) -> AliasChoices:
    return AliasChoices(PREFIX + name, name)


Device = Annotated[str, _matches(r"cpu|mps|cuda(:[0-9]{1,2})?", "cpu, cuda, cuda:N or mps")]
RayAddress = Annotated[
    str, _matches(r"auto|[A-Za-z0-9_.\[\]:-]+:[0-9]{1,5}", "auto, or HOST:PORT of Ray's head; ray:// cannot stream")
]
RootPath = Annotated[
    str, _matches(r"((/[A-Za-z0-9._~-]+)+)?/?", "a path such as /studio"), AfterValidator(lambda path: path.rstrip("/"))
]
LogLevel = Annotated[Literal["critical", "error", "warning", "info", "debug"], _from_text(str.lower)]
Folder = Annotated[str, AfterValidator(_folder)]
WritableFolder = Annotated[str, AfterValidator(_writable)]


class Settings(BaseSettings):
    """Each field is read from STUDIO_ and its name in capitals; docs/settings.md describes them."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=ENV_FILE,
        env_file_encoding=ENCODING,
        env_ignore_empty=True,
        extra="ignore",  # `load` warns about unknown names
        frozen=True,
        populate_by_name=True,
    )

    host: Annotated[str, AfterValidator(_host)] = Field(
        default_factory=lambda: "0.0.0.0" if on_space() else "127.0.0.1"
    )
    port: int = Field(default=7860, ge=0, le=65535, validation_alias=_with_and_without_prefix("PORT"))
    page: bool = True
    """False: only the API."""
    model: Annotated[str, AfterValidator(expanded)] = Field(
        default=str(ASSETS / "fry"), validation_alias=_with_and_without_prefix("MODEL")
    )
    """A folder in S2 Pro's published layout, or a hub id such as fishaudio/s2-pro."""
    home: WritableFolder = Field(default_factory=lambda: str(default_home()))
    """The library's folder."""
    backup_dir: WritableFolder | None = Field(default_factory=_default_backup)
    """Folder for backups of the library."""
    ref_sources: Annotated[tuple[Path | Network, ...], NoDecode, _from_text(_ref_sources)] = ()
    """Allowed sources of ref_audio besides public addresses: a folder (file:), private networks (http:)."""
    transcriber: Annotated[str, AfterValidator(lambda text: ":".join(map(expanded, text.split(":", 1))))] | None = None
    """For example faster-whisper:base, or faster-whisper: and a folder."""
    chat: Annotated[tuple[str, ...], NoDecode, _from_text(_chat)] = Field(default=(), repr=False)
    """Address, model and, if needed, key of an OpenAI-compatible chat endpoint; empty: no text leaves this machine."""
    keep_takes: int = Field(default_factory=lambda: 0 if on_space() else 1000, ge=0, le=1_000_000)
    """Number of takes kept, besides starred ones. 0 on a Space, whose visitors without keys would hear each other's."""
    trash_days: int = Field(default=7, ge=0, le=MAX_TRASH_DAYS)
    """Days for which deleted items can be restored; 0: they are removed immediately."""
    update_notice: bool = False
    """Whether the package index may be asked once a week for newer versions."""
    share_days: int = Field(default=0, ge=0, le=3650)
    """Maximum days for which a link opens a take; 0: links are disabled."""
    voices: Folder = str(ASSETS / "fry" / "voices")
    """A folder with NAME.wav and NAME.txt for every bundled voice."""

    device: Device | None = None
    codec_device: Device | None = None
    weights: Annotated[Literal["float32", "bfloat16", "int8", "int6"] | None, _from_text(_weights)] = None
    """None: float32 on a CPU; bfloat16, int8 or int6 on a GPU, depending on its free memory."""
    memory_budget: float | None = Field(default=None, ge=1, le=100_000)
    """GiB."""
    engines: Annotated[int | tuple[int, int] | None, NoDecode, _from_text(_engines)] = None
    """Number of engine processes under Ray, or a range that follows the load. None: one engine, in this process."""
    ray_address: RayAddress | None = None
    """Address of the cluster that runs the engines."""
    max_rows: int | None = Field(default=None, ge=1, le=1024)
    """Concurrent requests; None: depends on device and memory."""
    max_waiting: int = Field(default=64, ge=0, le=100_000)
    max_context: int | None = Field(default=None, ge=256, le=1_000_000)
    """Maximum positions of a request, prompt and speech together; None: depends on model and memory."""
    threads: int | None = Field(default=None, ge=1, le=1024)
    """Threads of an operation on the CPU; None: half of the cores."""
    fish_kvcache_attn: Annotated[Literal["1", "0", "required"], _from_text(str.lower)] = Field(
        default="1", validation_alias=_with_and_without_prefix("FISH_KVCACHE_ATTN")
    )
    reproducible: bool = False
    """Whether a seeded take is bit-identical alone and under load."""

    log_level: LogLevel = "warning"
    root_path: RootPath = ""
    """Path of the studio behind a proxy, without a trailing slash."""
    cors_origins: Annotated[tuple[str, ...], NoDecode, _from_text(_split), AfterValidator(_origins)] = ()
    """Origins of pages that may call the API; * for all, but a sign-in is valid only for named origins."""
    allowed_hosts: Annotated[tuple[str, ...], NoDecode, _from_text(_split), AfterValidator(_hosts)] = ()
    """Allowed host names besides localhost and host; * for any. Empty: any, but on a loopback address without keys
    only those two."""
    api_keys: Annotated[tuple[ApiKey, ...], NoDecode, _from_text(read_keys)] = Field(default=(), repr=False)
    public_listing: bool = False
    """Whether models and voices may be listed without a key, as Open WebUI does."""
    max_per_caller: int | None = Field(default=None, ge=1, le=100_000)
    """Concurrent speech requests per key, or per address if there are no keys."""
    requests_per_minute: int | None = Field(default=None, ge=1, le=1_000_000)
    wyoming: Annotated[str, AfterValidator(_wyoming)] | None = None
    """Address for Wyoming's clients, such as Home Assistant; the protocol has no keys."""

    @model_validator(mode="before")
    @classmethod
    def _strip(cls, values: dict[str, object]) -> dict[str, object]:
        """Without blanks around values, such as the carriage return of a script from Windows; a blank one stays."""
        return {name: value.strip() or value if isinstance(value, str) else value for name, value in values.items()}

    @classmethod
    def load(cls) -> Settings:
        """Read the settings and warn about unknown names. Raises SettingsError for an invalid value."""
        _check_file()
        variables = {**dotenv_values(ENV_FILE, encoding=ENCODING), **os.environ}
        _check_names(variables, [name.upper() for name in cls.model_fields])
        try:
            return cls()
        except ValidationError as error:
            raise SettingsError(_message(error, variables)) from None

    @property
    def has_fleet(self) -> bool:
        """Whether the engines run in separate processes, under Ray."""
        return self.engines is not None or self.ray_address is not None

    @property
    def take_bytes(self) -> int:
        """Maximum bytes of audio of takes that are not starred."""
        return max(MIN_TAKE_BYTES, self.keep_takes * TAKE_BYTES)

    @property
    def ref_folder(self) -> Path | None:
        return next((source for source in self.ref_sources if isinstance(source, Path)), None)

    @property
    def ref_networks(self) -> tuple[Network, ...]:
        return tuple(source for source in self.ref_sources if not isinstance(source, Path))

    @property
    def address(self) -> str:
        """The studio's address on this machine, without a proxy."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def has_first_key(self, caller: str) -> bool:
        """Whether a caller, as named in requests, runs the studio: it has the first key, or no keys are set."""
        return not self.api_keys or caller == self.api_keys[0].owner

    def caller_name(self, caller: str) -> str | None:
        """The name that STUDIO_API_KEYS gives a caller; None without one."""
        kind, _, name = caller.partition(" ")
        return name if kind == "owner" and name in {key.name for key in self.api_keys} else None


def _check_file() -> None:
    """Raises SettingsError if .env, or a line of it, cannot be read: its keys may be what is missing then."""
    try:
        with open(ENV_FILE, encoding=ENCODING) as file:
            lines = [(binding.original.line, binding.error, binding.key or "") for binding in parse_stream(file)]
        # A line of another format, such as PowerShell's $env:STUDIO_API_KEYS=…, would otherwise set nothing.
        unread = [line for line, error, name in lines if error or (PREFIX in name and not name.isidentifier())]
    except (OSError, UnicodeDecodeError) as error:
        if not os.path.lexists(ENV_FILE):
            return
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        message = f"{ENV_FILE} cannot be read: {why}; save it as a text file in UTF-8, or remove it"
        raise SettingsError(message) from None
    if unread:
        raise SettingsError(f'line {unread[0]} of {ENV_FILE} cannot be read; lines are NAME=value or NAME="value"')


def _check_names(variables: Mapping[str, str | None], fields: list[str]) -> None:
    """Warn about names that look like settings but are not. Raises SettingsError for keys under another name."""
    names = [PREFIX + field for field in fields]
    for name in variables:
        if (name.upper().startswith(PREFIX) and name.upper() not in names) or name == "API_KEYS":
            if "KEY" in name.upper() and variables[name] and not variables.get("STUDIO_API_KEYS"):
                remedy = "name it STUDIO_API_KEYS, or anyone could use the studio without a key"
                raise SettingsError(f"{name} is not a setting: {remedy}")
            matches = difflib.get_close_matches(name.upper(), names, 1, cutoff=0.8)
            hint = f" (did you mean {matches[0]}?)" if matches else ""
            log.warning("%s is not a setting and is ignored%s; see docs/settings.md", name, hint)


def _message(error: ValidationError, variables: Mapping[str, str | None]) -> str:
    """The variable, its value and the allowed values."""
    first = error.errors(include_url=False)[0]
    message = first["msg"].removeprefix("Value error, ").replace("Input should be", "it must be")
    name = str(first["loc"][0]).upper().removeprefix(PREFIX)
    variable = PREFIX + name if variables.get(PREFIX + name) or name not in UNPREFIXED else name
    if not variables.get(variable):
        return (
            f"the default of {variable}, {first['input']!r}, cannot be used: {message}; set {variable} to another one"
        )
    value = "…" if name in ("API_KEYS", "CHAT") else repr(variables[variable])
    return f"{variable}={value} cannot be used: {message}"
