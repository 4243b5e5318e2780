"""Everything the studio refuses, as one family; each carries what a caller needs to put it right.

StudioError
├── InvalidRequest       a field is missing, wrong or unsupported; `param` names it
│   ├── UnknownVoice     no voice of that name
│   └── InvalidClip      a reference clip that cannot be used
├── NotFound             nothing under that name
├── NotReady             the engine is still starting; try again in `retry_after` seconds
└── Unavailable          the engine could not start, or has stopped
"""


class StudioError(Exception):
    """Base of all: a message for people, the field it is about and a stable code for programs."""

    code: str | None = None

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code or self.code


class InvalidRequest(StudioError):
    code = "invalid_value"


class UnknownVoice(InvalidRequest):
    code = "voice_not_found"


class InvalidClip(InvalidRequest):
    code = "invalid_audio"


class NotFound(StudioError):
    code = "not_found"


class NotReady(StudioError):
    code = "not_ready"

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(StudioError):
    code = "engine_unavailable"
