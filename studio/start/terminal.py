"""What the person who started the studio reads: what is done, how far it is, where to go when ready."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable

from engine import EngineInfo
from studio.settings import Settings


class Terminal:
    """Reports the engine's start on standard output, a line for every step and every tenth of a long one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._said: tuple[str, int] = ("", -1)
        self.has_failed = False
        self.on_failure: Callable[[], None] = lambda: None
        """Called once the engine has failed to start."""

    def starting(self) -> None:
        """The port is bound, and nothing is loaded yet."""
        settings = self._settings
        what = "page" if settings.page else "API"
        where = f"below {settings.root_path} of the proxy" if settings.root_path else f"at {settings.address}"
        self._say(f"Loading {settings.model}. The {what} will be {where}")

    def progress(self, doing: str, fraction: float) -> None:
        line = (doing, int(fraction * 10))
        if line != self._said:
            self._said = line
            self._say(f"{fraction:4.0%}  {doing}")

    def ready(self, info: EngineInfo) -> None:
        is_there = self._settings.page and not self._settings.root_path
        hint = f"Open {self._settings.address} or try:" if is_there else "Try:"
        self._say(f"Ready on {info.device} ({info.dtype}). {hint}")
        self._say(curl_line(self._settings.address))

    def tell(self, line: str) -> None:
        self._say(line)

    def failed(self, reason: str) -> None:
        self._say(f"The engine could not start: {reason}")
        self.has_failed = True
        self.on_failure()

    def _say(self, line: str) -> None:
        print(line, flush=True)


def curl_line(address: str) -> str:
    """A command that speaks: the shortest use of the API."""
    body = shlex.quote(json.dumps({"input": "Hello from the studio."}))
    return f"curl {address}/v1/audio/speech -H 'Content-Type: application/json' -d {body} -o hello.mp3"
