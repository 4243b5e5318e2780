"""The casts of projects: characters with their voices and lines; added, changed, merged, restored."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from studio.errors import InvalidRequest, NotFound
from studio.library.checks import clean_gender, clean_text
from studio.library.projects.project_records import MAX_ALIASES, MAX_CAST_CHARACTERS, MAX_NAME, NewCharacter
from studio.library.projects.row_mapping import AT_REST, recipes_of, row_of, row_to_restore_to, touch, update_states
from studio.library.sqlite import Database, select
from studio.library.store import Store
from studio.library.trash import Trash, mark

_SAMPLE_LETTERS = 240
"""Maximum characters of a sample line; a longer part is the sample only if the character has no other."""
_WORDS = "length(text) - length(replace(replace(text, char(10), ' '), ' ', '')) + 1"
"""Words are counted in SQL by spaces, so that the texts need not be read."""


@dataclass(frozen=True, slots=True)
class SampleLine:
    """A typical part of a character, preferably one with audio."""

    part: str
    position: int
    text: str
    take: str | None
    """None if it has no audio of its current text."""


@dataclass(frozen=True, slots=True)
class CastMember:
    """A character of a project, or the narrator, who has no id."""

    id: str | None
    name: str
    aliases: tuple[str, ...]
    gender: str
    voice: str | None
    """None: the project's."""
    is_narrator: bool
    lines: int = 0
    """Parts."""
    words: int = 0
    sample: SampleLine | None = None


@dataclass(frozen=True, slots=True)
class CharacterChanges:
    """Changes to a character; None leaves a field as it is."""

    name: str | None = None
    aliases: Sequence[str] | None = None
    gender: str | None = None
    voice: str | None = None
    """Blank: the project's."""
    is_narrator: bool | None = None
    """True: speaks in the project's voice, until it gets its own voice."""


class Cast:
    """Calls block for milliseconds, in proportion to the lines of a character; ``owner_filter`` is as for Projects."""

    def __init__(self, store: Store, trash: Trash) -> None:
        self._store = store
        self._trash = trash
        trash.put_back["character"] = _put_back

    def members(self, project_id: str, owner_filter: str | None) -> list[CastMember]:
        """The narrator, then the characters, those with most lines first. Raises NotFound."""
        with self._store.reading() as db:
            row = row_of(db, project_id, owner_filter)
            figures = _figures(db, project_id)
            members = [_member(character, figures) for character in _rows(db, project_id)]
        voice = json.loads(row["settings"]).get("voice")
        narrator = CastMember(None, "", (), "", voice, True, *figures.get(None, (0, 0, None)))
        return [narrator, *sorted(members, key=lambda member: -member.lines)]

    def names(self, project_id: str, owner_filter: str | None) -> dict[str, str]:
        """The names of the characters by id. Raises NotFound."""
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            return {row["id"]: row["name"] for row in _rows(db, project_id)}

    def speakers(self, project_id: str, owner_filter: str | None) -> list[str]:
        """The names of the speaking characters, part by part, without the narrator. Raises NotFound."""
        query = (
            "select name from parts join characters on characters.id = character"
            " where parts.project_id = ? and characters.deleted is null order by position"
        )
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            return [name for [name] in db.execute(query, [project_id]).fetchall()]

    def texts_at(self, project_id: str, positions: Collection[int]) -> dict[int, str]:
        """The texts of parts by their positions."""
        query = "select position, text from parts where project_id = ? and position in (select value from json_each(?))"
        with self._store.reading() as db:
            return dict(db.execute(query, [project_id, json.dumps(list(positions))]).fetchall())

    def add(self, project_id: str, owner_filter: str | None, character: NewCharacter) -> CastMember:
        """Add a character without lines. Raises NotFound, InvalidRequest."""
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            if len(rows := _rows(db, project_id)) >= MAX_CAST_CHARACTERS:
                raise _too_many()
            new_row = character_row(project_id, character)
            _check_name(rows, new_row["name"], None)
            db.table("characters").insert(new_row)
            touch(db, row)
            return _member(new_row, {})

    def edit(
        self, project_id: str, owner_filter: str | None, character_id: str, changes: CharacterChanges
    ) -> CastMember:
        """Change a character. A new voice also applies to its lines, except those with their own voice.

        Raises NotFound, InvalidRequest.
        """
        if changes.is_narrator and changes.voice:
            raise InvalidRequest("the narrator speaks in the project's voice: leave out voice, or narrator", "voice")
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            old_row = _row(db, project_id, character_id)
            new_row = _changed_row(old_row, changes)
            _check_name(_rows(db, project_id), new_row["name"], character_id)
            db.table("characters").update(old_row["n"], new_row)
            revoice(db, row, {character_id: (old_row["voice"], new_row["voice"])})
            touch(db, row)
            return _member(old_row | new_row, _figures(db, project_id))

    def recast(self, project_id: str, owner_filter: str | None, voices: dict[str, str | None]) -> None:
        """Set the voices of characters, by id, and of their lines as `edit` does. Raises NotFound."""
        with self._store.writing() as db:
            row = row_of(db, project_id, owner_filter)
            changes = {}
            for character_id, voice in voices.items():
                old_row = _row(db, project_id, character_id)
                db.table("characters").update(old_row["n"], {"voice": voice})
                changes[character_id] = old_row["voice"], voice
            revoice(db, row, changes)
            touch(db, row)

    def merge(
        self, project_id: str, owner_filter: str | None, character_id: str, into: str | None
    ) -> CastMember | None:
        """Give all lines and names of a character to another one (None: the narrator), and move it to the trash.

        Raises NotFound, InvalidRequest.
        """
        if character_id == into:
            raise InvalidRequest("a character cannot be merged with itself: name another one", "into")
        with self._trash.deleting() as db:
            row = row_of(db, project_id, owner_filter)
            merged = _row(db, project_id, character_id)
            successor = None if into is None else _row(db, project_id, into)
            lines = db.execute("select id from parts where character = ? order by position", [character_id]).fetchall()
            ids = json.dumps([part_id for [part_id] in lines])
            _reassign_lines(db, row, ids, merged, successor)
            if successor is not None:
                names = dict.fromkeys(
                    [*json.loads(successor["aliases"]), merged["name"], *json.loads(merged["aliases"])]
                )
                aliases = [name for name in names if name != successor["name"]][:MAX_ALIASES]
                successor["aliases"] = json.dumps(aliases)
                successor["gender"] = successor["gender"] or merged["gender"]
                db.table("characters").update(successor["n"], {name: successor[name] for name in ("aliases", "gender")})
            db.table("characters").update(merged["n"], {"lines": ids, "successor": into})
            mark(db, "character", [character_id])
            touch(db, row)
            return None if successor is None else _member(successor, _figures(db, project_id))


