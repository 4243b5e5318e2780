"""What the settings say of a caller, as requests name it: its name, and whether it may see what concerns the studio."""

from __future__ import annotations

from studio.settings import Settings


def has_first_key(settings: Settings, caller: str) -> bool:
    """Whether a caller runs the studio: it has the first key, or no keys are set."""
    return not settings.api_keys or caller == settings.api_keys[0].owner


def name_of(settings: Settings, caller: str) -> str | None:
    """The name that STUDIO_API_KEYS gives a caller; None without one."""
    kind, _, name = caller.partition(" ")
    return name if kind == "owner" and name in {key.name for key in settings.api_keys} else None
