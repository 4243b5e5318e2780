"""Markdown: what is read aloud of it, and the front matter that names the book."""

from __future__ import annotations

import pytest

from studio.projects.documents import into_parts, read_document

MARKDOWN = """---
title: x
---
# The *title*

Some [link](http://a.example/x), ![picture](p.png) and [whispering] `code`.

```
not this
```
<div>nor this</div>

- one
- two

## Next

> quoted

| a | b |
|---|---|
| c | d |
"""


def test_markdown_is_read_as_it_is_spoken() -> None:
    document = read_document(MARKDOWN.encode(), "md")
    parts = into_parts(document)
    assert document.title == "x"
    assert [part.chapter for part in parts] == ["The title", "", "Next", ""]
    assert parts[1].text == "Some link,  and [whispering] code.\n\none\n\ntwo"
    assert parts[3].text.split() == ["quoted", "a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("title: 'A Garden'\nauthors: [Ann, Ben]\nlanguage: no", ("A Garden", "Ann, Ben", "no")),
        ("# mine\nTitle: Garden: A Year\nAuthor: Ann\nlang: en_GB", ("Garden: A Year", "Ann", "en-GB")),
        ("author:\n  - name: Ann\n    email: a@b\n  - Ben\nlang: 1\ndraft: yes", ("One", "Ann, Ben", "")),
        ("author: Ann\nx: " + "[" * 3000, ("One", "Ann", "")),
    ],
)
def test_the_front_matter_of_markdown_names_the_book(header: str, found: tuple[str, str, str]) -> None:
    document = read_document(f"---\n{header}\n---\n# One\n\nIt grew.".encode(), "md")
    assert [passage.text for passage in document.passages] == ["One", "It grew."]
    assert (document.title, document.author, document.language) == found


@pytest.mark.parametrize("begins", ["---\n\nIt grew.\n\n---", "---\nIt grew: a lot.\n\n---", "---\na: It grew."])
def test_lines_of_dashes_around_prose_are_not_front_matter(begins: str) -> None:
    text = " ".join(passage.text for passage in read_document(f"{begins}\n\nIt died.".encode(), "md").passages)
    assert "It grew" in text and text.endswith("It died.")
