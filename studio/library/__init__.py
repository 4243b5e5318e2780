"""The library: voices, samples, codes, takes, projects, consents and an audit trail, in one folder with SQLite.

These names are imported on first use: a process that reads a document needs a few records, but no database, which takes
as long to import as most documents take to read.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from studio.library.backup import Backup
    from studio.library.library import Adopted, Library
    from studio.library.records import NewConsent, NewSample, Sample
    from studio.library.take import TakeFilter
    from studio.library.voice import Voice, VoiceFields

__all__ = ["Adopted", "Backup", "Library", "NewConsent", "NewSample", "Sample", "TakeFilter", "Voice", "VoiceFields"]

_MODULES = {
    "backup": ("Backup",),
    "library": ("Adopted", "Library"),
    "records": ("NewConsent", "NewSample", "Sample"),
    "take": ("TakeFilter",),
    "voice": ("Voice", "VoiceFields"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
