"""The voice studio: settings, one service that speaks, the HTTP API and the page, on the engine's public names."""

__version__ = "0.1.0"
