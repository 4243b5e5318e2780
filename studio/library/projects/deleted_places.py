"""The places of deleted parts: each is restored after the part that preceded it when it was deleted."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence

from studio.library.projects.project_records import Part
from studio.library.sqlite import Database
from studio.library.trash import BIN

_AFTER = "json_extract(settings, '$.after')"
"""The id of the part that preceded a deleted one; null: it was the first. Parts deleted by older versions lack it."""
_HAS_AFTER = "deleted is not null and json_type(settings, '$.after') is not null"
_AMONG = "in (select value from json_each(?))"


class DeletedPlaces:
    """The places of all deleted parts of a project.

    A part may precede several deleted ones, in the order of their deletion: the part directly after it was deleted
    first, then the one after that. The predecessor of a deleted part still exists or was deleted later.
    """

    def __init__(self, db: Database, project_id: str) -> None:
        self._db = db
        self._project_id = project_id
        self._links: dict[str | None, tuple[int, str | None]] = {}  # each part's row number and predecessor
        self._parts: dict[int, str] = {}
        self._runs: dict[str | None, list[int]] = {}  # the numbers of the rows after each part, ascending
        query = f"select parts.id, projects.n, {_AFTER} from projects join parts on project_id = projects.id"
        where = f"kind = ? and {_HAS_AFTER} order by projects.n"
        for part_id, number, predecessor in db.execute(f"{query} where {where}", [BIN + project_id]).fetchall():
            self._links[part_id] = number, predecessor
            self._parts[number] = part_id
            self._runs.setdefault(predecessor, []).append(number)

    def restore(self, part: Part, count: int) -> int:
        """The position of a deleted part among the ``count`` others; those deleted after it follow it from now on.

        Without a known predecessor, because an older version deleted the part or the predecessor was removed for good,
        it is the former position. A chapter whose beginning was deleted begins with its first existing part.
        """
        path: list[str | None] = [part.id]
        later: list[int] = []
        while link := self._links.get(path[-1]):
            number, predecessor = link
            run = self._runs[predecessor]
            index = bisect_right(run, number)
            later += run[index:]
            del run[index:]
            path.append(predecessor)
        if link := self._links.pop(part.id, None):
            self._runs[link[1]].pop()
        self._runs.setdefault(part.id, []).extend(later)
        for number in later:
            self._links[self._parts[number]] = number, part.id
        update = "update projects set settings = json_set(settings, '$.after', ?) where n"
        self._db.execute(f"{update} {_AMONG}", [part.id, json.dumps(later)])
        position = self._position_after(path[-1])
        position = min(part.position, count) if position is None else position
        self._take_chapter(part, position, path[1:-1], [self._parts[number] for number in later])
        return position

    def _position_after(self, part_id: str | None) -> int | None:
        if part_id is None:
            return 0
        query = "select position + 1 from parts where project_id = ? and id = ?"
        row = self._db.execute(query, [self._project_id, part_id]).fetchone()
        return row and int(row[0])

    def _take_chapter(
        self, part: Part, position: int, earlier: Sequence[str | None], later: Sequence[str | None]
    ) -> None:
        """Make a chapter begin with this part instead of a later one, if its beginning was deleted.

        ``earlier``, ``later``: deleted parts before it, the nearest first, and after it.
        """
        chapter = part.chapter
        query = (
            "select chapter from json_each(?) join parts on parts.id = value join projects on projects.id = project_id"
            " where chapter != '' and json_type(settings, '$.into') is null order by key limit 1"
        )
        if not chapter and (row := self._db.execute(query, [json.dumps(earlier)]).fetchone()):
            [chapter] = row
            self._db.execute("update parts set chapter = ? where id = ?", [chapter, part.id])
        if chapter:
            update = "update parts set chapter = '' where chapter = ? and text != chapter and"
            self._db.execute(f"{update} project_id = ? and position = ?", [chapter, self._project_id, position])
            self._db.execute(f"{update} id {_AMONG}", [chapter, json.dumps(later)])


def replace_predecessor(db: Database, project_id: str, old_predecessor: str | None, part_id: str) -> None:
    """Make the deleted parts that follow the part ``old_predecessor`` (None: the beginning) follow another part."""
    update = f"update projects set settings = json_set(settings, '$.after', ?) where kind = ? and {_HAS_AFTER}"
    db.execute(f"{update} and {_AFTER} is ?", [part_id, BIN + project_id, old_predecessor])
