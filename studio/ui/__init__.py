"""The page: a Gradio app over the same services as the API."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

import httpx


def import_gradio() -> None:
    """Import Gradio without its type stubs, and without the proxies and certificates of the environment.

    Writing type stubs takes two fifths of the import (2.3 s instead of 1.5 s). For each component class, Gradio (6.31,
    ``component_meta.create_or_modify_pyi``) parses the module and its stub and writes the stub if it differs. This has
    no switch, but classes without a file, as in a notebook, get no stub.

    Gradio also makes clients for other sites, which the page never asks; a proxy that httpx cannot use, such as
    ALL_PROXY=socks://127.0.0.1:7890, or a missing SSL_CERT_FILE would stop the import.
    """
    getfile, importer = inspect.getfile, threading.get_ident()
    clients = {kind: kind.__init__ for kind in (httpx.Client, httpx.AsyncHTTPTransport)}

    def no_file_of_gradio(cls: type) -> str:
        if getattr(cls, "__module__", "").startswith("gradio."):
            raise OSError("no stub is wanted")
        return getfile(cls)

    def without_environment(make: Callable[..., None]) -> Callable[..., None]:
        def made(client: object, *values: Any, **options: Any) -> None:
            if threading.get_ident() == importer:  # the engine's thread may be downloading a model
                options.setdefault("trust_env", False)
            make(client, *values, **options)

        return made

    inspect.getfile = no_file_of_gradio  # type: ignore[assignment]
    for kind, make in clients.items():
        kind.__init__ = without_environment(make)  # type: ignore[method-assign]
    try:
        import gradio  # noqa: F401
    finally:
        inspect.getfile = getfile
        for kind, make in clients.items():
            kind.__init__ = make  # type: ignore[method-assign]


import_gradio()
