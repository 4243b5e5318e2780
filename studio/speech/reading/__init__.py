"""Text normalisation: numbers, prices, dates, units, abbreviations and capitals as spoken words."""

from studio.speech.reading.normalise import normalised

__all__ = ["normalised"]
