"""Import Gradio without the type stubs that it writes anew each time, which take two fifths of its import."""

from __future__ import annotations

import inspect


def import_gradio() -> None:
    """Import the package; to be called before anything else of it is imported.

    For each component class Gradio (6.31, ``component_meta.create_or_modify_pyi``) parses the class's module and stub,
    and writes the stub if it differs: 2 of 4.8 seconds on one core. There is no switch for it, but a class that comes
    from no file, as one that is made in a notebook, has no stub.
    """
    getfile = inspect.getfile

    def no_file_of_gradio(thing: type) -> str:
        if getattr(thing, "__module__", "").startswith("gradio."):
            raise OSError("no stub is wanted")
        return getfile(thing)

    inspect.getfile = no_file_of_gradio  # type: ignore[assignment]
    try:
        import gradio  # noqa: F401
    finally:
        inspect.getfile = getfile