def character_row(project_id: str, character: NewCharacter) -> dict[str, Any]:
    """Raises InvalidRequest."""
    row = {"id": character.id, "project_id": project_id, "name": _clean_name(character.name)}
    row |= {
        "aliases": json.dumps(_clean_aliases(character.aliases, row["name"])),
        "gender": clean_gender(character.gender),
    }
    voice = None if character.is_narrator else character.voice or None
    return row | {"voice": voice, "is_narrator": int(character.is_narrator), "deleted": None}


def voice_of_character(db: Database, project_id: str, character_id: str) -> str | None:
    """The voice of a character's lines. Raises NotFound."""
    voice: str | None = _row(db, project_id, character_id)["voice"]
    return voice


def revoice(db: Database, project: dict[str, Any], voices: dict[str, tuple[str | None, str | None]]) -> None:
    """Change the voices of characters' lines, by id: (before, after). A line with its own voice keeps it."""
    updates = [(after, character, before) for character, (before, after) in voices.items() if before != after]
    if updates:
        db.conn.executemany("update parts set voice = ? where character = ? and voice is ?", updates)
        _settle(
            db,
            project,
            "character in (select value from json_each(?))",
            json.dumps([character for _, character, _ in updates]),
        )


def _settle(db: Database, project: dict[str, Any], where: str, value: str) -> None:
    db.execute(
        f"update parts set state = 'new', attempts = 0, error = null where state = 'failed' and {where}", [value]
    )
    update_states(db, recipes_of(db, project), f"{where} and {AT_REST}", [value])


def _reassign_lines(
    db: Database, project: dict[str, Any], ids: str, source: dict[str, Any], target: dict[str, Any] | None
) -> None:
    """Give parts, a JSON list of ids, from one character to another; None: the narrator."""
    condition = "id in (select value from json_each(?))"
    target_id, voice = (None, None) if target is None else (target["id"], target["voice"])
    values = [target_id, source["voice"], voice, ids]
    db.execute(
        f"update parts set character = ?, voice = case when voice is ? then ? else voice end where {condition}", values
    )
    _settle(db, project, condition, ids)


