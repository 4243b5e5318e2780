"""Bundles those modules of Gradio's own front end that the page uses, some thirty scripts and twenty styles."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import gradio as gr

FRONT_END = Path(gr.__file__).parent / "templates" / "frontend"
KINDS = ("button", "column", "dropdown", "form", "html", "number", "radio", "row", "slider", "textbox")
"""The kinds of elements on the page. Gradio loads each one's modules when it draws the first of them."""

BEGINNING = ("Index-", "core-", "Blocks-")
"""How the names of the modules begin that Gradio loads one after the other at its start."""

START = re.compile(r'<script type="module" crossorigin src="\./assets/(index-[\w-]+\.js)"></script>')
"""Where Gradio's page loads its first module."""
START_STYLES = re.compile(r'<link rel="stylesheet" crossorigin href="\./assets/([\w-]+\.css)">')

PAGE_STYLES = 'document.querySelector("link[rel=stylesheet]").getAttribute("href")'
"""Takes the place of the address of Gradio's first style sheet, which its first module loads unless the page does."""

_IMPORT = re.compile(r'import(?: ([\w$]+),?)?(?:\{([^{}]*)\})?(?: ?from)?"\./([\w.-]+\.js)";')
_EXPORT = re.compile(r"export\{([^{}]*)\};?\s*$")
_OTHERS = re.compile(
    r'(?<![\w$.])(?:import(?:[{"*]|\s+[\w$]+(?:,|\s+from\b))|export(?:[{*]|\s+(?:default|const|let|var|class|function)\b))'
)
_SHEETS = re.compile(r"m\.f=(\[[^\]]*\])")
_LAZY = re.compile(r"import\(`\./([\w.-]+\.js)`\)((?:\.then\([^()]*\)|;return\{default:[\w$]+\}\})?)")
_PRELOADING = re.compile(_LAZY.pattern + r",__vite__mapDeps\(\[([\d,]*)\]\)")
_COMPONENTS = {
    kind: re.compile(
        rf"[{{,]{kind}:\{{(?:(?:base|example):[^{{}}]*?,)*component:\(\)=>[\w$]+\(\(\)=>" + _PRELOADING.pattern
    )
    for kind in KINDS
}
_GLOBAL = re.compile(r"[;,{(]([\w$]+)=(window|document)(?=[,;])")
"""The variables of the window and the document themselves, which have no value yet when they are exported."""
_RELATIVE = re.compile(r"url\((?![\"']?(?:data:|#))")


class UnknownFrontEnd(Exception):
    """Gradio's modules are not written as expected."""


@dataclass(frozen=True)
class GradioBundle:
    """What takes the place of Gradio's first module and of all style sheets."""

    script: str
    """Served two folders below the studio's own path, as the modules that are not in it are loaded from there."""
    styles: str
    """Of the start, for a place before the page's own, as Gradio would load them."""
    component_styles: str
    """For a place after the page's own."""

    @classmethod
    def read(cls, folder: Path = FRONT_END) -> GradioBundle:
        """Raises UnknownFrontEnd, OSError.

        Each module becomes a function that is called at the first import, as in a browser, and returns the exports. An
        import copies what it names. That is right because no module changes what another has imported, except for
        Svelte's variables for the window and the document, which are set before the first element is drawn.
        """
        page = (folder / "index.html").read_text("utf-8")
        start, first_sheet = START.search(page), START_STYLES.search(page)
        if start is None or first_sheet is None:
            raise UnknownFrontEnd("its page does not load one script and one style sheet")
        modules: dict[str, str] = {}
        _add(folder, start[1], modules)
        sheets = [first_sheet[1]]
        for wanted in BEGINNING:
            source, loaded = _only(_PRELOADING, wanted, modules)
            sheets += _sheets_of(source, loaded)
            _add(folder, loaded[0], modules)
        component_sheets = []
        for kind in KINDS:
            source, loaded = _only(_COMPONENTS[kind], "", modules)
            component_sheets += _sheets_of(source, loaded)
            _add(folder, loaded[0], modules)
        modules[start[1]] = modules[start[1]].replace(f"`./assets/{first_sheet[1]}`", PAGE_STYLES)
        first, last = dict.fromkeys(sheets), dict.fromkeys(component_sheets)
        return cls(
            _script(start[1], modules),
            "".join(_style(folder, name) for name in first),
            "".join(_style(folder, name) for name in last if name not in first),
        )


