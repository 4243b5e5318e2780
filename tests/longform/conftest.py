"""The studio's fixtures, for tests of the long form."""

from tests.studio.conftest import steered, studio, untouched, voices_folder

__all__ = ["steered", "studio", "untouched", "voices_folder"]
