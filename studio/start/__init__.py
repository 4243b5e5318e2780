"""The start: the engine first, then services, API and page on one web app; and what the terminal says of it."""
