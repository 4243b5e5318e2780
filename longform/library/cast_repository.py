"""The casts of projects: characters with their voices and lines; added, changed, merged, restored."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from longform.library.chapters import WORDS
from longform.library.part_arrangement import by_project
from longform.library.part_order import AMONG, THESE, positions_of
from longform.library.project_records import Recipes, ReplacedValues, ReplacedVoice
from longform.library.row_mapping import (
    AT_REST,
    Outcome,
    changing,
    outcome_of,
    recipes_for,
    recipes_of,
    recipes_to_restore_with,
    reset_failed,
    row_of,
    row_to_restore_to,
    touch,
    update_states,
    write_outcome,
)
from manuscript.passages import MAX_ALIASES, MAX_CAST_CHARACTERS, MAX_NAME, SURE, NewCharacter
from speechtext.turns import fold_speaker
from studio.errors import InvalidRequest, NotFound
from studio.library.checks import check_before, clean_gender, clean_text, readable
from studio.library.schema import Database, select
from studio.library.store import Store, again_if_outdated
from studio.library.trash import Prepared, Trash, Trashed, mark

_SAMPLE_LETTERS = 240
"""Maximum characters of a sample line; a longer part is the sample only if the character has no other."""
_EARLIER_PROJECTS = 200
"""The newest projects whose casts are compared with a new book's people, so that the cost does not grow without end."""
_SHARED = 2
"""People that two books of a series share at least: one alone may be a common name, such as “Mother”."""


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
class EarlierCast:
    """A project whose cast has people of another book."""

    project_id: str
    title: str
    shared: int
    """The number of its characters with a name of that book's people."""


@dataclass(frozen=True, slots=True)
class SpokenLine:
    """A part that a character speaks."""

    id: str
    position: int
    confidence: float | None
    """1 if a person has decided; None without a quotation."""
    character: str | None
    continues: bool
    """Whether it continues the paragraph of the part before it."""


