"""The voice studio: settings, speech service, HTTP API and page, built on the engine's public names."""

__version__ = "0.1.0"
