"""A Hugging Face Hub of one model, which speaks as much of its protocol as a download needs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """The files of a folder; ``gate``: closed, it stops in the middle of model.bin; ``broken``: sends other bytes."""

    folder: Path
    model: str
    url: str = ""
    gate: threading.Event = field(default_factory=threading.Event)
    broken: bool = False
    asked: list[str] = field(default_factory=list)

    def listing(self) -> dict[str, object]:
        """As /api/models/… tells it, with a file that nobody needs."""
        siblings: list[dict[str, object]] = [{"rfilename": "../README.md", "size": 3}]
        for path in sorted(self.folder.iterdir()):
            data = path.read_bytes()
            large = {"lfs": {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}}
            siblings.append({"rfilename": path.name, "size": len(data)} | (large if path.suffix == ".bin" else {}))
        return {"id": self.model, "sha": COMMIT, "siblings": siblings}


@contextlib.contextmanager
def serve_hub(folder: Path, model: str) -> Iterator[Hub]:
    hub = Hub(folder, model)
    hub.gate.set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            hub.asked.append(path)
            if path == f"/api/models/{model}":
                return self.reply(json.dumps(hub.listing()).encode())
            if path.startswith(f"/{model}/resolve/{COMMIT}/"):  # the hub sends one on to its storage
                self.send_response(302)
                self.send_header("Location", f"/storage/{path.rpartition('/')[2]}")
                self.send_header("Content-Length", "0")
                return self.end_headers()
            if path.startswith("/storage/"):
                return self.reply((folder / path.rpartition("/")[2]).read_bytes())
            self.send_error(404)

        def reply(self, data: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            half = len(data) // 2
            self.wfile.write(data[:half])
            is_large = self.path.endswith("model.bin")
            if is_large:
                hub.gate.wait(60)
            with contextlib.suppress(OSError):  # it was given up
                self.wfile.write(data[half:-1] + (b"?" if hub.broken and is_large else data[-1:]))

        def log_message(self, *given: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.gate.set()
        server.shutdown()
        thread.join(30)
        server.server_close()
