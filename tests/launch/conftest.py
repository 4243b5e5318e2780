"""The folder of downloaded models, for tests of the commands."""

from tests.studio.models.conftest import cache

__all__ = ["cache"]
