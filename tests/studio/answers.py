"""The format of every error response."""

from __future__ import annotations

import httpx


def assert_envelope(answer: httpx.Response, status: int, param: str | None = None) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"].startswith("req_")
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"] and error["type"]
    if param:
        assert error["param"] == param
