"""All errors that the engine raises, as one family.

EngineError
├── CheckpointError      the model folder is missing, incomplete or does not match its config
├── ConfigError          a setting cannot be met (device, memory, context)
├── InvalidUtterance     this request cannot be generated; the message names the limit
│   └── PromptTooLong    text, references and frames do not fit the context
├── InvalidReference     this clip cannot be encoded
├── CannotAlign          this engine cannot compute word times
├── EngineFull           every row is taken and the queue is full, or memory is too short for a clip; try later
└── EngineStopped        the engine was stopped or has failed; the message has the cause
"""


class EngineError(Exception):
    """Base of all; never raised itself."""


class CheckpointError(EngineError):
    def __init__(self, message: str) -> None:
        """Names of files and tensors come from strangers: nothing in them may break a line or command a terminal."""
        super().__init__("".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in message))


class ConfigError(EngineError):
    pass


class InvalidUtterance(EngineError):
    pass


class PromptTooLong(InvalidUtterance):
    pass


class InvalidReference(EngineError):
    pass


class CannotAlign(EngineError):
    pass


class EngineFull(EngineError):
    pass


class EngineStopped(EngineError):
    pass


STOPPED = "the engine was stopped"
"""The reason after an ordinary stop, without an error."""