Speaker = tuple[str | None, float | None]
"""A line's character (None: the narrator) and confidence."""


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
    before: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The values that they replace, as the API has them; absent ones: any."""


class Cast:
    """Calls block for milliseconds, in proportion to the lines of a character; ``owner_filter`` is as for Projects."""

    def __init__(self, store: Store, trash: Trash) -> None:
        self._store = store
        self._trash = trash
        listed = (
            "select gone.id, name, owner, sharing, gone.deleted, json_array_length(lines), project_id, gone.n"
            " from characters as gone join projects on projects.id = project_id where gone.deleted > 0"
        )
        trash.kinds["character"] = Trashed("characters", listed, _remove, _put_back, _prepare)

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

    def with_names(self, names: Iterable[str], owner_filter: str | None, limit: int = 3) -> list[EarlierCast]:
        """The projects that share most people with a list of names, among the newest ones."""
        wanted = {fold_speaker(name) for name in names}
        newest = f"select * from projects where {readable('?1')} and deleted is null order by n desc limit ?2"
        query = (
            f"select newest.id as project, title, name, aliases from ({newest}) as newest"
            " join characters on project_id = newest.id where characters.deleted is null order by newest.n desc"
        )
        titles, shared = dict[str, str](), defaultdict[str, int](int)
        with self._store.reading() as db:
            for row in select(db, query, [owner_filter, _EARLIER_PROJECTS]):
                titles[row["project"]] = row["title"]
                own = (row["name"], *json.loads(row["aliases"]))
                shared[row["project"]] += any(fold_speaker(name) in wanted for name in own)
        casts = [EarlierCast(id, titles[id], count) for id, count in shared.items() if count >= _SHARED]
        return sorted(casts, key=lambda cast: -cast.shared)[:limit]

    def speakers(self, project_id: str, owner_filter: str | None) -> list[str]:
        """The names of the speaking characters, part by part, without the narrator. Raises NotFound."""
        query = (
            "select characters.name from parts join characters on characters.id = character"
            " where parts.project_id = ? and characters.deleted is null order by place"
        )
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            return [name for [name] in db.execute(query, [project_id]).fetchall()]

    def neighbours(self, part_ids: Sequence[str], count: int) -> dict[str, tuple[str, str]]:
        """The texts of so many parts before and after parts, by their ids; blank where there are none.

        A line feed comes before each part that begins a paragraph, a space before the others.
        """
        text = "select * from parts as next where next.project_id = parts.project_id and next.place"
        before, after = (
            f"(select coalesce(group_concat(iif(continues, ' ', char(10)) || text, ''), '') from (select * from"
            f" ({text} {end} limit {count:d}) order by place))"
            for end in ("< parts.place order by place desc", "> parts.place order by place")
        )
        query = f"select id, {before}, {after} from parts"
        with self._store.reading() as db:
            rows = db.execute(f"{query} where id in (select value from json_each(?))", [json.dumps(list(part_ids))])
            return {part_id: (before, after) for part_id, before, after in rows.fetchall()}

    def speech(self, project_id: str, owner_filter: str | None) -> list[SpokenLine]:
        """All lines of speech in order. Raises NotFound."""
        query = (
            "select id, position, case when confirmed then 1.0 else confidence end, character, continues from"
            " (select *, row_number() over (order by place) - 1 as position from parts where project_id = ?)"
            " where confidence is not null or character is not null order by place"
        )
        with self._store.reading() as db:
            row_of(db, project_id, owner_filter)
            return [SpokenLine(*row) for row in db.execute(query, [project_id]).fetchall()]

    @again_if_outdated
    def follow(self, project_id: str, owner_filter: str | None, changes: Mapping[str, Speaker]) -> list[ReplacedValues]:
        """Change the characters and confidences of lines, by their ids, that nobody has confirmed meanwhile; returns
        what was replaced.

        A line in its character's voice gets the new one's. Raises NotFound.
        """
        if not changes:
            return []
        among, ids = "id in (select value from json_each(?))", json.dumps(list(changes))
        voice = "(select voice from characters where id = {})"
        update = (
            f"update all_parts set voice = case when voice is {voice.format('character')} then {voice.format('?1')}"
            " else voice end, character = ?1, confidence = ?2 where id = ?3 and project_id = ?4 and confirmed = 0"
        )
        with self._store.reading() as db:
            row = row_of(db, project_id, owner_filter, "edit")
            characters = {character for character, _ in changes.values()}
            voices = {one: one and voice_of_character(db, project_id, one) for one in characters}
            recipes = recipes_for(db, recipes_of(db, row), among, [ids], lambda part, *_: [voices[changes[part][0]]])
        with changing(self._store.writing(), project_id, owner_filter) as (db, row):
            values = [(character, sure, part_id, project_id) for part_id, (character, sure) in changes.items()]
            before = _following(db, ids)
            db.conn.executemany(update, values)
            _settle(db, row, among, ids, recipes)
            after = _following(db, ids)
            return [ReplacedValues((one,), before[one], after[one]) for one in before if before[one] != after[one]]

    def add(self, project_id: str, owner_filter: str | None, character: NewCharacter) -> CastMember:
        """Add a character without lines. Raises NotFound, InvalidRequest."""
        with changing(self._store.writing(), project_id, owner_filter) as (db, _):
            if len(rows := _rows(db, project_id)) >= MAX_CAST_CHARACTERS:
                raise _too_many()
            new_row = character_row(project_id, character)
            _check_name(rows, new_row["name"], None)
            db.table("characters").insert(new_row)
            return _member(new_row, {})

    @again_if_outdated
    def edit(
        self, project_id: str, owner_filter: str | None, character_id: str, changes: CharacterChanges
    ) -> tuple[CastMember, dict[str, ReplacedVoice]]:
        """Change a character. A new voice also applies to its lines, except those with their own voice. Returns the
        character, and its voice before and after if that changed.

        Raises NotFound, InvalidRequest, EditConflict.
        """
        if changes.is_narrator and changes.voice:
            raise InvalidRequest("the narrator speaks in the project's voice: leave out voice, or narrator", "voice")
        with self._store.reading() as db:
            row = row_of(db, project_id, owner_filter, "edit")
            old_row = _row(db, project_id, character_id)
            voice = _changed_row(old_row, changes)["voice"]
            recipes = _recipes_in(db, row, {character_id: voice} if voice != old_row["voice"] else {})
        with changing(self._store.writing(), project_id, owner_filter) as (db, row):
            old_row = _row(db, project_id, character_id)
            new_row = _changed_row(old_row, changes)
            check_before(_values(old_row), changes.before, _values(new_row))
            _check_name(_rows(db, project_id), new_row["name"], character_id)
            db.table("characters").update(old_row["n"], new_row)
            pair = old_row["voice"], new_row["voice"]
            replaced = _revoice(db, row, {} if pair[0] == pair[1] else {character_id: pair}, recipes)
            if (narrator := bool(old_row["is_narrator"])) != new_row["is_narrator"]:
                replaced[character_id] = replace(replaced.get(character_id, ReplacedVoice(*pair)), narrator=narrator)
            return _member(old_row | new_row, _figures(db, project_id)), replaced

    @again_if_outdated
    def recast(
        self,
        project_id: str,
        owner_filter: str | None,
        voices: dict[str, str | None],
        undone: Mapping[str, ReplacedVoice] | None = None,
    ) -> dict[str, ReplacedVoice]:
        """Set the voices of characters, by id, and of their lines as `edit` does; returns those that changed.
        ``undone``: the changes that this undoes; characters with other voices by now are left. Raises NotFound."""
        kept = [part_id for one in (undone or {}).values() for part_id in one.own]
        with self._store.reading() as db:
            row = row_of(db, project_id, owner_filter, "edit")
            recipes = recipes_of(db, row)
            _revoiced(db, recipes, _recast(db, project_id, voices, undone), kept)
        with changing(self._store.writing(), project_id, owner_filter) as (db, row):
            changes = _recast(db, project_id, voices, undone)
            rows = [(after, bool(undone and undone[one].narrator), one) for one, (_, after) in changes.items()]
            db.conn.executemany("update characters set voice = ?, is_narrator = ? where id = ?", rows)
            return _revoice(db, row, changes, recipes, kept)

    def delete_unused(self, project_id: str, owner_filter: str | None, characters: Sequence[str]) -> None:
        """Move those of these characters that have no lines to the trash. Raises NotFound."""
        for member in self.members(project_id, owner_filter) if characters else ():
            if member.id is not None and member.id in characters and not member.lines:
                self.merge(project_id, owner_filter, member.id, None)

    @again_if_outdated
    def merge(
        self, project_id: str, owner_filter: str | None, character_id: str, into: str | None
    ) -> CastMember | None:
        """Give all lines and names of a character to another one (None: the narrator), and move it to the trash.

        Raises NotFound, InvalidRequest.
        """
        if character_id == into:
            raise InvalidRequest("choose a different character to merge with", "into")
        with self._store.reading() as db:
            row = row_of(db, project_id, owner_filter, "edit")
            voice = None if into is None else _row(db, project_id, into)["voice"]
            recipes = _recipes_in(db, row, {character_id: voice})
        with changing(self._trash.deleting(), project_id, owner_filter) as (db, row):
            merged = _row(db, project_id, character_id)
            successor = None if into is None else _row(db, project_id, into)
            query = "select id, voice from all_parts where character = ? order by place"
            lines = db.execute(query, [character_id]).fetchall()
            new_voice = None if successor is None else successor["voice"]
            record = {"voiced": [part_id for part_id, voice in lines if voice == merged["voice"]]}
            ids = json.dumps([part_id for part_id, _ in lines])
            _reassign_lines(db, ids, into, record["voiced"], merged["voice"], new_voice)
            _settle(db, row, THESE, ids, recipes)
            if successor is not None:
                record |= _add_names(successor, merged)
                db.table("characters").update(successor["n"], {name: successor[name] for name in ("aliases", "gender")})
            db.table("characters").update(merged["n"], {"lines": ids, "successor": into, "merge": json.dumps(record)})
            mark(db, "characters", [character_id])
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


def _recipes_in(db: Database, project: dict[str, Any], voices: Mapping[str, str | None]) -> Recipes:
    """The recipes of a project, worked out for the lines of these characters in these voices."""
    where = "character in (select value from json_each(?))"
    recipes, ids = recipes_of(db, project), [json.dumps([*voices])]
    return recipes_for(db, recipes, where, ids, lambda _, character: [voices[str(character)]])


Revoicing = dict[str, tuple[str | None, str | None]]
"""The voices of characters, by id: before and after."""


def _recast(
    db: Database, project_id: str, voices: Mapping[str, str | None], undone: Mapping[str, ReplacedVoice] | None
) -> Revoicing:
    """What `Cast.recast` changes."""
    changes = Revoicing()
    for row in _rows(db, project_id):
        before, after = row["voice"], voices.get(row["id"], row["voice"])
        one = (undone or {}).get(row["id"]) or ReplacedVoice(after, before)
        is_as_left = before == one.after and row["is_narrator"] == (one.narrator is False)
        if is_as_left and (before != after or one.narrator is not None):
            changes[row["id"]] = before, after
    return changes


def _revoice(
    db: Database, project: dict[str, Any], voices: Revoicing, computed: Recipes, kept: Sequence[str] = ()
) -> dict[str, ReplacedVoice]:
    """Change the voices of characters' lines, except those of ``kept`` and those with their own voice."""
    query = (
        "select character, part.id from json_each(?) cross join all_parts part on character = key and voice is value"
    )
    own, new_voices = defaultdict[str, list[str]](list), json.dumps({one: new for one, (_, new) in voices.items()})
    for character, part_id in db.execute(query, [new_voices]).fetchall():
        own[character].append(part_id)
    for voice, outcome in _revoiced(db, recipes_of(db, project, computed), voices, kept):
        write_outcome(db, outcome, {"voice": voice})
    return {character: ReplacedVoice(*pair, own[character]) for character, pair in voices.items()}


