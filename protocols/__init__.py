"""Other programs' protocols, over the studio's services, and what they share: nothing in the studio names them."""

import json
from typing import Any

from studio import ASSETS


def constants_of(protocol: str) -> dict[str, Any]:
    """What is the same in all answers: fields that clients require, though the studio has nothing to say there."""
    constants: dict[str, Any] = json.loads((ASSETS / "protocols" / f"{protocol}.json").read_text("utf-8"))
    return constants
