"""The benchmarks' programs meet the real studio too."""

from tests.studio.conftest import studio, voices_folder

__all__ = ["studio", "voices_folder"]
