"""Fixtures for real clients against the real studio."""

from tests.studio.conftest import steered, studio, voices_folder

__all__ = ["steered", "studio", "voices_folder"]
