"""How written forms are read: numbers, prices, dates, times, units and abbreviations as the words that people say."""

from studio.speech.reading.normalise import normalised

__all__ = ["normalised"]
