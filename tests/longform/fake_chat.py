"""A local chat endpoint that answers correctly, wrongly, at excessive length or never."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FakeChat:
    """Answers with ``status`` and ``body``; a body of None leaves the request unanswered."""

    def __init__(self) -> None:
        self.status = 200
        self.body: bytes | None = b""
        self.headers: dict[str, str] = {}
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.is_over = threading.Event()
        self.answer: Callable[[Any], object] | None = None
        """What to say to the content of a question; None: always ``body``."""
        self.fails_after: int | None = None
        """The number of requests after which every status is 500."""

    def says(self, content: object) -> None:
        text = content if isinstance(content, str) else json.dumps(content)
        self.body = json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


@contextmanager
def serving() -> Iterator[tuple[FakeChat, str]]:
    """The endpoint and its URL."""
    fake = FakeChat()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            fake.keys.append(self.headers["Authorization"])
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            fake.requests.append(request | {"path": self.path})
            if fake.answer is not None:
                fake.says(fake.answer(json.loads(request["messages"][-1]["content"])))
            if fake.body is None:
                fake.is_over.wait(30)
                return
            has_failed = fake.fails_after is not None and len(fake.requests) > fake.fails_after
            self.send_response(500 if has_failed else fake.status)
            for name, value in (fake.headers | {"Content-Length": str(len(fake.body))}).items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(fake.body)
            except OSError:  # the client stops reading at its limit
                return

        def log_message(self, format: str, *values: object) -> None:
            """Keep the test output quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield fake, f"http://127.0.0.1:{server.server_address[1]}/v1"
        fake.is_over.set()
        server.shutdown()
        thread.join()
