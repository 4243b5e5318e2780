"""Messages on the terminal: the steps of the start, their progress, and the address once the studio is ready."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable

from engine import EngineInfo
from studio.settings import Settings


class Terminal:
    """Reports the engine's start on standard output, one line for each step and each tenth of a long one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._last: tuple[str, int] = ("", -1)
        self.has_failed = False
        self.on_failure: Callable[[], None] = lambda: None
        """Called if the engine fails to start."""

    def starting(self, model: str) -> None:
        """Report the start, once the port is bound."""
        settings = self._settings
        service = "page" if settings.page else "API"
        location = f"below {settings.root_path} of the proxy" if settings.root_path else f"at {settings.address}"
        self.print_line(f"Loading {model}. The {service} will be {location}")

    def progress(self, doing: str, fraction: float) -> None:
        step = (doing, int(fraction * 10))
        if step != self._last:
            self._last = step
            self.print_line(f"{fraction:4.0%}  {doing}")

    def ready(self, info: EngineInfo) -> None:
        has_page = self._settings.page and not self._settings.root_path
        hint = f"Open {self._settings.address} or try:" if has_page else "Try:"
        self.print_line(f"Ready on {info.device} ({info.dtype}). {hint}")
        self.print_line(curl_line(self._settings.address))

    def failed(self, reason: str) -> None:
        self.print_line(f"The engine could not start: {reason}")
        self.has_failed = True
        self.on_failure()

    def print_line(self, line: str) -> None:
        print(line, flush=True)


def curl_line(address: str) -> str:
    """A curl command that generates speech: the shortest use of the API."""
    body = shlex.quote(json.dumps({"input": "Hello from the studio."}))
    return f"curl {address}/v1/audio/speech -H 'Content-Type: application/json' -d {body} -o hello.mp3"
