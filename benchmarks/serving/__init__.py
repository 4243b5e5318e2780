"""The studio as a server under load: its process, its listeners, and their requests."""
