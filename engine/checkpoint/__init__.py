"""From a folder, a file or a hub id to loaded models, whichever way a checkpoint of the family is stored."""

from __future__ import annotations

from engine.checkpoint.checkpoint_loader import Checkpoint, load
from engine.checkpoint.checkpoint_names import published_key
from engine.checkpoint.checkpoint_source import Source, open_source
from engine.checkpoint.locate import find

__all__ = ["Checkpoint", "Source", "find", "load", "open_source", "published_key"]
