"""All kinds of long work and their limits, a queue for each."""

from __future__ import annotations

from studio.work.work_queue import QueueKind, WorkQueue

# For each: name; singular, plural and participle of its work; maximum running, maximum waiting; seconds; remedy.
DOCUMENTS = QueueKind(
    "documents", "the document", "documents", "read", 2, 30, 150, "send it in several pieces, or as plain text"
)
CLIPS = QueueKind(
    "clips", "the clip", "clips", "decoded", 2, 30, 30, "send it as a WAV or FLAC file, or a shorter span of it"
)
DENOISING = QueueKind(
    "denoising", "the clip", "clips", "cleaned of noise", 1, 7, 120, "send a shorter span of it, or leave denoise out"
)
TRANSCRIBING = QueueKind(
    "transcribing", "the clip", "clips", "transcribed", 1, 7, 300, "send a shorter span of it, or type the transcript"
)
PROOFS = QueueKind(
    "proofs", "the project", "projects", "checked", 1, 15, 86_400, "cancel one, or try again when one is done"
)
PACKS = QueueKind("packs", "the voice pack", "voice packs", "read or written", 1, 15, 120, "use fewer or shorter clips")
BOOKS = QueueKind("books", "the audio book", "audio books", "measured or written", 2, 62, 7200, "request its chapters")
EXPORTS = QueueKind("exports", "the file", "files", "made", 2, 62, 7200, "request fewer takes or chapters at a time")
ALIGNMENTS = QueueKind(
    "alignments", "the take", "takes", "searched for word times", 1, 31, 600, "request the words of a shorter take"
)
TEXTS = QueueKind("texts", "the text", "texts", "prepared", 2, 254, 60, "send a shorter text")


def downloads(waiting: int) -> QueueKind:
    """For clips that speech requests give by address."""
    remedy = "send the clip itself in the request, or an address that answers faster"
    return QueueKind("downloads", "the clip", "requests with a clip's address", "downloaded", 8, waiting, 30, remedy)


def encodings(waiting: int) -> QueueKind:
    """For clips of speech requests: decoded and encoded before the requests get a place in the engine's queue.

    It runs as many at once as the engine encodes together.
    """
    return QueueKind("encodings", "the clip", "requests with a clip", "encoded", 8, waiting, 30, CLIPS.remedy)


class WorkQueues:
    """The queues of one process, used from its event loop; none takes the threads of another or of plain routes."""

    def __init__(self, encodings_waiting: int) -> None:
        self.documents = WorkQueue(DOCUMENTS)
        self.clips = WorkQueue(CLIPS)
        self.denoising = WorkQueue(DENOISING)
        self.transcribing = WorkQueue(TRANSCRIBING)
        self.proofs = WorkQueue(PROOFS)
        """Checks of the audio of whole projects; for each part, they wait for a turn in `transcribing`."""
        self.packs = WorkQueue(PACKS)
        self.books = WorkQueue(BOOKS)
        """Whole projects, generated or measured before the first byte is sent."""
        self.exports = WorkQueue(EXPORTS)
        """Files that are sent while they are written."""
        self.alignments = WorkQueue(ALIGNMENTS)
        self.texts = WorkQueue(TEXTS)
        self.downloads = WorkQueue(downloads(encodings_waiting))
        self.encodings = WorkQueue(encodings(encodings_waiting))

    @property
    def figures(self) -> dict[str, dict[str, int]]:
        """The running and waiting work of each queue, by its name."""
        return {queue.name: queue.figures for queue in vars(self).values()}
