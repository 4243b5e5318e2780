"""Finds, reads, verifies and loads checkpoints of every supported family and file format."""

from __future__ import annotations

from engine.checkpoint.checkpoint_loader import Checkpoint, check_files, load
from engine.checkpoint.checkpoint_names import published_key
from engine.checkpoint.checkpoint_source import Source, open_source
from engine.checkpoint.locate import find, is_hub_id, offline_by

__all__ = [
    "Checkpoint",
    "Source",
    "check_files",
    "find",
    "is_hub_id",
    "load",
    "offline_by",
    "open_source",
    "published_key",
]