def _revoiced(
    db: Database, recipes: Recipes, voices: Revoicing, kept: Sequence[str]
) -> list[tuple[str | None, Outcome]]:
    """The new voices, each with what it makes of its lines; before the write lock is taken, as for `outcome_of`."""
    characters = defaultdict[tuple[str | None, str | None], list[str]](list)
    for character, pair in voices.items():
        characters[pair].append(character)
    where = f"character {AMONG} and voice is ? and id not {AMONG}"
    return [
        (after, outcome_of(db, recipes, where, values, {"voice": after}, table="all_parts"))
        for (before, after), ids in characters.items()
        for values in [(json.dumps(ids), before, json.dumps(kept))]
    ]


def _following(db: Database, ids: str) -> dict[str, dict[str, Any]]:
    """What parts, a JSON list of ids, have in the columns that change when they follow from a decision."""
    query = f"select id, character, voice, confidence, confirmed, chosen from all_parts where {THESE}"
    return {row.pop("id"): row for row in select(db, query, [ids])}


def _settle(db: Database, project: dict[str, Any], where: str, value: str, computed: Recipes) -> None:
    reset_failed(db, where, [value])
    update_states(db, recipes_of(db, project, computed), f"{where} and {AT_REST}", [value])


def _reassign_lines(
    db: Database,
    ids: str,
    character: str | None,
    voiced: Sequence[str],
    old_voice: str | None,
    voice: str | None,
) -> None:
    """Give parts, a JSON list of ids, to a character (None: the narrator), and those of ``voiced`` that still have the
    old voice the new one."""
    db.execute(f"update all_parts set character = ? where {THESE}", [character, ids])
    update = f"update all_parts set voice = ? where voice is ? and character is ? and {THESE}"
    db.execute(update, [voice, old_voice, character, json.dumps(list(voiced))])


