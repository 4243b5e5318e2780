"""Documents as chapters and passages, and who speaks in them: quotations, characters, speakers.

Reads text, Markdown, EPUB, Word, PDF, subtitles and CSV from bytes, also untrusted ones: `passages` has the limits.
"""

from manuscript.cast import Casting, decide_again, speakers_in, split_by_speaker
from manuscript.documents import KINDS, kind_of, read_document
from manuscript.parts import PartSplitting, Section, chosen_sections, into_parts, sections_of
from manuscript.passages import Document, InvalidDocument, NewCharacter, Passage

__all__ = [
    "KINDS",
    "Casting",
    "Document",
    "InvalidDocument",
    "NewCharacter",
    "PartSplitting",
    "Passage",
    "Section",
    "chosen_sections",
    "decide_again",
    "into_parts",
    "kind_of",
    "read_document",
    "sections_of",
    "speakers_in",
    "split_by_speaker",
]
