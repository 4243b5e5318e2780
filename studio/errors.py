"""The studio's errors, as one family; each has a message for people and a code for programs.

StudioError
├── InvalidRequest       a field is missing, wrong or unsupported; `param` names it
│   ├── UnknownVoice     the voice does not exist
│   ├── NothingToSay     the text has no words
│   ├── NameTaken        another voice has this name
│   ├── NotFinished      some parts of the project have no audio yet
│   ├── CannotContinue   the take cannot be continued
│   ├── CannotRegenerate the take's sentences cannot be regenerated
│   ├── InvalidClip      the reference clip cannot be used
│   ├── InvalidDocument  the document cannot be read
│   ├── TooCostly        the work would exceed its limit of time or memory
│   └── InvalidPack      the voice pack cannot be used
├── NotFound             the item does not exist
├── NotAllowed           the item belongs to another key, which has not granted this right
├── NoTimestamps         the audio has no word times
├── NoLikeness           the take and the clip of its voice cannot be compared
├── DamagedAudio         an audio file of the library is missing or was altered
├── EditConflict         another caller has changed the item since it was read
├── InProgress           the result is not finished yet
├── Cancelled            the request was cancelled
├── RetryLater           temporary; try again in `retry_after` seconds
│   ├── QueueFull        every row is in use and the queue is full
│   ├── TooManyRequests  the caller has reached its limit
│   └── NotReady         the engine is still starting
├── DegenerateSpeech     the model generated no usable speech, twice
├── NotOffered           this installation does not have the feature
├── LibraryUnavailable   the library's file cannot be read or written at the moment
│   └── LibraryFull      its disk is full
└── Unavailable          the engine could not start, or has stopped

A SettingsError is not one of them: it prevents the start.
"""

import sqlite3


class StudioError(Exception):
    """Base class: a message for people, the request field it concerns, and a stable code for programs."""

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


class NothingToSay(InvalidRequest):
    code = "nothing_to_say"


class InvalidClip(InvalidRequest):
    code = "invalid_audio"


class NotFound(StudioError):
    code = "not_found"


class NotAllowed(StudioError):
    code = "not_allowed"


class InvalidPack(InvalidRequest):
    code = "invalid_pack"


class InvalidDocument(InvalidRequest):
    code = "invalid_document"


class TooCostly(InvalidRequest):
    code = "too_costly"


class NameTaken(InvalidRequest):
    code = "voice_exists"


class NotFinished(InvalidRequest):
    code = "project_not_finished"


class CannotContinue(InvalidRequest):
    code = "cannot_continue"


class CannotRegenerate(InvalidRequest):
    code = "cannot_mend"


class NoLikeness(StudioError):
    code = "no_likeness"


class NoTimestamps(StudioError):
    code = "no_timestamps"


class DamagedAudio(StudioError):
    code = "damaged_audio"


class EditConflict(StudioError):
    code = "changed"


class InProgress(StudioError):
    code = "take_under_way"


class Cancelled(StudioError):
    code = "request_cancelled"


class RetryLater(StudioError):
    """``retry_after``: seconds."""

    def __init__(self, message: str, retry_after: int = 2) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class QueueFull(RetryLater):
    code = "queue_full"


class ChatFailed(StudioError):
    """The chat endpoint gave no usable answer; the message says why."""

    code = "chat_failed"


class DegenerateSpeech(StudioError):
    code = "degenerate_speech"


class TooManyRequests(RetryLater):
    code = "rate_limit_exceeded"


class NotOffered(StudioError):
    code = "not_offered"


class NotReady(RetryLater):
    code = "not_ready"


class LibraryUnavailable(StudioError, sqlite3.Error):
    """Also an SQLite error, for callers that continue without the library."""

    code = "library_unavailable"


class LibraryFull(LibraryUnavailable):
    has_made_room = False
    """Whether deletions have freed space since, so that a retry may succeed."""


class Unavailable(StudioError):
    code = "engine_unavailable"


class SettingsError(ValueError):
    """A setting is invalid; the message has the variable, its value and the allowed values."""
