"""Other programs' protocols, over the studio's services, and what they share: nothing in the studio names them."""

import json
from typing import Any

from studio import ASSETS


def constants_of(protocol: str) -> dict[str, Any]:
    """What never changes: fields of answers that clients require, though the studio has nothing to say there; voices
    of the service that programs have built in; and paths that are not offered, each with an alternative."""
    constants: dict[str, Any] = json.loads((ASSETS / "protocols" / f"{protocol}.json").read_text("utf-8"))
    return constants
