"""All kinds of long work and their limits, a queue for each."""

from __future__ import annotations

from studio.work.work_queue import Kind, WorkQueue

DOCUMENTS = Kind(
    name="documents",
    one="the document",
    many="documents",
    done="read",
    at_once=2,
    waiting=30,
    seconds=150,
    remedy="send it in several pieces, or as plain text",
)
CLIPS = Kind(
    name="clips",
    one="the clip",
    many="clips",
    done="decoded",
    at_once=2,
    waiting=30,
    seconds=30,
    remedy="send it as a WAV or FLAC file, or a shorter span of it",
)
DENOISING = Kind(
    name="denoising",
    one="the clip",
    many="clips",
    done="cleaned of noise",
    at_once=1,
    waiting=7,
    seconds=120,
    remedy="send a shorter span of it, or leave denoise out",
)
TRANSCRIBING = Kind(
    name="transcribing",
    one="the clip",
    many="clips",
    done="transcribed",
    at_once=1,
    waiting=7,
    seconds=300,
    remedy="send a shorter span of it, or type what is said",
)
PACKS = Kind(
    name="packs",
    one="the voice pack",
    many="voice packs",
    done="read or written",
    at_once=1,
    waiting=15,
    seconds=120,
    remedy="make one with fewer or shorter clips",
)
BOOKS = Kind(
    name="books",
    one="the audio book",
    many="audio books",
    done="measured or written",
    at_once=2,
    waiting=62,
    seconds=7200,
    remedy="ask for its chapters",
)
EXPORTS = Kind(
    name="exports",
    one="the file",
    many="files",
    done="made",
    at_once=2,
    waiting=62,
    seconds=7200,
    remedy="ask for fewer takes or chapters at a time",
)
ALIGNMENTS = Kind(
    name="alignments",
    one="the take",
    many="takes",
    done="searched for the times of their words",
    at_once=1,
    waiting=31,
    seconds=600,
    remedy="ask for the words of a shorter take",
)
TEXTS = Kind(
    name="texts",
    one="the text",
    many="texts",
    done="prepared",
    at_once=2,
    waiting=254,
    seconds=60,
    remedy="send a shorter text",
)


def encodings(waiting: int) -> Kind:
    """The clips of speech requests: fetched, decoded and encoded before these get a place in the engine's line."""
    return Kind(
        name="encodings",
        one="the clip",
        many="requests with a clip of their own",
        done="encoded",
        at_once=8,  # as many as the engine encodes together
        waiting=waiting,
        seconds=30,
        remedy=CLIPS.remedy,
    )


class WorkQueues:
    """The queues of one process, used from its event loop; none takes the threads of another or of plain routes."""

    def __init__(self, encodings_waiting: int) -> None:
        self.documents = WorkQueue(DOCUMENTS)
        self.clips = WorkQueue(CLIPS)
        self.denoising = WorkQueue(DENOISING)
        self.transcribing = WorkQueue(TRANSCRIBING)
        self.packs = WorkQueue(PACKS)
        self.books = WorkQueue(BOOKS)
        """Of projects, made or measured as a whole before the first byte is sent."""
        self.exports = WorkQueue(EXPORTS)
        """Files that are sent while they are made."""
        self.alignments = WorkQueue(ALIGNMENTS)
        self.texts = WorkQueue(TEXTS)
        self.encodings = WorkQueue(encodings(encodings_waiting))

    @property
    def figures(self) -> dict[str, dict[str, int]]:
        """How full each of them is, by its name."""
        return {queue.name: queue.figures for queue in vars(self).values()}
