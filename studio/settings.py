"""The studio's settings: one frozen record from the environment; a bad value stops the start."""

from __future__ import annotations

import hashlib
import importlib.util
import ipaddress
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from studio.paths import ASSETS
from studio.spelling import near_misses
from studio.unicode_text import pip_install
from studio.voices.hearing.recogniser import check_name

log = logging.getLogger(__name__)


def default_home(environment: Mapping[str, str] | None = None) -> Path:
    """Where programs of this system keep a user's data, and there our own folder."""
    environment = os.environ if environment is None else environment
    home = Path.home()
    if sys.platform == "win32":
        base = Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    else:
        base = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share")
    return base / "fish-voice-studio"


SPACE_DATA = Path("/data")
"""Where a Space has its bucket, if it has one; what is elsewhere is gone after a restart."""


def on_space(environment: Mapping[str, str] | None = None) -> bool:
    """Whether this is a Hugging Face Space."""
    return bool((os.environ if environment is None else environment).get("SPACE_ID"))


SHORT_KEY = 16
"""Characters."""
ALL_GPUS = 0
"""As ENGINES: one engine for each GPU there is."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class SettingsError(ValueError):
    """A setting is unknown or cannot be used; the message names variable, value and what is allowed."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Each field is the environment variable of its name in capitals; an empty one counts as unset."""

    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 for every interface (the default on a Hugging Face Space)."""
    port: int = 7860
    page: bool = True
    """0: the API alone, without the page; Gradio need not be installed then."""
    model: str = str(ASSETS / "fry")
    """A folder in S2 Pro's published layout, or a hub id such as fishaudio/s2-pro."""
    studio_home: str = field(default_factory=lambda: str(default_home()))
    """The folder of the voice library: voices, takes and their audio."""
    backup_dir: str | None = None
    """A folder on another disk for copies of the library; unset: /data/studio on a Space with a bucket there."""
    ref_folder: str | None = None
    """A folder whose files requests may name as file: addresses in ref_audio; unset: none."""
    ref_networks: tuple[Network, ...] = ()
    """Private networks, such as 192.168.1.0/24, separated by commas, from which ref_audio may be fetched too."""
    transcriber: str | None = None
    """What writes down the words of clips, such as faster-whisper:base (a model's name or folder); unset: nothing."""
    keep_takes: int = 1000
    """So many takes stay in the library with their audio, the newest, and all that are starred; 0 keeps none."""
    keep_takes_mb: int = 4096
    """MiB that the audio of takes may fill; starred ones do not count."""
    share_days: int = 0
    """Days for which a link may let anybody hear a kept take, without a key; 0: takes are not shared by links."""
    voices: str = str(ASSETS / "fry" / "voices")
    """A folder with NAME.wav and NAME.txt for every bundled voice; put into the library at the first start."""
    device: str | None = None
    """cpu, cuda, cuda:1 …; unset takes a GPU when there is one."""
    codec_device: str | None = None
    """Device of the audio codec; unset: the same."""
    dtype: str | None = None
    """float32 or bfloat16; unset: bfloat16 on CUDA, float32 elsewhere."""
    codec_dtype: str = "float32"
    """Precision of the codec's decoder: float32, tf32 (on a GPU with graphs) or bfloat16."""
    memory_budget: int | None = None
    """GiB that the engine may hold; unset: what is free on the GPU."""
    engines: int | tuple[int, int] | None = None
    """So many engines, each on a GPU and in a process of its own, started and watched by Ray; 2-8: as many of these as
    are needed; all: one for each GPU. Unset: one, in the studio's process, without Ray."""
    ray_address: str | None = None
    """auto, or HOST:PORT of the head: the Ray cluster that this machine belongs to and that runs the engines."""
    speech_processes: int | None = None
    """With ENGINES or RAY_ADDRESS: so many processes beside the studio's own, which take all connections and send the
    speech; 0 or 1: none. Unset: for engines on GPUs as many as there are engines, if there are two cores for each."""
    max_rows: int | None = None
    """Requests spoken at the same time; unset: chosen by device and memory."""
    max_waiting: int = 64
    """Requests that may wait for their turn; one more is answered 429."""
    max_context: int | None = None
    """Positions a request, prompt and speech together; unset: the checkpoint's own, at most 4096, or what fits."""
    threads: int | None = None
    """CPU threads an operation may use; unset: half of the cores when the device is a CPU."""
    prefix_cache_mb: int = 512
    """Memory for the model's state of known voices, in MiB; 0 keeps none."""
    graphs: bool = True
    """0: on a GPU too, draw frames in plain torch instead of CUDA graphs over fused kernels."""
    fish_kvcache_attn: str = "1"
    """The Triton KV-cache attention kernel: 1 where it can load, 0 never, required refuses to start without it."""
    weights: str | None = None
    """dtype: as DTYPE says; fp8: on a GPU, the slow AR's feed-forward in 8 bits; fp8-all: attention and fast AR too.
    Unset: dtype, or fp8 where that does not fit."""
    twelve_bits: bool = True
    """0: do not hold bfloat16 weights in twelve bits besides, from which a GPU serves few callers faster."""
    reproducible: bool = False
    """1: a seeded take is the same alone and under load on a GPU too, bit by bit, a tenth slower for one caller."""
    log_level: str = "warning"
    """critical, error, warning, info or debug."""
    root_path: str = ""
    """The path under which a reverse proxy serves the studio, such as /studio."""
    cors_origins: tuple[str, ...] = ()
    """Web origins, separated by commas, whose pages may call the API; * for all, with a key that the page itself sends:
    a sign-in counts only for pages of origins that are named."""
    allowed_hosts: tuple[str, ...] = ()
    """Names, separated by commas, under which the studio answers beside localhost and HOST; * for any. Unset: any, but
    those two alone where HOST is a loopback address and no keys are set."""

    api_keys: tuple[bytes, ...] = field(default=(), repr=False)
    """Keys, separated by commas, one of which page and API then ask for; each is a key or sha256:HEX of one.
    Kept as SHA-256 digests."""
    key_names: tuple[str, ...] = ()
    """Names of who has the API_KEYS, in their order: takes and projects are the name's, also with a new key for it.
    Separated by commas; several keys may have one name. Unset: they are the key's."""
    public_listing: bool = False
    """true lets callers without a key list models and voices, as Open WebUI does."""
    max_per_caller: int | None = None
    """Speech requests that one key, or one address where no keys are set, may have at a time; unset: no limit."""
    requests_per_minute: int | None = None
    """Speech requests that one caller may begin in a minute; unset: no limit."""
    project_rows: int | None = None
    """Parts of projects spoken at the same time at most; 0: none; unset: half of max_rows."""
    send_timeout: int = 60
    """Seconds after which a listener who takes no more bytes is let go."""
    profile: str = "full"
    """full: engine, page and API for many at once; zero: for ZeroGPU, which gives a GPU for one call."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read the settings; a name that is nearly a setting's is logged. Raises SettingsError for a bad value."""
        environment = os.environ if environment is None else environment
        known = {each.name.upper(): each.name for each in fields(cls)}
        for name, setting in near_misses(environment, known):
            log.warning("ignoring %s, which is not a setting (did you mean %s?); see docs/settings.md", name, setting)
        values: dict[str, object] = {}
        if on_space(environment):
            values["host"] = "0.0.0.0"
            values["keep_takes"] = 0  # without keys all visitors are one person, and would hear each other's takes
            if os.access(SPACE_DATA, os.W_OK):
                values["backup_dir"] = str(SPACE_DATA / "studio")
        if environment.get("SPACES_ZERO_GPU"):
            values["profile"] = "zero"
        for variable, name in known.items():
            text = environment.get(variable, "").strip()
            if not text or (variable == "HOST" and _PLATFORM.fullmatch(text)):
                continue
            try:
                values[name] = _READERS[name](text)
            except ValueError as error:
                shown = "…" if name == "api_keys" else text
                raise SettingsError(f"{variable}={shown!r} cannot be used: {error}") from None
        if values.get("profile") == "zero" and values.get("page") is False:
            raise SettingsError("PAGE=0 cannot be used with PROFILE=zero, which serves the page alone")
        settings = cls(**values)  # type: ignore[arg-type]
        if settings.has_fleet and settings.profile == "zero":
            raise SettingsError("ENGINES and RAY_ADDRESS cannot be used with PROFILE=zero, where Gradio lends the GPU")
        if settings.speech_processes and not settings.has_fleet:
            raise SettingsError(
                f"SPEECH_PROCESSES={settings.speech_processes} needs engines in processes of their own, which several "
                "can share: set ENGINES, or RAY_ADDRESS, as well"
            )
        if settings.key_names and len(settings.key_names) != len(settings.api_keys):
            counts = f"{len(settings.key_names)} names, and API_KEYS {len(settings.api_keys)} keys"
            raise SettingsError(f"KEY_NAMES has {counts}: give every key a name, in the same order, or none")
        return settings

    def owner(self, key: bytes) -> str:
        """Whose takes and projects are those of a key, of which ``key`` is the digest."""
        names = dict(zip(self.api_keys, self.key_names, strict=False))
        return f"owner {names[key]}" if key in names else f"key {key.hex()[:12]}"

    @property
    def has_fleet(self) -> bool:
        """Whether engines run in processes of their own, under Ray."""
        return self.engines is not None or self.ray_address is not None

    @property
    def address(self) -> str:
        """Where this machine reaches the studio, past any proxy."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)
        if ":" in host and not host.startswith("["):
            host = f"[{host}]"
        return f"http://{host}:{self.port}"


Reader = Callable[[str], object]

_PLATFORM = re.compile(r"(x86_64|aarch64|arm64|powerpc64le)-[a-z0-9_.-]+")
"""What conda's compilers set HOST to, such as x86_64-conda-linux-gnu: the platform, not an address."""