def _add(folder: Path, name: str, modules: dict[str, str]) -> None:
    """Read a module and those that it imports at its start."""
    if name not in modules:
        modules[name] = (folder / "assets" / name).read_text("utf-8")
        for match in _IMPORT.finditer(modules[name]):
            _add(folder, match[3], modules)


def _only(pattern: re.Pattern[str], beginning: str, modules: dict[str, str]) -> tuple[str, tuple[str, str, str]]:
    """The one place where a module with such a name is loaded: the source that loads it, and the match."""
    found = [
        (source, match)
        for source in modules.values()
        for match in pattern.findall(source)
        if match[0].startswith(beginning)
    ]
    if len({match[0] for _, match in found}) != 1:
        raise UnknownFrontEnd(f"{len(found)} modules match {pattern.pattern} {beginning}")
    return found[0]


def _sheets_of(source: str, loaded: tuple[str, str, str]) -> list[str]:
    """The style sheets that Gradio loads with this module."""
    known = _SHEETS.search(source)
    if known is None:
        raise UnknownFrontEnd("a module does not list what it loads")
    names = [name.removeprefix("./") for name in json.loads(known[1])]
    sheets = [names[int(number)] for number in loaded[2].split(",") if number]
    return [name for name in sheets if name.endswith(".css")]


def _style(folder: Path, name: str) -> str:
    style = (folder / "assets" / name).read_text("utf-8")
    if _RELATIVE.search(style):
        raise UnknownFrontEnd(f"{name} refers to other files")
    return style + "\n"


def _script(start: str, modules: dict[str, str]) -> str:
    functions = ",\n".join(f"{json.dumps(name)}(){{{_function_body(name, modules)}}}" for name in modules)
    return (
        "const studioMade={},studioUse=(name)=>studioMade[name]??=studioModules[name]()??{},"
        "studioAsset=(name)=>new URL(`../../assets/${name}`,import.meta.url).href,"
        f"studioModules={{\n{functions}\n}};\nstudioUse({json.dumps(start)});\n"
    )


def _function_body(name: str, modules: dict[str, str]) -> str:
    source = modules[name]
    known = {match[1]: match[2] for match in _GLOBAL.finditer(source)}

    def lazy(match: re.Match[str]) -> str:
        target = json.dumps(match[1])
        return (
            f"Promise.resolve({target}).then(studioUse)" if match[1] in modules else f"import(studioAsset({target}))"
        ) + match[2]

    def exported(match: re.Match[str]) -> str:
        pairs = [pair.partition(" as ") for pair in match[1].split(",") if pair]
        named = ((inside, outside or inside) for inside, _, outside in pairs)
        return f"return{{{','.join(f'{outside}:{known.get(inside, inside)}' for inside, outside in named)}}}"

    body = _PRELOADING.sub(
        lambda match: lazy(match) + (",[]" if match[1] in modules else match[0][match[0].index(",__") :]), source
    )
    body = _LAZY.sub(lazy, body)
    body = _IMPORT.sub(_imported, body)
    body = _EXPORT.sub(exported, body)
    if other := _OTHERS.search(body):
        raise UnknownFrontEnd(f"{name} has {body[other.start() : other.start() + 60]!r}")
    return body.replace("import.meta.url", f"studioAsset({json.dumps(name)})")


def _imported(match: re.Match[str]) -> str:
    whole, named, module = match[1], match[2], json.dumps(match[3])
    names = [*([f"default:{whole}"] if whole else []), *([named.replace(" as ", ":")] if named else [])]
    return f"const{{{','.join(names)}}}=studioUse({module});"
