"""The page: a Gradio app over the same services as the API."""

from __future__ import annotations

import functools
import importlib
import inspect
import ssl
import sys
import threading
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import jinja2


class _Later(ModuleType):
    """A module that is imported once one of its names is used."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def import_gradio() -> None:
    """Import Gradio (6.31) without what the page never uses, in a third of the time.

    - Type stubs: for each component class, ``component_meta.create_or_modify_pyi`` parses the module and its stub. This
      has no switch, but classes without a file, as in a notebook, get no stub.
    - The package mcp, for tools made of Gradio's functions: Gradio does without if it is not installed.
    - pandas, for tables; descriptions of events, whose few templates are compiled for each event of each class; apps of
      unfinished pages, because mounting a page creates another; its command line; pages of models on Hugging Face.
    - Proxies, certificates and the environment, for clients of other sites, which the page never asks. A proxy that
      httpx cannot use, such as ALL_PROXY=socks://127.0.0.1:7890, or a missing SSL_CERT_FILE would stop the import.
    """
    getfile, importer, trusts_nobody = inspect.getfile, threading.get_ident(), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    def no_file_of_gradio(cls: type) -> str:
        if getattr(cls, "__module__", "").startswith("gradio."):
            raise OSError("no stub is wanted")
        return getfile(cls)

    def without_environment(make: Callable[..., None]) -> Callable[..., None]:
        def made(client: object, *values: Any, **options: Any) -> None:
            if threading.get_ident() == importer:  # the engine's thread may be downloading a model
                options = {"trust_env": False, "verify": trusts_nobody} | options
            make(client, *values, **options)

        return made

    modules: dict[str, Any] = {"mcp": None, "pandas": _Later("pandas"), "gradio.cli": SimpleNamespace(deploy=None)}
    modules["gradio.external"] = SimpleNamespace(load=None, load_chat=None, load_openapi=None)
    added = {name: module for name, module in modules.items() if name not in sys.modules}
    replaced: list[tuple[Any, str, Any]] = [
        (inspect, "getfile", no_file_of_gradio),
        (jinja2, "Template", functools.cache(jinja2.Template)),
    ]
    clients = (httpx.Client, httpx.AsyncHTTPTransport)
    replaced += [(kind, "__init__", without_environment(kind.__init__)) for kind in clients]
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in replaced]
    for owner, name, replacement in replaced:
        setattr(owner, name, replacement)
    sys.modules.update(added)
    try:
        import gradio.blocks

        gradio.blocks.App = SimpleNamespace(create_app=lambda *_, **__: None)  # type: ignore[assignment,misc]
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)
        for name, module in added.items():
            if sys.modules.get(name, module) is module:
                sys.modules.pop(name, None)


import_gradio()