def _host(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_.-]+", text):
        return text
    try:
        return str(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        raise ValueError("it must be a host name or an IP address") from None


def _whole(low: int, high: int) -> Reader:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,12}", text) or not low <= int(text) <= high:
            raise ValueError(f"it must be a whole number from {low} to {high}")
        return int(text)

    return read


def _one_of(*allowed: str) -> Reader:
    def read(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError(f"it must be one of {', '.join(allowed)}")
        return text.lower()

    return read


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError("it must be 0 or 1")
    return text == "1"


def _device(text: str) -> str:
    if not re.fullmatch(r"cpu|mps|cuda(:[0-9]{1,2})?", text):
        raise ValueError("it must be cpu, cuda, cuda:N or mps")
    return text


def _engines(text: str) -> int | tuple[int, int]:
    if text.lower() == "all":
        return ALL_GPUS
    least, dash, most = text.partition("-")
    try:
        low, high = (int(str(_whole(1, 1024)(each))) for each in (least, most if dash else least))
    except ValueError as error:
        raise ValueError(f"{error}, or all, or two such numbers as 2-8") from None
    if dash and low >= high:
        raise ValueError("the second number must be the larger one")
    return (low, high) if dash else low


def _ray_address(text: str) -> str:
    if text != "auto" and not re.fullmatch(r"[A-Za-z0-9_.\[\]:-]+:[0-9]{1,5}", text):
        raise ValueError("it must be auto, or HOST:PORT of a Ray cluster's head; ray:// does not carry streams")
    return text


def _path_prefix(text: str) -> str:
    path = text.rstrip("/")
    if path and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", path):
        raise ValueError("it must be a path such as /studio")
    return path


def _folder(text: str) -> str:
    if not Path(text).is_dir():
        raise ValueError("it must be an existing folder")
    return text


def _writable(text: str) -> str:
    folder = Path(text).expanduser().absolute()
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise ValueError("it must be a writable folder")
    return str(folder)


def _profile(text: str) -> str:
    profile = str(_one_of("full", "zero")(text))
    if profile == "zero" and importlib.util.find_spec("spaces") is None:
        raise ValueError(f"it needs the package spaces, which is not installed: {pip_install('spaces')}")
    return profile


def _networks(text: str) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError:
        raise ValueError("it must be a comma-separated list of networks such as 192.168.1.0/24") from None


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(part.strip().rstrip("/") for part in text.split(",") if part.strip())
    for origin in origins:
        if origin != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[A-Za-z0-9._\[\]:-]+", origin):
            examples = "https://example.org, chrome-extension://ID or app://obsidian.md"
            raise ValueError(f"it must be * or a comma-separated list of origins such as {examples}")
    return origins


def _hosts(text: str) -> tuple[str, ...]:
    names = [part.strip() for part in text.split(",") if part.strip()]
    return tuple(name if name == "*" else _host(name).lower() for name in names)


def _keys(text: str) -> tuple[bytes, ...]:
    return tuple(_digest(part.strip()) for part in text.split(",") if part.strip())


def _names(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(","))
    if not all(re.fullmatch(r"[\w.@ -]{1,64}", name) for name in names):
        raise ValueError("it must be a comma-separated list of names of letters, digits, spaces and . _ - @")
    return names


def _digest(key: str) -> bytes:
    if not key.startswith("sha256:"):
        if len(key) < SHORT_KEY:
            log.warning("one of API_KEYS has fewer than %d characters and can be guessed; use a longer one", SHORT_KEY)
        return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
    if not re.fullmatch(r"sha256:[0-9a-fA-F]{64}", key):
        raise ValueError("each must be a key, or sha256: and 64 hexadecimal digits")
    return bytes.fromhex(key.removeprefix("sha256:"))


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0", "yes", "no"):
        raise ValueError("it must be true or false")
    return text.lower() in ("true", "1", "yes")


_READERS: dict[str, Reader] = {
    "host": _host,
    "port": _whole(0, 65535),
    "page": _switch,
    "model": str,
    "studio_home": _writable,
    "backup_dir": _writable,
    "ref_folder": _folder,
    "ref_networks": _networks,
    "transcriber": check_name,
    "keep_takes": _whole(0, 1_000_000),
    "keep_takes_mb": _whole(1, 100_000_000),
    "share_days": _whole(0, 3650),
    "voices": _folder,
    "device": _device,
    "codec_device": _device,
    "dtype": _one_of("float32", "bfloat16"),
    "codec_dtype": _one_of("float32", "tf32", "bfloat16"),
    "memory_budget": _whole(1, 100_000),
    "engines": _engines,
    "ray_address": _ray_address,
    "speech_processes": _whole(0, 64),
    "max_rows": _whole(1, 1024),
    "max_waiting": _whole(0, 100_000),
    "max_context": _whole(256, 1_000_000),
    "threads": _whole(1, 1024),
    "prefix_cache_mb": _whole(0, 1_000_000),
    "graphs": _switch,
    "weights": _one_of("dtype", "fp8", "fp8-all"),
    "twelve_bits": _switch,
    "reproducible": _switch,
    "fish_kvcache_attn": _one_of("1", "0", "required"),
    "log_level": _one_of("critical", "error", "warning", "info", "debug"),
    "root_path": _path_prefix,
    "cors_origins": _origins,
    "allowed_hosts": _hosts,
    "api_keys": _keys,
    "key_names": _names,
    "public_listing": _truth,
    "max_per_caller": _whole(1, 100_000),
    "requests_per_minute": _whole(1, 1_000_000),
    "project_rows": _whole(0, 1024),
    "send_timeout": _whole(1, 86_400),
    "profile": _profile,
}
