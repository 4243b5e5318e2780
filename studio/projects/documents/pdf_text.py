"""A program of its own: a PDF comes in, its text goes out as JSON, page by page. It may use so much time and memory.

Whatever a stranger's PDF makes of the library that reads it, the studio goes on speaking; `pdf.py` runs it.
"""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from pypdf import PdfReader
from pypdf.errors import DependencyError, PyPdfError

try:
    import resource
except ImportError:  # Windows, where the time alone is limited
    resource = None  # type: ignore[assignment]

MEMORY, SECONDS = 2 * 1024**3, 120
MAX_PAGES = 5000
MAX_SIGNS = 10_000_000
"""Characters of all pages together, spaces among them."""


def main() -> None:
    """From stdin to stdout: {"pages": [...], "outline": [[page, title], ...], "title", "author"} or {"error": why}."""
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    logging.disable()
    try:
        told = _read(sys.stdin.buffer.read())
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError) as error:
        told = {"error": f"it is damaged ({type(error).__name__})"}
    except DependencyError:  # only some kinds of encryption need another package
        told = {"error": "it is encrypted; save it without a password and without restrictions"}
    except (MemoryError, RecursionError):
        told = {"error": "it takes too much memory to read"}
    sys.stdout.write(json.dumps(told))


def _read(data: bytes) -> dict[str, object]:
    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        return {"error": "it has a password; save it without one"}
    if len(reader.pages) > MAX_PAGES:
        return {"error": f"it has {len(reader.pages)} pages; at most {MAX_PAGES} are allowed"}
    pages, signs = list[str](), 0
    for page in reader.pages:
        pages.append(page.extract_text())
        signs += len(pages[-1])
        if signs > MAX_SIGNS:
            return {"error": f"it has more than {MAX_SIGNS} characters"}
    about = reader.metadata
    return {
        "pages": pages,
        "outline": list(_outline(reader, reader.outline, 2)),
        "title": str(about.title or "") if about else "",
        "author": str(about.author or "") if about else "",
    }


def _outline(reader: PdfReader, entries: Sequence[Any], depth: int) -> Iterator[tuple[int, str]]:
    for entry in entries:
        if not isinstance(entry, list):
            page = reader.get_destination_page_number(entry)
            if page is not None and entry.title:
                yield page, str(entry.title)
        elif depth > 1:
            yield from _outline(reader, entry, depth - 1)


if __name__ == "__main__":
    main()
