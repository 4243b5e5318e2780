"""The voice studio: settings, one speech door, the HTTP API and the page, on the engine's public names."""