def _add_names(successor: dict[str, Any], merged: dict[str, Any]) -> dict[str, Any]:
    """Give a character the names of another one, and its gender if unknown; returns what was added, to be undone."""
    own = json.loads(successor["aliases"])
    names = dict.fromkeys([*own, merged["name"], *json.loads(merged["aliases"])])
    aliases = [name for name in names if name != successor["name"]][:MAX_ALIASES]
    gender = "" if successor["gender"] else merged["gender"]
    successor |= {"aliases": json.dumps(aliases), "gender": successor["gender"] or gender}
    return {"aliases": [name for name in aliases if name not in own], "gender": gender}


def _prepare(db: Database, rows: Sequence[dict[str, Any]], prepared: Prepared) -> None:
    """Work out what becomes of these characters' lines."""
    for project_id, cast in by_project(rows).items():
        _returning(db, recipes_to_restore_with(db, project_id, prepared), cast)


def _put_back(db: Database, rows: Sequence[dict[str, Any]], prepared: Prepared) -> None:
    """Restore characters with those of their lines that still are the successor's, unless somebody has decided so
    since; the successor loses what it got from them and nobody has changed. Raises InvalidRequest."""
    for project_id, cast in by_project(rows).items():
        row = row_to_restore_to(db, project_id)
        names = {one["name"].casefold(): one for one in _rows(db, project_id)}
        if len(names) + len(cast) > MAX_CAST_CHARACTERS:
            raise _too_many()
        outcomes = _returning(db, recipes_of(db, row, prepared.get(project_id)), cast)
        for deleted in cast:
            name = deleted["name"].casefold()
            _check_name([names[name]] if name in names else [], deleted["name"], deleted["id"])
            names[name] = deleted
            for successor in _successors(db, deleted["successor"], ()):
                _take_names_back(db, successor, json.loads(deleted["merge"]))
            update = 'update characters set lines = null, successor = null, "merge" = null, deleted = null where n = ?'
            db.execute(update, [deleted["n"]])
        for columns, outcome in outcomes:
            write_outcome(db, outcome, columns)
        touch(db, row)


