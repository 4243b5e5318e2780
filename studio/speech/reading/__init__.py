"""How written forms are read: numbers, prices, dates, units, abbreviations and capitals as the words people say."""

from studio.speech.reading.normalise import normalised

__all__ = ["normalised"]
