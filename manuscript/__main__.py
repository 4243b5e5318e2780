"""`python -m manuscript book.epub`: prints the chapters of a document, and the characters who speak in it."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from manuscript import InvalidDocument, kind_of, read_document, sections_of, speakers_in

MOST_SPEAKERS = 30  # printed; a novel has hundreds of people with a single line


def main() -> int:
    """Reads the name of a file from the command line."""
    if len(sys.argv) != 2:
        print("usage: python -m manuscript FILE", file=sys.stderr)
        return 2
    file = Path(sys.argv[1])
    try:
        document = read_document(file.read_bytes(), kind_of(file.name))
    except (InvalidDocument, OSError) as error:
        print(f"manuscript: {error}", file=sys.stderr)
        return 1
    print(f"{document.title or file.name}, by {document.author or 'an unknown author'}")
    for section in sections_of(document):
        print(f"  {section.matter:5} {section.words:7,} words  {section.title or '(no title)'}")
    cast = speakers_in(document)
    lines = Counter(passage.speaker for passage in cast.passages if passage.speaker)
    for character in cast.cast[:MOST_SPEAKERS]:
        also = f" ({', '.join(character.aliases[:3])})" if character.aliases else ""
        print(f"  {lines[character.name]:5} lines  {character.name}{also} {character.gender}")
    for sentence in document.skipped:
        print(f"  {sentence}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
