"""Reads CSV with a header: text and other columns, each with a role or kept as it is; a row is a part. Writes CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from manuscript.encodings import decode_text
from manuscript.passages import (
    MAX_NAME,
    MAX_PARTS,
    MAX_PAUSE,
    MAX_TEXT,
    Column,
    Document,
    InvalidDocument,
    NewCharacter,
    Passage,
    Skipped,
)

_SEPARATORS = ",;\t|"
_FORMULA = re.compile(r"'*[=+\-@＝＋－＠\t\r\n]")
"""How a cell begins that a spreadsheet would run, or that has been marked as text, some number of times."""
_SEPARATOR_LINE = re.compile(r"\"?sep=([^\w\s\"]|\t)[^\w\n]*\n", re.IGNORECASE)


ROLES: dict[str, tuple[str, ...]] = {
    "id": ("id", "key", "line id", "string id", "line key", "loc id"),
    "text": ("text", "dialogue", "dialog", "line"),
    "character": ("character", "speaker", "who"),
    "voice": ("voice",),
    "direction": ("direction", "emotion", "tag", "delivery", "style", "mood"),
    "chapter": ("chapter",),
    "file": ("file name", "filename", "file", "audio file", "asset", "wav"),
    "gender": ("gender", "sex"),
    "pause": ("pause",),
    "scene": ("scene",),
    "continues": ("continues",),
}
"""The roles of columns, and the names of columns that have them unless the request says otherwise, the first one
first."""
SAMPLES = 4  # rows that are shown of a table before it is imported
MAX_COLUMNS = 100
FEWEST_IDS = 0.9
"""The least share of distinct values in a column whose name suggests ids. Below it, the column holds something else,
such as the numbers of scenes; above it, a value that repeats is a mistake."""
_NUMBERED = re.compile(r"\d{5}\.wav")
"""The name that an export gives to the file of a line without its own: it says nothing about the line."""
YES, NO = ("yes", "true", "1", "x"), ("no", "false", "0")  # in small letters
_AS_NUMBERS = {"1.0": True, "0.0": False}  # as programs write a column of ones and zeros with gaps
_ANSWERS = dict.fromkeys(YES, True) | dict.fromkeys(NO, False) | _AS_NUMBERS
_GENDERS = {
    word: gender
    for gender, words in {
        "female": "f female fem woman girl w weiblich frau mädchen femme féminin fille mujer femenino niña mulher "
        "feminino donna femminile vrouw 女 女性 여",
        "male": "m male masc man boy männlich mann junge homme masculin garçon hombre masculino niño homem uomo "
        "maschile 男 男性 남",
        "neutral": "n neutral neuter nonbinary non-binary nb d divers diverse",
    }.items()
    for word in words.split()
}
"""By words that tables use; others say nothing."""


def read_csv(data: bytes, roles: Mapping[str, str] | None = None) -> Document:
    """A table; columns may be in any order. ``roles``: the role of each column; None: by their names, see ROLES.

    Columns without a role stay with their rows. Raises InvalidDocument with the line.
    """
    rows = list(islice(rows_of(data, (), keep_case=True), MAX_PARTS + 1))  # into_parts refuses more
    names = list(rows[0][0]) if rows else []
    if len(names) > MAX_COLUMNS:
        raise InvalidDocument(f"the table has {len(names)} columns; at most {MAX_COLUMNS} are allowed")
    chosen = _usual_roles(names) if roles is None else {name: role for name, role in roles.items() if name in names}
    if names and "text" not in chosen.values():
        line = 1 + bool(_SEPARATOR_LINE.match(data[:100].decode("utf-8-sig", "ignore")))
        listed = ", ".join(names)[:300]
        raise InvalidDocument(
            f"line {line}: the first line must name the columns, among them text; it has {listed}", "columns"
        )
    if sum(len(cell) for row, _ in rows for cell in row.values()) > MAX_TEXT:
        raise InvalidDocument(f"the cells have more than {MAX_TEXT} characters together, which is the limit")
    skipped = Skipped()
    if roles is None and len(_ids(rows, chosen)) < FEWEST_IDS * len(rows):  # these may be numbers of scenes
        named = " and ".join(f"“{name[:80]}”" for name, role in chosen.items() if role in ("id", "file"))
        skipped.add(f"{named} is not taken for the ids of the lines, as many of them are the same.")
        chosen = {name: role for name, role in chosen.items() if role not in ("id", "file")}
    passages, lines, silent = list[Passage](), dict[str, int](), list[int]()
    for row, line in rows:
        passage = passage_of(row, chosen, line)
        if passage is None and any(cell.strip() for cell in row.values()):
            silent.append(line)
        elif passage:
            key = passage.name.casefold()
            if key and key in lines:
                raise InvalidDocument(
                    f"line {line}: the id {passage.name[:80]!r} is already that of line {lines[key]}; ids are unique"
                )
            lines[key] = line
            passages.append(passage)
    if silent:
        more = " …" if len(silent) > SAMPLES else ""
        skipped.add(f"Rows without text are left out: line {', '.join(map(str, silent[:SAMPLES]))}{more}.")
    columns = tuple(
        Column(name, chosen.get(name, ""), tuple(row[name][:200] for row, _ in rows[:SAMPLES])) for name in names
    )
    cast = tuple(_genders(rows, chosen))
    return replace(of_rows(passages), columns=columns, cast=cast, skipped=skipped.sentences())


def _usual_roles(names: Sequence[str]) -> dict[str, str]:
    """The role of each column, by its name."""
    by_name = {" ".join(re.split(r"[\W_]+", name.casefold())).strip(): name for name in reversed(names)}
    found = (
        (role, next((by_name[alias] for alias in aliases if alias in by_name), "")) for role, aliases in ROLES.items()
    )
    return {name: role for role, name in found if name}


def _ids(rows: Iterable[tuple[dict[str, str], int]], roles: Mapping[str, str]) -> set[str | int]:
    """The ids of the rows; the line of a row without one."""
    column = next((name for name, role in roles.items() if role == "id"), None)
    return {(row[column] if column else file_of(row, roles)).strip().casefold() or line for row, line in rows}


def _genders(rows: Iterable[tuple[dict[str, str], int]], roles: Mapping[str, str]) -> Iterator[NewCharacter]:
    """The characters whose gender the table says."""
    by_role = {role: name for name, role in roles.items()}
    if not {"character", "gender"} <= by_role.keys():
        return
    known = dict[str, str]()
    for row, _ in rows:
        name = " ".join(row[by_role["character"]].split())[:MAX_NAME]
        if name and (gender := _GENDERS.get(row[by_role["gender"]].strip(" .").casefold())):
            known.setdefault(name, gender)
    yield from (NewCharacter(name, gender=gender) for name, gender in known.items())


def of_rows(rows: Iterable[Passage]) -> Document:
    """A document of rows that are parts. A chapter begins at the first row with its title, as many tables repeat the
    title in each row."""
    passages, title = list(rows), ""
    for at, passage in enumerate(passages):
        if passage.chapter == title:
            passages[at] = replace(passage, chapter="")
        title = passage.chapter or title
    return Document(tuple(passages), prose=False)


def rows_of(data: bytes, required: Sequence[str], keep_case: bool = False) -> Iterator[tuple[dict[str, str], int]]:
    """Yield each row as a dict by column name, in lower case unless ``keep_case``, with the line in which it ends.

    Excel's first line ``sep=;`` is respected. Raises InvalidDocument with the line if the text is not CSV, a column is
    missing, two have one name, or a row has more fields than there are columns.
    """
    text = decode_text(data)
    skipped = 0
    if match := _SEPARATOR_LINE.match(text):
        separator, skipped = match[1], 1
        text = text[match.end() :]
    else:
        first = text.partition("\n")[0]
        separator = max(_SEPARATORS, key=first.count)
        separator = separator if separator in first else "\x1f"  # one column: a character that no text contains
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        names = [name.strip() if keep_case else name.strip().lower() for name in next(rows, [])]
        if not set(required) <= set(names):
            raise InvalidDocument(
                f"line {1 + skipped}: the first line must name the columns, among them {' and '.join(required)}"
            )
        if repeated := next((name for name, count in Counter(names).items() if name and count > 1), None):
            message = f"line {1 + skipped}: two columns are named {repeated[:80]!r}; give one of them another name"
            raise InvalidDocument(message)
        for row in rows:
            line = rows.line_num + skipped
            if any(field.strip() for field in row[len(names) :]):
                raise InvalidDocument(
                    f"line {line}: this row has {len(row)} fields, but there are {len(names)} columns;"
                    f" a field that contains {separator!r} must be in double quotes"
                )
            cells = [cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell for cell in row]
            yield dict.fromkeys(names, "") | dict(zip(names, cells, strict=False)), line
    except csv.Error as error:
        raise InvalidDocument(f"line {rows.line_num + skipped}: {error}") from None


def write_rows(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV. A spreadsheet runs no cell: texts that look like formulas begin with an apostrophe, which `rows_of`
    removes."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(
        [f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell for cell in row] for row in rows
    )
    return text.getvalue()


def passage_of(cells: dict[str, str], roles: Mapping[str, str], line: int = 0) -> Passage | None:
    """The passage of a row; None for a row without text. Raises InvalidDocument with the line."""
    row = {role: cells.get(name, "").strip() for name, role in roles.items() if role}
    text = row.get("text", "")
    if not text:
        return None
    pause_text = row.get("pause", "")
    try:
        pause = float(pause_text.replace(",", ".")) if pause_text else None
    except ValueError:
        raise InvalidDocument(f"line {line}: the pause {pause_text[:20]!r} is not a number of seconds") from None
    if pause is not None and not 0 <= pause <= MAX_PAUSE:
        raise InvalidDocument(f"line {line}: a pause must be from 0 to {MAX_PAUSE:g} seconds")
    return Passage(
        text,
        chapter=row.get("chapter", "")[:200],
        voice=row.get("voice") or None,
        pause=pause,
        scene=_ANSWERS.get(row.get("scene", "").lower(), False),
        speaker=" ".join(row.get("character", "").split())[:MAX_NAME],
        continues=_ANSWERS.get(row.get("continues", "").lower()),
        name=" ".join((row.get("id") or file_of(cells, roles)).split())[:MAX_NAME],
        cells=json.dumps(cells, ensure_ascii=False),
        direction=" ".join(row.get("direction", "").strip("[]() ").split())[:MAX_NAME],
    )


def file_of(cells: Mapping[str, str], roles: Mapping[str, str]) -> str:
    """The name of a row's file, without its ending; blank if the table gives none."""
    column = next((name for name, role in roles.items() if role == "file"), "")
    name = cells.get(column, "").strip()
    return "" if _NUMBERED.fullmatch(name) else re.sub(r"\.(?:wav|mp3|ogg|flac|opus)\Z", "", name, flags=re.IGNORECASE)
