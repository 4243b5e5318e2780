"""The header under whose name a browser saves a download."""

from __future__ import annotations

import re
from urllib.parse import quote

from studio.unicode_text import safe_file_name


def saved_as(title: str, extension: str) -> dict[str, str]:
    """Content-Disposition of a file of a project with this title; letters of all scripts are kept."""
    name = safe_file_name(title, extension, "project")
    plain = re.sub(r"[^\w .-]", "_", name, flags=re.ASCII)
    return {"Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"}