def _returning(
    db: Database, recipes: Recipes, cast: Sequence[dict[str, Any]]
) -> list[tuple[dict[str, str | None], Outcome]]:
    """The new columns of the lines that characters get back, the last deleted first, and what these make of them; a
    line that several of them had, one after the other, is written once."""
    had = [json.loads(deleted["lines"] or "[]") for deleted in cast]
    query = f"select id, confirmed, character, voice from all_parts where {THESE}"
    rows = db.execute(query, [json.dumps([*{part_id: None for lines in had for part_id in lines}])]).fetchall()
    decided, before = {row[0]: row[1] for row in rows}, {row[0]: row[2:] for row in rows}
    now, returned = dict(before), set[str]()
    for deleted, lines in zip(cast, had, strict=True):
        holder, end = (None, None), deleted["deleted"] * 1e6  # the narrator, and the time in microseconds
        for successor in _successors(db, deleted["successor"], returned):
            if successor["deleted"] is None or successor["id"] in returned:
                holder = successor["id"], successor["voice"]
        voiced = {*json.loads(deleted["merge"])["voiced"]}
        for part_id in lines:
            if part_id in now and now[part_id][0] == holder[0] and decided[part_id] <= end:
                voice = now[part_id][1]
                has_voice = part_id in voiced and voice == holder[1]
                now[part_id] = deleted["id"], deleted["voice"] if has_voice else voice
        returned.add(deleted["id"])
    groups = defaultdict[tuple[str, str | None], list[str]](list)
    for part_id, pair in now.items():
        if pair != before[part_id]:
            groups[pair].append(part_id)
    changes = [({"character": character, "voice": voice}, ids) for (character, voice), ids in groups.items()]
    return [
        (columns, outcome_of(db, recipes, THESE, [json.dumps(ids)], columns, table="all_parts"))
        for columns, ids in changes
    ]


def _successors(db: Database, character_id: str | None, returned: Collection[str]) -> Iterator[dict[str, Any]]:
    """The character into which one was merged, then the one into which that was merged, up to the first that exists or
    has ``returned``."""
    while character_id is not None:
        row = next(select(db, "select * from characters where id = ?", [character_id]), None)
        if row is None:
            return
        yield row
        character_id = row["successor"] if row["deleted"] is not None and row["id"] not in returned else None


def _take_names_back(db: Database, successor: dict[str, Any], record: dict[str, Any]) -> None:
    """Undo `_add_names`, also for one that was merged into another character since."""
    aliases = [name for name in json.loads(successor["aliases"]) if name not in record["aliases"]]
    changes = {"aliases": json.dumps(aliases)}
    if record["gender"] and successor["gender"] == record["gender"]:
        changes["gender"] = ""
    db.table("characters").update(successor["n"], changes)


def _remove(db: Database, until: float) -> set[str]:
    db.execute("delete from characters where deleted <= ?", [until])
    return set()


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
    is_sure = f"(confirmed or confidence is null or confidence >= {SURE})"
    length = f"case when characters <= {_SAMPLE_LETTERS} then characters else 1 end"
    sample_rank = f"max(2000 * {is_sure} + 1000 * (state = 'done') + {length})"
    query = (
        f"select character, count(*), sum({WORDS}), {sample_rank}, id, place, substr(text, 1, 400),"
        " case when state = 'done' then chosen end from parts where project_id = ? group by character"
    )
    # SQLite takes bare columns from the row with the maximum.
    rows = sorted(db.execute(query, [project_id]).fetchall(), key=lambda row: row[5])
    positions = positions_of(db, project_id, [row[5] for row in rows])
    return {
        character: (lines, words, SampleLine(part_id, position, text, take))
        for (character, lines, words, _, part_id, _, text, take), position in zip(rows, positions, strict=True)
    }


def _member(row: dict[str, Any], figures: Figures) -> CastMember:
    fields = (row["id"], row["name"], tuple(json.loads(row["aliases"])), row["gender"], row["voice"])
    return CastMember(*fields, bool(row["is_narrator"]), *figures.get(row["id"], (0, 0, None)))


def _values(row: dict[str, Any]) -> dict[str, Any]:
    """Its fields as the API has them."""
    names = {name: row[name] for name in ("name", "gender", "voice")}
    return names | {"aliases": json.loads(row["aliases"]), "narrator": bool(row["is_narrator"])}


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
