"""Voices as they come in, are judged, packed, fetched and spoken in."""
