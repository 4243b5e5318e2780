"""Rights to voices and projects: of their owner, and of others with whom they are shared for reading or editing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from studio.errors import InvalidRequest, NotAllowed

if TYPE_CHECKING:
    from studio.library.sqlite import Database

Right = Literal["read", "edit", "own"]
"""read: use, listen, export. edit: also change. own: also share, delete and restore."""
SHARINGS = ("private", "read", "edit")
"""The rights of all others than the owner: none, to read, or to edit."""
NOBODY = "nobody"
"""A viewer that owns nothing: it has rights only to shared items."""
_RANKS = {"private": 0, "read": 1, "edit": 2, "own": 3}


def clean_sharing(sharing: str) -> str:
    """Raises InvalidRequest."""
    if sharing not in SHARINGS:
        raise InvalidRequest(f"sharing must be one of {', '.join(SHARINGS)}", "sharing")
    return sharing


def readable(viewer: str) -> str:
    """An SQL condition on a table with the columns owner and sharing; ``viewer``: the name of its parameter."""
    return f"({viewer} is null or owner = {viewer} or sharing != 'private')"


def right_of(row: Mapping[str, Any], viewer: str | None) -> Right:
    """The right of a viewer to an item that is `readable`; None: any caller, without keys."""
    return "own" if viewer is None or row["owner"] == viewer else "edit" if row["sharing"] == "edit" else "read"


def check_right(db: Database, subject: str, row: Mapping[str, Any], viewer: str | None, needed: Right | None) -> None:
    """Raises NotAllowed unless a viewer has a right to a `readable` item; ``subject``: its kind and name.

    Without ``needed``, it depends on the transaction: one that writes needs the right to edit.
    """
    from studio.library.store import is_writing  # not needed to read a document

    needed = needed or ("edit" if is_writing(db) else "read")
    if _RANKS[right_of(row, viewer)] < _RANKS[needed]:
        if needed == "own":
            raise NotAllowed(f"only the owner of {subject} may share, delete or restore it")
        raise NotAllowed(f"{subject} is shared with you for reading only; its owner can allow you to edit it")


def sharing_json(owner: str, sharing: str, right: Right) -> dict[str, object]:
    """The public form; the owner is the name in STUDIO_API_KEYS, None for a key without a name and without an owner."""
    kind, _, name = owner.partition(" ")
    return {"owner": name if kind == "owner" else None, "sharing": sharing, "right": right}
