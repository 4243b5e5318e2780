"""Says that a newer version has been published, if the owner allows one request a week to the package index."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import logging
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from packaging.version import InvalidVersion, Version

from engine import open_regular
from studio import __version__
from studio.library.private_files import write_whole

wait = asyncio.sleep
log = logging.getLogger(__name__)

INDEX = "https://pypi.org/simple/fish-voice-studio/"
PAUSE = 7 * 86_400.0
"""Seconds between requests, across restarts and after failures."""
SECONDS, MAX_BYTES = 20.0, 2**22


class UpdateNotice:
    """``newer``: a version above this one, or None. The answer is kept in update.json of the library's folder."""

    def __init__(self, home: Path, is_allowed: bool, index: str = INDEX) -> None:
        self._file, self._is_allowed, self._index = home / "update.json", is_allowed, index
        self.newer: str | None = None

    async def watch(self, report: Callable[[str], object]) -> None:
        """Look once a week, and ``report`` a newer version in a line. Returns at once if this is not allowed."""
        while self._is_allowed:
            asked, newest = await asyncio.to_thread(self._kept)
            remaining = asked + PAUSE - time.time()
            if not 0 < remaining <= PAUSE:  # more if the clock was wrong
                newest = await asyncio.to_thread(self._fetch, newest)
                remaining = PAUSE
            if _is_above(newest, __version__) and newest != self.newer:
                self.newer = newest
                report(f"Version {newest} has been published; this is {__version__}. CHANGELOG.md says what is new.")
            await wait(remaining)

    def _kept(self) -> tuple[float, str]:
        """When the index was asked last (seconds since 1970), and the newest version then."""
        try:
            with open_regular(self._file) as file:
                kept = json.loads(file.read(MAX_BYTES))
            return float(kept["asked"]), str(kept["newest"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return 0.0, ""

    def _fetch(self, newest: str) -> str:
        """The newest published version, which is kept; ``newest`` if the index cannot be read. Blocking."""
        headers = {"Accept": "application/vnd.pypi.simple.v1+json"}
        request = urllib.request.Request(self._index, headers=headers)  # noqa: S310 - a fixed address
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310 - as above
                known = [version for version in json.loads(answer.read(MAX_BYTES))["versions"] if _is_above(version)]
            newest = max(known, key=Version, default=newest)
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, RecursionError) as error:
            log.info("the package index was not read, and is asked again in a week: %s", error)
        kept = json.dumps({"asked": time.time(), "newest": newest})
        try:
            write_whole(self._file, io.BytesIO(kept.encode()))
        except OSError as error:
            log.info("%s was not written: %s", self._file, error)
        return newest


def _is_above(version: object, other: str = "0") -> bool:
    """Whether this is the number of a final release above ``other``."""
    try:
        return Version(str(version)) > Version(other) and not Version(str(version)).is_prerelease
    except InvalidVersion:
        return False
