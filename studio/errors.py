"""The studio's errors, as one family; each has a message for people, and a code and an HTTP status for programs.

The libraries have families of their own, `speechtext.TextError` and `audio.AudioError`; REFUSALS is all of them.
A SettingsError is not one of them: it prevents the start.
"""

import sqlite3

from audio import AudioError
from speechtext.errors import TextError


class StudioError(Exception):
    """Base class: a message for people, the request field it concerns, and a stable code for programs."""

    code: str | None = None
    status = 500

    def __init_subclass__(cls, code: str | None = None, status: int | None = None) -> None:
        """A subclass without a code or a status has its base's."""
        cls.code, cls.status = code or cls.code, status or cls.status

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code or self.code


LIBRARY_ERRORS = (TextError, AudioError)
REFUSALS = (StudioError, *LIBRARY_ERRORS)
"""Errors whose message is for people."""


class InvalidRequest(StudioError, code="invalid_value", status=400):
    """A field is missing, wrong or unsupported; `param` names it."""


BAD_INPUT = (InvalidRequest, *LIBRARY_ERRORS)
"""Errors that whoever sent the input can correct."""


class UnknownVoice(InvalidRequest, code="voice_not_found"):
    """The voice does not exist."""


class NotFound(StudioError, code="not_found", status=404):
    """The item does not exist."""


class NotAllowed(StudioError, code="not_allowed", status=403):
    """The item belongs to another key, which has not granted this right."""


class InvalidPack(InvalidRequest, code="invalid_pack"):
    """The voice pack cannot be used."""


class TooCostly(InvalidRequest, code="too_costly"):
    """The work would exceed its limit of time or memory."""


class NameTaken(InvalidRequest, code="voice_exists", status=409):
    """Another voice has this name."""


class CannotContinue(InvalidRequest, code="cannot_continue", status=409):
    """The take cannot be continued."""


class CannotRegenerate(InvalidRequest, code="cannot_regenerate", status=409):
    """The take's sentences cannot be regenerated."""


class NoLikeness(StudioError, code="no_likeness", status=422):
    """The take and the clip of its voice cannot be compared."""


class NoTimestamps(StudioError, code="no_timestamps", status=409):
    """The audio has no word times."""


class DamagedAudio(StudioError, code="damaged_audio", status=409):
    """An audio file of the library is missing or was altered."""


class EditConflict(StudioError, code="changed", status=412):
    """Another caller has changed the item since it was read."""


class InProgress(StudioError, code="take_under_way", status=409):
    """The result is not finished yet."""


class Cancelled(StudioError, code="request_cancelled", status=410):
    """The request was cancelled."""


class RetryLater(StudioError):
    """Temporary; try again in ``retry_after`` seconds."""

    def __init__(self, message: str, retry_after: int = 2) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class QueueFull(RetryLater, code="queue_full", status=429):
    """Every row is in use and the queue is full."""


class DegenerateSpeech(StudioError, code="degenerate_speech"):
    """The model generated no usable speech, twice."""


class TooManyRequests(RetryLater, code="rate_limit_exceeded", status=429):
    """The caller has reached its limit."""


class NotOffered(StudioError, code="not_offered", status=501):
    """This installation does not have the feature."""


class NotReady(RetryLater, code="not_ready", status=503):
    """The engine is still starting."""


class LibraryUnavailable(StudioError, sqlite3.Error, code="library_unavailable", status=503):
    """The library's file cannot be read or written at the moment.

    Also an SQLite error, for callers that continue without the library.
    """


class LibraryBusy(LibraryUnavailable):
    """Another writer has locked it; a later attempt may succeed."""


class LibraryFull(LibraryUnavailable):
    """Its disk is full."""

    has_made_room = False
    """Whether deletions have freed space since, so that a retry may succeed."""


class NoTemporaryRoom(StudioError, code="no_room", status=503):
    """The folder for temporary files is full or cannot be written."""


class Unavailable(StudioError, code="engine_unavailable", status=503):
    """The engine could not start, or has stopped."""


class SettingsError(ValueError):
    """A setting is invalid; the message has the variable, its value and the allowed values."""
