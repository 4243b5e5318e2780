"""The list of what a reader left out of a document, for its owner: plain sentences, bounded in number."""

from __future__ import annotations

from studio.projects.documents.passages import MAX_SKIPPED


class Skipped:
    """Collects one sentence for each thing that is left out."""

    def __init__(self) -> None:
        self._sentences: list[str] = []
        self._more = 0
        self.notes = 0
        """Footnotes and endnotes, which are counted and not listed."""

    def add(self, sentence: str) -> None:
        if len(self._sentences) < MAX_SKIPPED - 2:
            self._sentences.append(sentence)
        else:
            self._more += 1

    def sentences(self) -> tuple[str, ...]:
        """At most MAX_SKIPPED."""
        counts = []
        if self.notes:
            some = "1 footnote or endnote is" if self.notes == 1 else f"{self.notes} footnotes and endnotes are"
            counts.append(f"{some} left out.")
        if self._more:
            counts.append(f"{self._more} more {'thing is' if self._more == 1 else 'things are'} left out.")
        return (*self._sentences, *counts)
