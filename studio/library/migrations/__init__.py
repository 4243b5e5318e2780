"""The library's tables, as a list of migrations that only grows; importing this package registers them in order."""

from studio.library.migrations import (
    cast_migrations,  # noqa: F401
    project_migrations,  # noqa: F401
    proof_migrations,  # noqa: F401
    sharing_migrations,  # noqa: F401
    take_migrations,  # noqa: F401
    voice_migrations,  # noqa: F401
)
from studio.library.migrations.schema import MIGRATIONS

__all__ = ["MIGRATIONS"]
