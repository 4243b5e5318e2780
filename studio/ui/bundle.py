"""Bundles the page's scripts, one file for each language, and its styles, at addresses that change with the content."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import posixpath
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router

from studio.i18n import ENGLISH
from studio.ui.gradio_bundle import GradioBundle

SCRIPT, STYLES, GRADIO = "page.js", "page.css", "gradio.js"
"""The page's script in English (`script_in` names the others), all styles, and Gradio's own front end."""
LAYOUT = "layout.json"
"""The views of the page, and its style sheets in the order of the cascade."""
PHRASES = "words/en.json"
"""Imported by the scripts; replaced by the phrases of the language."""
_TEXTS = '"the texts of the language"'

KINDS = {
    ".js": "text/javascript",
    ".map": "application/json",
    ".json": "application/json",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
"""Media types of the files served; the markup is part of the page itself."""

CACHED = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}

_IMPORT = re.compile(r'^import \{([^{}]*)\} from "(\.[^"\n]+)";$', re.MULTILINE)
_DATA = re.compile(r'^import (\w+) from "(\.[^"]+\.json)" with \{ type: "json" \};$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function\*?|class|const) (\w+)", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


class UnbundledModule(Exception):
    """A script imports or exports in an unsupported way."""


@dataclass(frozen=True)
class PageFiles:
    """All files of the page as they were when the studio started, so that versions never mix."""

    digest: str
    """Digest of all files, part of every address, so that browsers may cache them indefinitely."""
    files: dict[str, bytes]

    @classmethod
    def read(cls, folder: Path, phrases: Mapping[str, Mapping[str, object]] | None = None) -> PageFiles:
        """phrases: texts of the scripts by language. Raises UnbundledModule, UnknownFrontEnd, OSError."""
        paths = sorted(path for path in folder.rglob("*.*") if path.suffix in KINDS)
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        sources = {name: data.decode() for name, data in files.items() if name.endswith((".js", ".json"))}
        script, source_map = bundled(sources | {PHRASES: _TEXTS}, "main.js")
        files[f"{SCRIPT}.map"] = source_map.encode()
        for language, texts in (phrases or {ENGLISH: {}}).items():
            files[script_in(language)] = script.replace(_TEXTS, json.dumps(texts, ensure_ascii=False)).encode()
        gradio = GradioBundle.read()
        styles = "".join(files[f"{name}.css"].decode() for name in json.loads(files[LAYOUT])["styles"])
        files[STYLES] = f"{gradio.styles}{styles}{gradio.component_styles}".encode()
        files[GRADIO] = gradio.script.encode()
        digest = hashlib.sha256(b"".join(name.encode() + b"\0" + data + b"\0" for name, data in files.items()))
        return cls(digest.hexdigest()[:16], files)

    def address(self, name: str) -> str:
        """The address of a file, below the studio's own path."""
        return f"/page/{self.digest}/{name}"

    def app(self) -> Router:
        """An app that serves the files; mount it at "/page"."""
        pool = ThreadPoolExecutor(1, "page-files")  # beside the rest of the start: 0.3 s
        compressed = {name: pool.submit(gzip.compress, data, mtime=0) for name, data in self.files.items()}
        pool.shutdown(wait=False)

        async def serve(request: Request) -> Response:
            name = request.path_params["name"]
            if name not in self.files:
                return PlainTextResponse("Not Found", 404)
            kind = KINDS[PurePosixPath(name).suffix]
            if "gzip" in request.headers.get("accept-encoding", ""):
                body = await asyncio.shield(asyncio.wrap_future(compressed[name]))
                return Response(body, headers=CACHED | {"Content-Encoding": "gzip"}, media_type=kind)
            return Response(self.files[name], headers=CACHED, media_type=kind)

        return Router([Route(f"/{self.digest}/{{name:path}}", serve)])


def script_in(language: str) -> str:
    """The name of the script with a language's phrases."""
    return SCRIPT if language == ENGLISH else f"page.{language}.js"


def bundled(sources: dict[str, str], start: str) -> tuple[str, str]:
    """Bundle a module and its imports. Returns one script and its source map.

    Each module becomes a function that is called immediately and returns the module's exports, placed after its
    imports. Its names stay private, and line breaks are kept for the map. Raises UnbundledModule.
    """
    order = _in_order(sources, start)
    lines: list[str] = []
    sections = []
    for number, name in enumerate(order):
        body = _as_function_body(name, sources, order)
        mapped = {"version": 3, "sources": [name], "names": [], "mappings": "AAAA" + ";AACA" * (len(body) - 1)}
        lines.append(f"const module{number} = (() => {{ // {name}")
        sections.append({"offset": {"line": len(lines), "column": 0}, "map": mapped})
        names = ", ".join(match[2] for match in _EXPORT.finditer(sources[name]))
        lines += [*body, f"return {{ {names} }};", "})();"]
    lines.append(f"//# sourceMappingURL={SCRIPT}.map\n")
    return "\n".join(lines), json.dumps({"version": 3, "file": SCRIPT, "sections": sections})


def _in_order(sources: dict[str, str], start: str) -> list[str]:
    """All modules, each after its imports."""
    order: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise UnbundledModule(f"These scripts import each other: {' -> '.join([*path, name])}.")
        if name in order:
            return
        if name not in sources:
            raise UnbundledModule(f"{path[-1]} imports {name}, which does not exist.")
        for match in _IMPORT.finditer(sources[name]):
            visit(_resolved(match[2], name), (*path, name))
        order.append(name)

    visit(start, ())
    return order


def _as_function_body(name: str, sources: dict[str, str], order: list[str]) -> list[str]:
    def imported(match: re.Match[str]) -> str:
        names = match[1].replace(" as ", ": ")  # keeps line breaks
        return f"const {{{names}}} = module{order.index(_resolved(match[2], name))};"

    def data(match: re.Match[str]) -> str:
        target = _resolved(match[2], name)
        if target not in sources:
            raise UnbundledModule(f"{name} imports {target}, which does not exist.")
        value = sources[target].replace("\n", " ")  # in one line, as the import is, for the map
        return f"const {match[1]} = {value};"

    body = _DATA.sub(data, _IMPORT.sub(imported, sources[name]))
    body = _EXPORT.sub(r"\1 \2", body)
    if line := _OTHER.search(body):
        rule = 'only import { … } from "./…"; and export before the declaration of a function, class or const'
        raise UnbundledModule(f"{name} has the line {line[0]!r}. The bundle supports {rule}.")
    return body.replace("import.meta.url", f'new URL("{name}", import.meta.url).href').rstrip("\n").split("\n")


def _resolved(target: str, name: str) -> str:
    """The path of the module that ``name`` imports as ``target``."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
