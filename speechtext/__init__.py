"""Text as it is said: characters, markup, tags, numbers in words, sentences, dialogue turns, word times.

Pure functions over strings: no files, no network, no model. Their time is proportional to the length of the text.
"""

from speechtext.characters import clean_signs
from speechtext.dictionary import PHONEMES, Dictionary, Entry
from speechtext.errors import NothingToSay, TextError
from speechtext.language import guess_language, looks_english
from speechtext.reading import as_said, normalised
from speechtext.script import Pause, Script, Sentences, Words, read_script, sentences_of
from speechtext.turns import Turn, read_turns
from speechtext.word_times import Timed, with_times_as_written

__all__ = [
    "PHONEMES",
    "Dictionary",
    "Entry",
    "NothingToSay",
    "Pause",
    "Script",
    "Sentences",
    "TextError",
    "Timed",
    "Turn",
    "Words",
    "as_said",
    "clean_signs",
    "guess_language",
    "looks_english",
    "normalised",
    "read_script",
    "read_turns",
    "sentences_of",
    "with_times_as_written",
]
