"""Import Gradio without the type stubs that it writes anew each time, which take two fifths of its import."""

from __future__ import annotations

import inspect


def import_gradio() -> None:
    """Import the package; to be called before anything else of it is imported.

    For each component class Gradio (6.31, ``component_meta.create_or_modify_pyi``) parses the class's module and stub,
    and writes the stub if it differs: without this, the import takes 2.3 s of a core, not 1.5. There is no switch, but
    a class without a file, as one that is made in a notebook, has no stub.
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
