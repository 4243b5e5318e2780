"""Private podcast feeds: finished chapters are episodes, MP3 files made once and kept while there are links."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import shutil
from collections.abc import Generator, Sequence, Set
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from email.utils import formatdate
from pathlib import Path

from anyio import to_thread

from audio.mastering import standard_of
from longform.library.project_records import Part, Project
from longform.project_service import ProjectService
from longform.proof.sound_check import edges_of
from longform.render import Masterings, encoded
from longform.tags import Tags
from longform.timed_text import rendered
from longform.timeline import Timeline, damaged, lay_out
from studio.errors import REFUSALS, DamagedAudio, LibraryFull, LibraryUnavailable, NotFound
from studio.library.disk_reserve import check_spare
from studio.library.private_files import make_private_folder, whole_file
from studio.library.shares import Shares
from studio.supervisor import end_tasks
from studio.work import WorkQueue

log = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds that a request for a feed waits for missing files. Podcast apps give up after some ten seconds, and ask again
within hours; the files are made meanwhile."""
MOST_MADE = 16  # number of feeds that are remembered


@dataclass(frozen=True, slots=True)
class Episode:
    """A finished chapter. The name of its file changes with its contents."""

    id: str  # the id of its first part
    path: Path
    seconds: float
    tags: Tags
    audio: Timeline | None  # None once all files of the feed are made, or if some of it is lost


@dataclass(frozen=True, slots=True)
class Feed:
    project: Project
    tags: Tags
    episodes: Sequence[Episode]
    is_made: bool = False  # whether all of their files exist, and no others but those that are kept
    lost: Sequence[Part] = ()
    """The parts whose audio is lost. Files that are made of it are kept, as it may be in no other."""


