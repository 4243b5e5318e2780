"""Starts the engine, then services, API and page as one web app; prints the messages on the terminal."""
