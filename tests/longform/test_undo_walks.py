"""Random changes of a project, undone one after the other: each undo restores the project as it was before."""

from __future__ import annotations

import csv
import io
import random
import zipfile
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.longform.test_projects import PROJECTS, Json, Steer, until

NOVEL = """Chapter 1

“Come in,” said Anna. “Who are you?” asked Ben.

It was late. They went out. “What now?”

Chapter 2

“Go,” said Anna. “Why?” “Because,” said Carla. It was over.
"""
TEMPLATES = ["", "{title} by {author}.", "{title}. Done.", "By {narrator}. The end.", "{author}."]
PART = ("id", "text", "chapter", "voice", "pause", "scene", "character", "confirmed", "speed", "state", "chosen")
SETTINGS = ("voice", "pause", "speed", "author", "narrator", "opening_credits", "closing_credits")
CHARACTER = ("id", "name", "voice", "narrator", "lines")
Undo = Callable[[], httpx.Response]


class Walk:
    """A project, of prose or from a table, that is changed at random."""

    def __init__(self, client: httpx.Client, seed: int, is_table: bool) -> None:
        self.chance, self.client, self.is_table = random.Random(seed), client, is_table
        body = {
            "title": "A Book", "author": self.any("", "Jo"), "narrator": self.any("", "Bo"), "start": True,
            "opening_credits": self.any(*TEMPLATES), "closing_credits": self.any(*TEMPLATES),
        }  # fmt: skip
        if is_table:
            answer = client.post(PROJECTS, files={"file": ("lines.csv", self.lines())}, data=body)
        else:
            split_by = self.any("sentence", "paragraph")
            answer = client.post(PROJECTS, json=body | {"input": NOVEL, "speakers": True, "split_by": split_by})
        self.project: Json = answer.raise_for_status().json()
        self.at = f"{PROJECTS}/{self.project['id']}"

    def lines(self) -> str:
        rows = ["id,text,character,pause,scene,chapter,direction"]
        for number in range(10):
            character, pause, scene = self.any("Anna", "Ben", "Carla", ""), self.any("", "1"), self.any("", "1")
            chapter, direction = self.any("", "", "", f"C{number}"), self.any("", "sad")
            text = f"It was line {number}. And more."
            rows.append(f"l{number},{text},{character},{pause},{scene},{chapter},{direction}")
        return "\n".join(rows)

    def any(self, *values: Any) -> Any:
        return self.chance.choice(values)

    def state(self) -> dict[str, Any]:
        project = self.client.get(self.at).json()
        parts = self.client.get(f"{self.at}/parts", params={"limit": 200}).json()["data"]
        cast = self.client.get(f"{self.at}/cast").json()["data"]
        return {
            "title": project["title"],
            "settings": {name: project["settings"][name] for name in SETTINGS},
            "parts": [{name: part[name] for name in PART} for part in parts],
            "cast": sorted(([one[name] for name in CHARACTER] for one in cast), key=str),
        }

    def step(self) -> tuple[str, Undo] | None:
        """Make a change; returns its description and its undo, or None if it was refused."""
        parts = self.client.get(f"{self.at}/parts", params={"limit": 200}).json()["data"]
        cast = [one["id"] for one in self.client.get(f"{self.at}/cast").json()["data"]]
        names = [name for name in dir(self) if name.startswith("_do_")]
        name = "_do_update" if self.is_table and self.chance.random() < 0.2 else self.any(*names)
        made = getattr(self, name)(parts, cast)
        return None if made is None else (name.removeprefix("_do_"), made)

    def _changed(self, path: str, **body: object) -> Undo | None:
        answer = self.client.patch(f"{self.at}{path}", json=body)
        return self._undoing(answer)

    def _undoing(self, answer: httpx.Response) -> Undo | None:
        assert answer.status_code < 500, answer.text
        if answer.is_error:
            return None
        replaced = answer.json()["replaced"]
        return lambda: self.client.post(f"{self.at}/undo", json=replaced)

    def _do_credits(self, parts: list[Json], cast: list[str]) -> Undo | None:
        return self._changed("", **{self.any("opening_credits", "closing_credits"): self.any(*TEMPLATES)})

    def _do_details(self, parts: list[Json], cast: list[str]) -> Undo | None:
        return self._changed("", **{self.any("title", "author", "narrator"): self.any("Kim", "Eve")})

    def _do_settings(self, parts: list[Json], cast: list[str]) -> Undo | None:
        return self._changed("", **self.any({"voice": "bert"}, {"pause": 2}, {"speed": 1.5}, {"author": ""}))

    def _do_part(self, parts: list[Json], cast: list[str]) -> Undo | None:
        part = self.any(parts[0], parts[-1], *parts)
        text, chosen = {"text": f"By hand. {part['text']}"}, self.any("", *cast)
        others = {"character": chosen}, {"scene": True}, {"pause": 1}, {"chapter": "C"}
        fields = self.any(text, {"voice": "bert"}, *others)
        return self._changed(f"/parts/{part['id']}", **fields)

    def _do_parts(self, parts: list[Json], cast: list[str]) -> Undo | None:
        some = [part["id"] for part in self.chance.sample(parts, self.chance.randint(1, len(parts)))]
        fields = self.any({"voice": "bert"}, {"speed": 1.3}, {"character": self.any("", *cast)}, {"confirmed": True})
        return self._changed("/parts", ids=some, **fields)

    def _do_character(self, parts: list[Json], cast: list[str]) -> Undo | None:
        fields = self.any({"voice": "bert"}, {"voice": "anna"}, {"voice": ""}, {"narrator": True}, {"narrator": False})
        return self._changed(f"/cast/{self.any(*cast)}", **fields) if cast else None

    def _do_recast(self, parts: list[Json], cast: list[str]) -> Undo | None:
        return self._undoing(self.client.post(f"{self.at}/cast/recast", json={}))

    def _do_split(self, parts: list[Json], cast: list[str]) -> Undo | None:
        part = self.any(parts[0], parts[-1], *parts)
        text, at = part["text"], part["text"].find(" ")
        path = f"{self.at}/parts/{part['id']}"
        answer = self.client.post(f"{path}/split", json={"text": text, "at": at})
        if at < 0 or answer.is_error:
            return None
        second = answer.json()["data"][1]["id"]
        return lambda: self.client.post(f"{path}/merge", json={"following": second, "text": text})

    def _do_merge(self, parts: list[Json], cast: list[str]) -> Undo | None:
        number = self.any(0, len(parts) - 2)
        first, second = (part["id"] for part in parts[number : number + 2])
        answer = self.client.post(f"{self.at}/parts/{first}/merge", json={"following": second})
        return None if answer.is_error else lambda: self._restored("part", second)

    def _do_delete(self, parts: list[Json], cast: list[str]) -> Undo | None:
        part = self.any(parts[0], parts[-1], *parts)["id"]
        answer = self.client.delete(f"{self.at}/parts/{part}")
        return None if answer.is_error else lambda: self._restored("part", part)

    def _do_delete_character(self, parts: list[Json], cast: list[str]) -> Undo | None:
        if not cast:
            return None
        character = self.any(*cast)
        answer = self.client.delete(f"{self.at}/cast/{character}")
        return None if answer.is_error else lambda: self._restored("character", character)

    def _do_replace(self, parts: list[Json], cast: list[str]) -> Undo | None:
        words = {"find": self.any("a", "o", "Anna", "It was"), "replace": self.any("u", "Zed", " x ", "")}
        answer = self.client.post(f"{self.at}/replace", json=words)
        if answer.is_error or not answer.json()["parts"]:
            return None
        undo = self.client.post, f"{self.at}/replace/undo", answer.json()["id"]
        return self.any(
            lambda: undo[0](undo[1], params={"replacement": undo[2]}), lambda: self._restored("replacement", undo[2])
        )

    def _do_move(self, parts: list[Json], cast: list[str]) -> Undo | None:
        before, position = self.any(*range(len(parts))), self.any(*range(len(parts)))
        path = f"{self.at}/parts/{parts[before]['id']}/move"
        now = self.client.post(path, json={"position": position}).raise_for_status().json()["position"]
        return lambda: self.client.post(path, json={"position": before, "position_before": now})

    def _do_merge_character(self, parts: list[Json], cast: list[str]) -> Undo | None:
        if len(cast) < 2:
            return None
        character, into = self.chance.sample(cast, 2)
        self.client.post(f"{self.at}/cast/{character}/merge", json={"into": into}).raise_for_status()
        return lambda: self._restored("character", character)

    def _do_delete_some(self, parts: list[Json], cast: list[str]) -> Undo | None:
        ids = {"ids": [part["id"] for part in self.chance.sample(parts, min(len(parts) - 1, self.any(1, 2, 3)))]}
        answer = self.client.post(f"{self.at}/parts/delete", json=ids)
        return None if answer.is_error else lambda: self.client.post(f"{self.at}/parts/restore", json=ids)

    def _do_insert(self, parts: list[Json], cast: list[str]) -> Undo | None:
        body = {"text": "New words here.", "after": self.any(None, *(part["id"] for part in parts))}
        part = self.client.post(f"{self.at}/parts", json=body).raise_for_status().json()["id"]
        return lambda: self.client.delete(f"{self.at}/parts/{part}")

    def _do_update(self, parts: list[Json], cast: list[str]) -> Undo | None:
        answer = self.client.get(f"{self.at}/zip", params={"partial": True})
        if answer.is_error:
            assert answer.json()["error"]["code"] == "project_not_finished", answer.text
            return None
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            rows = [*csv.DictReader(io.StringIO(archive.read("manifest.csv").decode()))]
        for _ in range(self.any(1, 2, 3)):
            row = self.any(*rows)
            change = self.any("shuffle", "remove", {"text": f"{row['text']} Added."}, {"pause": 1.5}, {"scene": 1})
            if change == "shuffle":
                self.chance.shuffle(rows)
            elif change == "remove" and len(rows) > 2:
                rows.remove(row)
            elif isinstance(change, dict):
                row.update(self.any(change, {"character": self.any("Anna", "", "Zoe")}, {"chapter": "T"}))
        table = io.StringIO()
        writer = csv.DictWriter(table, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)
        update = {"file": ("lines.csv", table.getvalue())}
        return self._undoing(self.client.post(f"{self.at}/update", files=update, data={"apply": "true"}))

    def _restored(self, kind: str, item: str) -> httpx.Response:
        return self.client.post("/v1/trash/restore", json={"items": [{"kind": kind, "id": item}]})


@pytest.mark.parametrize(("seeds", "is_table"), [(range(16), False), (range(24, 44), True)])
def test_changes_undone_one_after_the_other_leave_the_project_as_it_was(
    seeds: range, is_table: bool, steered: Steer
) -> None:
    served, _ = steered()
    with served.client() as client:
        for seed in seeds:
            walk = Walk(client, seed, is_table)
            until(served, walk.project, "done")
            before, undos, made = [walk.state()], list[Undo](), list[str]()
            for _ in range(6):
                if (step := walk.step()) is not None:
                    made.append(step[0])
                    undos.append(step[1])
                    before.append(walk.state())
            for number, undo in reversed([*enumerate(undos)]):
                answer = undo()
                assert answer.is_success, (seed, made, number, answer.text)
                assert walk.state() == before[number], (seed, made, number)
