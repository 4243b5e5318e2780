"""A Hugging Face Hub with one model, with as much of the protocol as a download needs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """Serves a folder; while ``gate`` is closed, the large file stops halfway; ``broken`` corrupts it."""

    folder: Path
    model: str
    large: str = "model.bin"
    url: str = ""
    gate: threading.Event = field(default_factory=threading.Event)
    broken: bool = False
    refused: int = 0
    """The error status for every file of a restricted model, or 0."""
    breaks: int = 0
    """Number of responses with the large file that still break off halfway, …"""
    says_length: bool = True
    """… of which a client without the length notices nothing."""
    page: bytes = b""
    """An answer to the next request for the large file, or only a range of it, like that of a network's login page."""
    page_type: str = ""
    """Its type; without one, only a request for a range gets it."""
    listed: bytes = b""
    """An answer instead of the listing."""
    paths: list[str] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)
    """Requested ranges of files."""

    def listing(self) -> dict[str, object]:
        """The response of /api/models/…, with one file that is not needed."""
        siblings: list[dict[str, object]] = [{"rfilename": "../README.md", "size": 3}]
        for path in sorted(path for path in self.folder.rglob("*") if path.is_file()):
            data = path.read_bytes()
            large = {"lfs": {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}}
            blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
            is_large = path.suffix in (".bin", ".pth", ".safetensors")
            name = path.relative_to(self.folder).as_posix()
            siblings.append({"rfilename": name, "size": len(data), "blobId": blob} | (large if is_large else {}))
        return {"id": self.model, "sha": COMMIT, "siblings": siblings}


class _Handler(BaseHTTPRequestHandler):
    hub: Hub

    def do_GET(self) -> None:
        path, hub = self.path.partition("?")[0], self.hub
        hub.paths.append(path)
        if path == f"/api/models/{hub.model}":
            return self.reply(hub.listed or json.dumps(hub.listing()).encode())
        if path.startswith(f"/{hub.model}/resolve/{COMMIT}/"):  # the hub redirects to its storage
            if hub.refused:
                return self.send_error(hub.refused)
            self.send_response(302)
            self.send_header("Location", f"/storage/{path.partition(COMMIT + '/')[2]}")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if path.startswith("/storage/"):
            return self.reply((hub.folder / path.removeprefix("/storage/")).read_bytes())
        self.send_error(404)

    def reply(self, data: bytes) -> None:
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(wanted[1]) if wanted else 0
        if wanted:
            self.hub.ranges.append(f"{self.path.rpartition('/')[2]} from {start}")
        half, hub = max(start, len(data) // 2), self.hub
        is_page = bool(hub.page) and (bool(wanted) or (bool(hub.page_type) and self.path.endswith(hub.large)))
        if is_page:
            wanted, start, data, hub.page = None, 0, hub.page, b""
        self.send_response(206 if wanted else 200)
        if is_page and hub.page_type:
            self.send_header("Content-Type", hub.page_type)
        if hub.says_length:
            self.send_header("Content-Length", str(len(data) - start))
        else:
            self.close_connection = True
        self.end_headers()
        is_large = self.path.endswith(hub.large)
        self.wfile.write(data[start:half])
        if is_large and hub.breaks:
            hub.breaks -= 1
            return self.connection.close()
        if is_large:
            hub.gate.wait(60)
        with contextlib.suppress(OSError):  # the client gave up
            self.wfile.write(data[half:-1] + (b"?" if hub.broken and is_large else data[-1:]))

    def log_message(self, *given: object) -> None:
        """Log nothing."""


@contextlib.contextmanager
def serve_hub(folder: Path, model: str, large: str = "model.bin") -> Iterator[Hub]:
    hub = Hub(folder, model, large)
    hub.gate.set()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.gate.set()
        server.shutdown()
        thread.join(30)
        server.server_close()