def _put_back(db: Database, rows: Sequence[dict[str, Any]]) -> None:
    """Restore characters with those of their lines that still are the successor's. Raises InvalidRequest."""
    for deleted in rows:
        row = row_to_restore_to(db, deleted["project_id"])
        existing = _rows(db, row["id"])
        if len(existing) >= MAX_CAST_CHARACTERS:
            raise _too_many()
        _check_name(existing, deleted["name"], deleted["id"])
        successor = next((character for character in existing if character["id"] == deleted["successor"]), None)
        speaker_id = deleted["successor"] if successor else None
        query = "select id from parts where character is ? and id in (select value from json_each(?))"
        ids = json.dumps(
            [part_id for [part_id] in db.execute(query, [speaker_id, deleted["lines"] or "[]"]).fetchall()]
        )
        if successor is not None:
            names = {deleted["name"], *json.loads(deleted["aliases"])}
            aliases = [name for name in json.loads(successor["aliases"]) if name not in names]
            db.table("characters").update(successor["n"], {"aliases": json.dumps(aliases)})
        _reassign_lines(db, row, ids, successor or {"voice": None}, deleted)
        db.table("characters").update(deleted["n"], {"lines": None, "successor": None})
        touch(db, row)


def _rows(db: Database, project_id: str) -> list[dict[str, Any]]:
    return list(select(db, "select * from characters where project_id = ? and deleted is null", [project_id]))


def _row(db: Database, project_id: str, character_id: str) -> dict[str, Any]:
    query = "select * from characters where project_id = ? and id = ? and deleted is null"
    for row in select(db, query, [project_id, character_id]):
        return row
    raise NotFound(f"the project has no character {character_id[:80]!r}", "character")


Figures = dict[str | None, tuple[int, int, SampleLine | None]]


def _figures(db: Database, project_id: str) -> Figures:
    """Lines, words and a sample by character."""
    sample_rank = f"max((state = 'done') * 1000 + case when characters <= {_SAMPLE_LETTERS} then characters else 1 end)"
    query = (
        f"select character, count(*), sum({_WORDS}), {sample_rank}, id, position, substr(text, 1, 400),"
        " case when state = 'done' then chosen end from parts where project_id = ? group by character"
    )
    rows = db.execute(query, [project_id]).fetchall()  # SQLite takes bare columns from the row with the maximum
    return {character: (lines, words, SampleLine(*sample)) for character, lines, words, _, *sample in rows}


def _member(row: dict[str, Any], figures: Figures) -> CastMember:
    fields = (row["id"], row["name"], tuple(json.loads(row["aliases"])), row["gender"], row["voice"])
    return CastMember(*fields, bool(row["is_narrator"]), *figures.get(row["id"], (0, 0, None)))


def _changed_row(old_row: dict[str, Any], changes: CharacterChanges) -> dict[str, Any]:
    new_row = {name: old_row[name] for name in ("name", "aliases", "gender", "voice", "is_narrator")}
    if changes.name is not None:
        new_row["name"] = _clean_name(changes.name)
    if changes.aliases is not None:
        new_row["aliases"] = json.dumps(_clean_aliases(changes.aliases, new_row["name"]))
    if changes.gender is not None:
        new_row["gender"] = clean_gender(changes.gender)
    if changes.voice is not None:
        new_row["voice"] = changes.voice.strip() or None
        new_row["is_narrator"] = int(bool(new_row["is_narrator"]) and new_row["voice"] is None)
    if changes.is_narrator is not None:
        new_row["is_narrator"] = int(changes.is_narrator)
        new_row["voice"] = None if changes.is_narrator else new_row["voice"]
    return new_row


def _clean_name(name: str) -> str:
    name = " ".join(clean_text("name", name, MAX_NAME).split())
    if not name:
        raise InvalidRequest("a character needs a name: it is blank", "name")
    return name


def _clean_aliases(aliases: Iterable[str], name: str) -> list[str]:
    cleaned = dict.fromkeys(" ".join(clean_text("aliases", alias, MAX_NAME).split()) for alias in aliases)
    distinct = [alias for alias in cleaned if alias and alias != name]
    if len(distinct) > MAX_ALIASES:
        raise InvalidRequest(f"there are {len(distinct)} aliases; at most {MAX_ALIASES} are allowed", "aliases")
    return distinct


def _check_name(rows: Iterable[dict[str, Any]], name: str, own_id: str | None) -> None:
    if any(row["name"].casefold() == name.casefold() and row["id"] != own_id for row in rows):
        raise InvalidRequest(f"the cast already has {name[:80]!r}: choose another name, or merge the two", "name")


def _too_many() -> InvalidRequest:
    return InvalidRequest(
        f"the cast already has {MAX_CAST_CHARACTERS} characters; merge or delete some first", "characters"
    )
