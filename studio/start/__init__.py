"""The start: the engine, then services, API and page on one web app; and the messages on the terminal."""
