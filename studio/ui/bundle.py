"""The page's scripts and styles, one file of each a language, at addresses that change with their content."""

from __future__ import annotations

import gzip
import hashlib
import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router

from studio.i18n import ENGLISH

SCRIPT, STYLES = "page.js", "page.css"
"""The script in English; see script_in for the others."""
PHRASES = "words/en.json"
"""Imported by the scripts; in the script of another language, what that language has stands in its place."""

KINDS = {
    ".js": "text/javascript",
    ".map": "application/json",
    ".json": "application/json",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
"""Of the files that are served; the markup goes into the page itself."""

CACHED = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]+)";$', re.MULTILINE)
_DATA = re.compile(r'^import (\w+) from "(\.[^"]+\.json)" with \{ type: "json" \};$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function\*?|class|const) (\w+)", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


class UnbundledModule(Exception):
    """A script imports or exports in a way that the bundle does not know."""


@dataclass(frozen=True)
class PageFiles:
    """All files of the page as they were when the studio started, so that no old one ever meets a new one."""

    digest: str
    """Of all of them: a part of every address, so that a browser may keep what it has for ever."""
    files: dict[str, bytes]

    @classmethod
    def read(
        cls, folder: Path, styles: tuple[str, ...], phrases: Mapping[str, Mapping[str, object]] | None = None
    ) -> PageFiles:
        """phrases: what the scripts say, by language. Raises UnbundledModule, and OSError for an unreadable file."""
        found = sorted(each for each in folder.rglob("*.*") if each.suffix in KINDS)
        files = {each.relative_to(folder).as_posix(): each.read_bytes() for each in found}
        sources = {name: data.decode() for name, data in files.items() if name.endswith(".js")}
        for language, said in (phrases or {ENGLISH: {}}).items():
            script, source_map = bundled(sources | {PHRASES: json.dumps(said, ensure_ascii=False)}, "main.js")
            files[script_in(language)], files[f"{SCRIPT}.map"] = script.encode(), source_map.encode()
        files[STYLES] = b"".join(files[f"{name}.css"] for name in styles)
        digest = hashlib.sha256(b"".join(name.encode() + b"\0" + data + b"\0" for name, data in files.items()))
        return cls(digest.hexdigest()[:16], files)

    def address(self, name: str) -> str:
        """Of one file, below the studio's own path."""
        return f"/page/{self.digest}/{name}"

    def app(self) -> Router:
        """Serves the files; mount it at "/page"."""
        packed = {name: gzip.compress(data, mtime=0) for name, data in self.files.items()}

        async def serve(request: Request) -> Response:
            name = request.path_params["name"]
            if name not in self.files:
                return PlainTextResponse("Not Found", 404)
            kind = KINDS[PurePosixPath(name).suffix]
            if "gzip" in request.headers.get("accept-encoding", ""):
                return Response(packed[name], headers=CACHED | {"Content-Encoding": "gzip"}, media_type=kind)
            return Response(self.files[name], headers=CACHED, media_type=kind)

        return Router([Route(f"/{self.digest}/{{name:path}}", serve)])


def script_in(language: str) -> str:
    """The name of the script that says everything in a language."""
    return SCRIPT if language == ENGLISH else f"page.{language}.js"


def bundled(sources: dict[str, str], start: str) -> tuple[str, str]:
    """One script of a module and all that it imports, by path, and its source map.

    Each module becomes a function that is called at once and gives what the module exports, after those that it
    imports: its names stay its own, and every line stays a line, which makes the map. Raises UnbundledModule.
    """
    order = _in_order(sources, start)
    lines: list[str] = []
    sections = []
    for number, name in enumerate(order):
        body = _as_function_body(name, sources, order)
        mapped = {"version": 3, "sources": [name], "names": [], "mappings": "AAAA" + ";AACA" * (len(body) - 1)}
        lines.append(f"const module{number} = (() => {{ // {name}")
        sections.append({"offset": {"line": len(lines), "column": 0}, "map": mapped})
        exported = ", ".join(found[2] for found in _EXPORT.finditer(sources[name]))
        lines += [*body, f"return {{ {exported} }};", "})();"]
    lines.append(f"//# sourceMappingURL={SCRIPT}.map\n")
    return "\n".join(lines), json.dumps({"version": 3, "file": SCRIPT, "sections": sections})


def _in_order(sources: dict[str, str], start: str) -> list[str]:
    """Every module after those that it imports."""
    order: list[str] = []

    def visit(name: str, way: tuple[str, ...]) -> None:
        if name in way:
            raise UnbundledModule(f"These scripts import each other: {' -> '.join([*way, name])}.")
        if name in order:
            return
        if name not in sources:
            raise UnbundledModule(f"{way[-1]} imports {name}, which is not there.")
        for found in _IMPORT.finditer(sources[name]):
            visit(_resolved(found[2], name), (*way, name))
        order.append(name)

    visit(start, ())
    return order


def _as_function_body(name: str, sources: dict[str, str], order: list[str]) -> list[str]:
    def imported(found: re.Match[str]) -> str:
        names = found[1].replace(" as ", ": ")  # which may go over several lines: so they stay
        return f"const {{{names}}} = module{order.index(_resolved(found[2], name))};"

    def data(found: re.Match[str]) -> str:
        return f"const {found[1]} = {sources[_resolved(found[2], name)]};"

    body = _DATA.sub(data, _IMPORT.sub(imported, sources[name]))
    body = _EXPORT.sub(r"\1 \2", body)
    if other := _OTHER.search(body):
        raise UnbundledModule(
            f'{name} has the line {other[0]!r}: only import {{ … }} from "./…"; and export of a function, class or '
            "const where it is declared can be bundled."
        )
    return body.replace("import.meta.url", f'new URL("{name}", import.meta.url).href').rstrip("\n").split("\n")


def _resolved(target: str, name: str) -> str:
    """The path of what ``name`` imports as ``target``."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
