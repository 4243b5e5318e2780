"""Codes of samples, stored by cut and codec: encoded once, valid until the codec changes."""

from __future__ import annotations

import time

import numpy as np

from studio.library.sqlite import select
from studio.library.store import Store


class Codes:
    """Reads and stores codes: int16 (codebooks, frames)."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, cut: str, codec: str) -> np.ndarray | None:
        """The codes of a cut by a codec's fingerprint, or None if it has not been encoded yet."""
        with self._store.reading() as db:
            rows = list(select(db, "select * from codes where cut = ? and codec = ?", [cut, codec]))
        if not rows:
            return None
        flat = np.frombuffer(rows[0]["codes"], "<i2").astype(np.int16)
        return flat.reshape(rows[0]["codebooks"], rows[0]["frames"])

    def put(self, cut: str, codec: str, codes: np.ndarray) -> None:
        """Store codes; existing ones stay, since the same cut gives the same codes."""
        row = {
            "cut": cut,
            "codec": codec,
            "codebooks": codes.shape[0],
            "frames": codes.shape[1],
            "codes": np.ascontiguousarray(codes, "<i2").tobytes(),
            "created": time.time(),
        }
        with self._store.writing() as db:
            db.table("codes").insert(row, ignore=True)