class Feeds:
    """Used from one event loop."""

    def __init__(self, service: ProjectService, exports: WorkQueue, books: WorkQueue) -> None:
        """Removes the files of projects without links. Blocking: milliseconds."""
        self._service, self._library = service, service.library
        self._exports, self._books, self._masterings = exports, books, Masterings()
        self._folder = self._library.home / "episodes"
        self._making: dict[str, asyncio.Task[None]] = {}
        self._unwritten = dict[str, str]()
        """The reason why files of a project could not be written at the last try."""
        self._made = dict[str, tuple[int, Feed]]()
        """The last feeds whose files were all made, by project, each with the version of the project."""
        self.links = Shares(self._library.store, "feeds", "project")
        self.tidy()

    def tidy(self) -> None:
        """Remove the files of projects without links. Blocking."""
        if self._folder.is_dir():
            linked = {share.item_id for share in self.links.of()}
            for folder in self._folder.glob(f"proj_{'[0-9a-f]' * 24}"):  # others are somebody's own
                if folder.name not in linked:
                    shutil.rmtree(folder, ignore_errors=True)

    def file(self, project_id: str, name: str) -> Path:
        """The file of an episode. Blocking. Raises NotFound."""
        for path in self._files(project_id):
            if path.name == name:
                return path
        raise NotFound("this episode has changed or does not exist; update the feed", "name")

    async def feed(self, project_id: str, caller: str) -> Feed:
        """The feed with the episodes whose files exist; the others are made, even after this has returned.

        Raises NotFound for a deleted project, LibraryUnavailable if files cannot be written, because podcast apps would
        take the feed as an empty one, and the errors of `WorkQueue.run`.
        """
        feed, files = await self._exports.run(caller, self._lay_out, project_id)
        if not feed.is_made:
            if project_id not in self._making:
                task = self._making[project_id] = asyncio.create_task(self._make(feed))
                task.add_done_callback(lambda _: self._making.pop(project_id))
            await asyncio.wait({self._making[project_id]}, timeout=PATIENCE)
            files = await self._exports.run(caller, self._files, project_id)
        episodes = [episode for episode in feed.episodes if episode.path in files]
        if len(episodes) < len(feed.episodes) and (problem := self._unwritten.get(project_id)):
            raise LibraryUnavailable(f"the episodes of this feed cannot be written: {problem}; the log says which")
        return replace(feed, episodes=episodes)

    def problem(self, project_id: str) -> str | None:
        """Which parts have lost their audio, so that episodes with them cannot be made again; None: none. Blocking.
        Raises NotFound."""
        lost = self._parts(self._library.projects.get(project_id, None))[1]
        return damaged(lost).message if lost else None

    async def close(self) -> None:
        """Stop making files."""
        await end_tasks(*self._making.values())

    def _lay_out(self, project_id: str) -> tuple[Feed, set[Path]]:
        """All episodes of a project, and the files that it has; what is made and has not changed is laid out once.
        Raises NotFound."""
        version, files = self._library.projects.version(project_id), self._files(project_id)
        known = self._made.get(project_id)
        if known and known[0] == version and files == {episode.path for episode in known[1].episodes}:
            return known[1], files
        project = self._library.projects.get(project_id, None)
        parts, lost = self._parts(project)
        edges, lost_files = edges_of(self._library.files, project.settings), {part.chosen for part in lost}
        known_edges = edges and (lambda take: (0, 0) if take.id in lost_files else edges(take))
        timeline = lay_out(parts, project.settings, known_edges)
        tags = self._service.tags(project_id, None, timeline)
        feed = Feed(project, tags, list(self._episodes(project, timeline, tags, lost, files)), lost=lost)
        made = {episode.path for episode in feed.episodes}
        if files == made or (lost and files > made):
            feed = replace(feed, episodes=[replace(one, audio=None) for one in feed.episodes], is_made=True)
        if feed.is_made and not lost:
            self._made = dict([*self._made.items(), (project_id, (version, feed))][-MOST_MADE:])
        return feed, files

    def _parts(self, project: Project) -> tuple[list[Part], list[Part]]:
        """The parts of a project with their chosen takes, and those that have lost their audio. Blocking."""
        parts = self._library.projects.parts(project.id, None, only_chosen=True)
        return parts, self._service.lost(project, parts)

    def _files(self, project_id: str) -> set[Path]:
        """Blocking."""
        return set((self._folder / project_id).glob("*.mp3"))

    def _episodes(
        self, project: Project, timeline: Timeline, book: Tags, lost: Sequence[Part], files: Set[Path]
    ) -> Generator[Episode, None, None]:
        """``files``: those made. A chapter that has lost audio is an episode only if its file is among them."""
        standard = standard_of(project.settings.loudness)
        edges = (standard.head, standard.tail) if standard else (0.0, 0.0)
        chapters = self._library.projects.chapters(project.id, None)
        placed = {take.part.position: take for take in timeline.placed}
        cover = hashlib.sha256(book.cover.image).digest() if book.cover else b""
        lost_at = {part.position for part in lost}
        for number, chapter in enumerate(chapters, 1):
            count = sum(chapter.parts.values())
            takes = [placed[at] for at in range(chapter.position, chapter.position + count) if at in placed]
            if not takes or (timeline.missing and chapter.parts["done"] < count):  # it would lack parts
                continue
            audio = timeline.cut_out(takes, *edges)
            title, track = chapter.title or book.title, (number, len(chapters))
            tags = replace(book, title=title, album=book.title, track=track, chapters=())
            key = repr((audio.fingerprint, standard, project.settings.bitrate, replace(tags, cover=None), cover))
            path = self._folder / project.id / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.mp3"
            seconds, is_lost = audio.seconds(audio.samples), any(take.part.position in lost_at for take in takes)
            if path in files or not is_lost:
                yield Episode(chapter.id, path, seconds, tags, None if is_lost else audio)

    async def _make(self, feed: Feed) -> None:
        """Create the missing files one at a time, then remove those that no episode needs any more. It ends when the
        project or its last link does."""
        project, needed = feed.project, {episode.path for episode in feed.episodes}
        is_lost = bool(feed.lost)
        try:
            with suppress(NotFound):
                for episode in feed.episodes:
                    try:
                        await self._books.last_of(project.owner, self._linked(project, self._written(project, episode)))
                    except DamagedAudio as error:
                        is_lost = True
                        log.warning("the episode %s of %s cannot be made: %s", episode.id, project.id, error)
                if not is_lost:
                    await to_thread.run_sync(_remove_others, self._folder / project.id, needed)
            await to_thread.run_sync(self.tidy)
            self._unwritten.pop(project.id, None)
        except (*REFUSALS, OSError) as error:
            if isinstance(error, (OSError, LibraryFull)):
                self._unwritten[project.id] = getattr(error, "strerror", None) or str(error)
            log.warning("the episodes of %s are not complete: %s", project.id, error)

    def _linked(self, project: Project, steps: Generator[bytes, None, None]) -> Generator[bytes, None, None]:
        """The steps, while the project and a link to its feed exist. Blocking. Raises NotFound."""
        with closing(steps):
            for step in steps:
                self._library.projects.check(project.id, None, "own")
                if not self.links.of(project.id):
                    raise NotFound("this feed has no links any more", "project_id")
                yield step

    def _written(self, project: Project, episode: Episode) -> Generator[bytes, None, None]:
        """Write an episode's file unless it exists; yields after each piece. Blocking. Raises OSError."""
        yield b""
        if episode.path.exists() or episode.audio is None:
            return
        files = self._library.files
        mastering = yield from self._masterings.find(episode.audio, files, standard_of(project.settings.loudness))
        make_private_folder(self._folder)
        make_private_folder(episode.path.parent)
        with whole_file(episode.path) as file:
            for piece in encoded(episode.audio, files, "mp3", episode.tags, mastering, project.settings.bitrate):
                check_spare(self._folder)
                file.write(piece)
                yield b""


def _remove_others(folder: Path, needed: set[Path]) -> None:
    for path in folder.iterdir() if folder.is_dir() else ():
        if path not in needed:
            path.unlink(missing_ok=True)


def write_rss(feed: Feed, address: str) -> str:
    """The feed in RSS 2.0; ``address``: of its folder, with a slash at the end. Raises OSError. Blocking."""
    made, episodes = 0.0, list[tuple[Episode, int, str, int]]()
    for episode in feed.episodes:
        file, seconds = episode.path.stat(), episode.seconds
        made = max(made + 1, file.st_mtime)  # apps sort by this date, so no two are the same
        episodes.append((episode, file.st_size, formatdate(made, usegmt=True), round(seconds)))
    return rendered("podcast.xml", book=feed.tags, address=address, episodes=episodes)
