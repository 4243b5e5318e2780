"""The page's scripts and styles, one file of each, at addresses that change with their content."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router

SCRIPT, STYLES = "page.js", "page.css"

KINDS = {
    ".js": "text/javascript",
    ".map": "application/json",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
"""Of the files that are served; the markup goes into the page itself."""

CACHED = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]+)";$', re.MULTILINE)
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
    def read(cls, folder: Path, styles: tuple[str, ...], start: str = "main.js") -> PageFiles:
        """Raises UnbundledModule, and OSError where a file cannot be read."""
        found = sorted(each for each in folder.rglob("*.*") if each.suffix in KINDS)
        files = {each.relative_to(folder).as_posix(): each.read_bytes() for each in found}
        sources = {name: data.decode() for name, data in files.items() if name.endswith(".js")}
        script, source_map = bundled(sources, start)
        files[SCRIPT], files[f"{SCRIPT}.map"] = script.encode(), source_map.encode()
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


def bundled(sources: dict[str, str], start: str) -> tuple[str, str]:
    """One script of a module and all that it imports, by path, and its source map.

    Each module becomes a function that is called at once and gives what the module exports, after those that it
    imports: its names stay its own, and every line stays a line, which makes the map. Raises UnbundledModule.
    """
    order = _in_order(sources, start)
    lines: list[str] = []
    sections = []
    for number, name in enumerate(order):
        body = _as_function_body(name, sources[name], order)
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


def _as_function_body(name: str, source: str, order: list[str]) -> list[str]:
    def imported(found: re.Match[str]) -> str:
        names = found[1].replace(" as ", ": ")  # which may go over several lines: so they stay
        return f"const {{{names}}} = module{order.index(_resolved(found[2], name))};"

    body = _IMPORT.sub(imported, source)
    body = _EXPORT.sub(r"\1 \2", body)
    if other := _OTHER.search(body):
        raise UnbundledModule(
            f'{name} has the line {other[0]!r}: only import {{ … }} from "./…"; and export of a function, class or '
            "const where it is declared can be bundled."
        )
    return body.replace("import.meta.url", f'new URL("{name}", import.meta.url).href').rstrip("\n").split("\n")


def _resolved(target: str, name: str) -> str:
    """The path of what ``name`` imports as ``target``."""
    parts: list[str] = []
    for part in (PurePosixPath(name).parent / target).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)
