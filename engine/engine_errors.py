"""Everything the engine refuses or fails with, as one family.

EngineError
├── CheckpointError      the model folder is missing, incomplete or not what its config says
├── ConfigError          a setting cannot be met (device, memory, context)
├── InvalidUtterance     this request cannot be spoken as it stands; the text says which limit
│   └── PromptTooLong    text, references and frames do not fit the context
├── InvalidReference     this clip cannot be encoded
├── CannotAlign          this engine cannot tell when words are heard
├── EngineFull           every row is taken and the waiting line is at its bound; try later
└── EngineStopped        the engine is shut down or has died; its cause is in the message
"""


class EngineError(Exception):
    """Base of all; never raised itself."""


class CheckpointError(EngineError):
    pass


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
"""Why it accepts nothing any more, where it was neither an error nor a fault."""
