"""Fixtures that let the benchmark programs run against the real studio."""

from tests.studio.conftest import studio, voices_folder

__all__ = ["studio", "voices_folder"]
