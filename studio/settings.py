"""The studio's settings: one frozen record from the environment; a bad or mistyped one stops the start."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The repository's root, whatever the working directory is."""


class SettingsError(ValueError):
    """A setting is unknown or cannot be used; the message names variable, value and what is allowed."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Each field is the environment variable of its name in capitals; an empty one counts as unset."""

    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 for every interface (the default on a Hugging Face Space)."""
    port: int = 7860
    model: str = str(ROOT / "assets" / "fry")
    """A folder in S2 Pro's published layout, or a hub id such as fishaudio/s2-pro."""
    voices: str = str(ROOT / "assets" / "fry" / "voices")
    """A folder with NAME.wav and NAME.txt for every bundled voice."""
    device: str | None = None
    """cpu, cuda, cuda:1 …; unset takes a GPU when there is one."""
    codec_device: str | None = None
    """Device of the audio codec; unset: the same."""
    dtype: str | None = None
    """float32 or bfloat16; unset: bfloat16 on CUDA, float32 elsewhere."""
    max_rows: int | None = None
    """Requests spoken at the same time; unset: chosen by device."""
    max_waiting: int = 64
    """Requests that may wait for their turn; one more is answered 429."""
    max_context: int | None = None
    """Positions a request, prompt and speech together; unset: the checkpoint's own, at most 4096."""
    threads: int | None = None
    """CPU threads; unset leaves the choice to torch."""
    prefix_cache_mb: int = 512
    """Memory for the model's state of known voices, in MiB; 0 keeps none."""
    graphs: bool = True
    """0: on a GPU too, draw frames in plain torch instead of CUDA graphs over fused kernels."""
    fish_kvcache_attn: str = "1"
    """The Triton KV-cache attention kernel: 1 where it can load, 0 never, required refuses to start without it."""
    log_level: str = "warning"
    """critical, error, warning, info or debug."""
    root_path: str = ""
    """The path under which a reverse proxy serves the studio, such as /studio."""
    cors_origins: tuple[str, ...] = ()
    """Web origins, separated by commas, whose pages may call the API; * for all."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read the settings; raises SettingsError for a bad value or a mistyped name."""
        environment = os.environ if environment is None else environment
        known = {field.name.upper(): field.name for field in fields(cls)}
        _refuse_mistyped(environment, known)
        values: dict[str, object] = {}
        if environment.get("SPACE_ID"):
            values["host"] = "0.0.0.0"
        for variable, name in known.items():
            text = environment.get(variable, "").strip()
            if not text:
                continue
            try:
                values[name] = _READERS[name](text)
            except ValueError as error:
                raise SettingsError(f"{variable}={text!r} cannot be used: {error}") from None
        return cls(**values)  # type: ignore[arg-type]

    @property
    def address(self) -> str:
        """The address to open in a browser on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)
        if ":" in host and not host.startswith("["):
            host = f"[{host}]"
        return f"http://{host}:{self.port}{self.root_path}"


Reader = Callable[[str], object]


def _text(text: str) -> str:
    return text


def _host(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_.-]+", text):
        return text
    try:
        return str(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        raise ValueError("allowed is a host name or an IP address") from None


def _whole(low: int, high: int) -> Reader:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,12}", text) or not low <= int(text) <= high:
            raise ValueError(f"allowed is a whole number from {low} to {high}")
        return int(text)

    return read


def _one_of(*allowed: str) -> Reader:
    def read(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError(f"allowed are {', '.join(allowed)}")
        return text.lower()

    return read


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError("allowed are 0 and 1")
    return text == "1"


def _device(text: str) -> str:
    if not re.fullmatch(r"cpu|mps|cuda(:[0-9]{1,2})?", text):
        raise ValueError("allowed are cpu, cuda, cuda:N and mps")
    return text


def _path_prefix(text: str) -> str:
    path = text.rstrip("/")
    if path and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", path):
        raise ValueError("allowed is a path such as /studio")
    return path


def _folder(text: str) -> str:
    if not Path(text).is_dir():
        raise ValueError("allowed is an existing folder")
    return text


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(part.strip().rstrip("/") for part in text.split(",") if part.strip())
    for origin in origins:
        if origin != "*" and not re.fullmatch(r"https?://[A-Za-z0-9.\[\]:-]+", origin):
            raise ValueError("allowed are origins such as https://example.org, separated by commas, or *")
    return origins


_READERS: dict[str, Reader] = {
    "host": _host,
    "port": _whole(0, 65535),
    "model": _text,
    "voices": _folder,
    "device": _device,
    "codec_device": _device,
    "dtype": _one_of("float32", "bfloat16"),
    "max_rows": _whole(1, 1024),
    "max_waiting": _whole(0, 100_000),
    "max_context": _whole(64, 1_000_000),
    "threads": _whole(1, 1024),
    "prefix_cache_mb": _whole(0, 1_000_000),
    "graphs": _switch,
    "fish_kvcache_attn": _one_of("1", "0", "required"),
    "log_level": _one_of("critical", "error", "warning", "info", "debug"),
    "root_path": _path_prefix,
    "cors_origins": _origins,
}


def _refuse_mistyped(environment: Mapping[str, str], known: Mapping[str, str]) -> None:
    """Names carry no prefix, so only a near miss of a long name can be told from a foreign variable."""
    for variable in environment:
        if variable in known:
            continue
        for name in known:
            if len(name) >= 5 and _near(variable.upper().replace("-", "_"), name):
                raise SettingsError(
                    f"the environment has {variable}={environment[variable]!r}, which is not a setting; "
                    f"did you mean {name}? All settings: {', '.join(sorted(known))}"
                )


def _near(a: str, b: str) -> bool:
    """Whether one edit at most (replace, insert, delete, swap of neighbours) or underscores tell a from b."""
    if a.replace("_", "") == b.replace("_", ""):
        return True
    if abs(len(a) - len(b)) > 1:
        return False
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    a, b = a[start:], b[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[:2][::-1] and a[2:] == b[2:])
