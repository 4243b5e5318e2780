"""The check of a project's audio."""
