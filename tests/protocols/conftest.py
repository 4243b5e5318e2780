"""The studio's fixtures, for tests of the protocols."""

from tests.studio.conftest import steered, studio, untouched, voices_folder

__all__ = ["steered", "studio", "untouched", "voices_folder"]
