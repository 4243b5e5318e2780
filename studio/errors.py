"""Everything the studio refuses, as one family; each carries what a caller needs to put it right.

StudioError
├── InvalidRequest       a field is missing, wrong or unsupported; `param` names it
│   ├── UnknownVoice     no voice of that name
│   ├── NothingToSay     a text without any word
│   ├── NameTaken        another voice has that name
│   ├── NotFinished      parts of a project are still to be spoken
│   ├── CannotContinue   a take that cannot be gone on with
│   ├── CannotRegenerate       a take of which no sentence can be spoken anew
│   ├── InvalidClip      a reference clip that cannot be used
│   ├── InvalidDocument  a document that cannot be read
│   ├── TooCostly        work that takes more time or memory than it may
│   └── InvalidPack      a voice pack that cannot be used
├── NotFound             nothing under that name
├── Damaged              an audio file of the library is gone, or is not what it was
├── Changed              somebody else changed it since it was read
├── UnderWay             what is asked for is not finished yet
├── Cancelled            somebody asked for the end of this request while it was under way
├── QueueFull             every row is taken and the queue is full; try again in `retry_after` seconds
├── TooManyRequests      this caller has had its share for now; try again in `retry_after` seconds
├── DegenerateSpeech     the model gave no usable speech, and neither did a second try
├── NotOffered           this installation has no such feature
├── NotReady             the engine is still starting; try again in `retry_after` seconds
├── LibraryUnavailable   the library's file cannot be read or written now
│   └── LibraryFull      its disk has no room left
└── Unavailable          the engine could not start, or has stopped

SettingsError stands apart: the studio does not start.
"""

import sqlite3


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


class NothingToSay(InvalidRequest):
    code = "nothing_to_say"


class InvalidClip(InvalidRequest):
    code = "invalid_audio"


class NotFound(StudioError):
    code = "not_found"


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


class NoTimestamps(StudioError):
    """Nothing tells when the words of this sound are heard."""

    code = "no_timestamps"


class Damaged(StudioError):
    code = "damaged_audio"


class Changed(StudioError):
    code = "changed"


class UnderWay(StudioError):
    code = "take_under_way"


class Cancelled(StudioError):
    code = "request_cancelled"


class QueueFull(StudioError):
    code = "queue_full"

    def __init__(self, message: str, retry_after: int = 2) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class DegenerateSpeech(StudioError):
    code = "degenerate_speech"


class TooManyRequests(StudioError):
    code = "rate_limit_exceeded"

    def __init__(self, message: str, retry_after: int = 2) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NotOffered(StudioError):
    code = "not_offered"


class NotReady(StudioError):
    code = "not_ready"

    def __init__(self, message: str, retry_after: int = 2) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class LibraryUnavailable(StudioError, sqlite3.Error):
    """SQLite's error too, for those who go on without the library."""

    code = "library_unavailable"


class LibraryFull(LibraryUnavailable):
    has_made_room = False
    """Whether something that was deleted has made room since: to try again may do."""


class Unavailable(StudioError):
    code = "engine_unavailable"


class SettingsError(ValueError):
    """A setting cannot be used; the message names variable, value and what is allowed."""
