"""The page: a Gradio app over the same services as the API."""

from __future__ import annotations

import inspect


def import_gradio() -> None:
    """Import Gradio without writing type stubs, which takes two fifths of its import (2.3 s instead of 1.5 s).

    For each component class, Gradio (6.31, ``component_meta.create_or_modify_pyi``) parses the module and its stub and
    writes the stub if it differs. This has no switch, but classes without a file, as in a notebook, get no stub.
    """
    getfile = inspect.getfile

    def no_file_of_gradio(cls: type) -> str:
        if getattr(cls, "__module__", "").startswith("gradio."):
            raise OSError("no stub is wanted")
        return getfile(cls)

    inspect.getfile = no_file_of_gradio  # type: ignore[assignment]
    try:
        import gradio  # noqa: F401
    finally:
        inspect.getfile = getfile


import_gradio()
