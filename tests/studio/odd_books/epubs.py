"""EPUBs as they come from shops, converters and hand-made archives."""

from __future__ import annotations

from tests.studio.documents import epub, page
from tests.studio.odd_books.odd_book import OddBook


def headings_of_two_levels() -> OddBook:
    pages = {
        "a.xhtml": page("<h1>1</h1><h2>The Beginning</h2><p>It was a dark night.</p>"),
        "b.xhtml": page("<h1>2</h1><h2>The End</h2><p>It was a bright day.</p>"),
    }
    return OddBook("x.epub", epub(pages), ("1. The Beginning", "2. The End"), ("dark night", "bright day"))


EPUBS = (headings_of_two_levels,)
