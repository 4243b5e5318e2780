"""The page as one Gradio app: its layout, mounted at the root of the studio's web app."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import gradio as gr
from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from starlette.middleware import Middleware

from studio.i18n import marked, page_phrases
from studio.library import Voice
from studio.library.client_files import MAX_UPLOAD
from studio.library.records import RANDOM
from studio.library.sharing import NOBODY
from studio.paths import ASSETS
from studio.services import Studio
from studio.settings import Settings, on_space, on_zero_gpu
from studio.ui import field_labels
from studio.ui.blocks import StudioBlocks
from studio.ui.bundle import STYLES, PageFiles
from studio.ui.endpoints.project_endpoints import add_project_endpoints
from studio.ui.endpoints.speech_endpoints import add_speech_endpoints
from studio.ui.endpoints.take_endpoints import add_take_endpoints
from studio.ui.endpoints.voice_endpoints import add_voice_endpoints
from studio.ui.front import FrontPage
from studio.ui.offered_routes import app_options
from studio.ui.theme import page_theme
from studio.voices.resolver import VoiceResolver

PAGE_FILES = ASSETS / "page"

_PARTIAL = re.compile(r"\{\{> ([\w/-]+)\}\}")

AREAS = ("new-voice", "voices", "longform", "compare", "history", "queue", "api", "settings")
"""The views after the Studio's own, which consists of Gradio's fields."""

STYLE_SHEETS = (
    "main",
    "shell/demo",
    "speak/cast",
    "speak/reading",
    "takes/take-list",
    "player/player-bar",
    "player/read-along",
    "api/code-dialog",
    "capture/capture-card",
    "pronunciation/pronunciation",
    *(f"{area}/{area}" for area in AREAS),
    "cast/cast-panel",
    "proof/proof",
    "trash/trash",
    "models/models",
    "shell/forced-colors",
)
"""In the order of the cascade."""

ENDPOINTS = "endpoints"
"""Path of a second Gradio page, which is never drawn, with the fields and endpoints for gradio_client. On the main
page, every browser would load their scripts and create them."""

Field = gr.Textbox | gr.Radio | gr.Dropdown | gr.Slider | gr.Number


@dataclass(frozen=True, slots=True)
class Fields:
    """The values that the page sends with Speak, in the order that speak/fields.js reads."""

    text: gr.Textbox
    source: gr.Radio
    voice: gr.Dropdown
    clip_text: gr.Textbox
    temperature: gr.Slider
    top_p: gr.Slider
    top_k: gr.Slider
    speed: gr.Slider
    cut_after: gr.Number
    seed: gr.Number

    @property
    def all(self) -> list[Field]:
        return [getattr(self, name) for name in self.__slots__]


def mount_page(app: FastAPI, studio: Studio) -> None:
    """Serve the page at "/" and its files at "/page"; every other route must be on the app already."""
    files = serve_files(app, studio)
    page = build_page(studio)
    # Enables Gradio's check that files in arguments were uploaded. No field relies on it now; a later one might.
    page.has_launched = True
    gr.mount_gradio_app(
        app, page, path="/", app_kwargs=app_options(page.calls), **gradio_options(studio.settings, files)
    )


def serve_files(app: FastAPI, studio: Studio) -> PageFiles:
    """Serve the page's scripts and styles at "/page", and redirect the page of the endpoints to the page."""
    phrases, settings, host = page_phrases(), studio.settings, studio.speech.host
    app.add_api_route(f"/{ENDPOINTS}", lambda: RedirectResponse(f"{settings.root_path}/"), include_in_schema=False)
    files = PageFiles.read(PAGE_FILES, STYLE_SHEETS, phrases.texts)
    app.mount("/page", files.app(), name="page")
    inside = Middleware(FrontPage, root_path=settings.root_path, files=files, phrases=phrases, model=lambda: host.model)
    app.user_middleware.append(inside)  # `add_middleware` would put it outside the access layers
    return files


def gradio_options(settings: Settings, files: PageFiles) -> dict[str, Any]:
    """Gradio's options for the page, mounted or launched."""
    return {
        "root_path": settings.root_path or None,
        "theme": page_theme(),
        "head": _head(settings, files),
        "favicon_path": str(PAGE_FILES / "icon.svg"),
        "footer_links": [],
        "run_history": False,
        "ssr_mode": False,
        "show_error": False,  # unexpected errors can contain paths of this machine
        "max_file_size": MAX_UPLOAD,
    }


def build_page(studio: Studio) -> StudioBlocks:
    """The page, not mounted. It shows a warning if the library does not survive a restart."""
    is_temporary = on_space() and not studio.settings.backup_dir
    with StudioBlocks(studio.client_files, title=field_labels.TITLE, analytics_enabled=False) as page:
        _html(_part("shell/header"))
        if is_temporary:
            _html(field_labels.TEMPORARY)
        with gr.Column(elem_id="area-studio", elem_classes="area"), gr.Row(elem_id="desk", equal_height=False):
            with gr.Column(scale=8, min_width=320):
                text = gr.Textbox(
                    field_labels.SAMPLE,
                    label=field_labels.SCRIPT,
                    placeholder=field_labels.SCRIPT_PLACEHOLDER,
                    lines=3,
                    max_lines=24,
                    elem_id="script",
                    autofocus=True,
                )
                _html(_part("speak/script-tools"))
                _html(_part("speak/reading"))
                _html(_part("speak/cast"))
                with gr.Row(elem_id="actions"):
                    speak = gr.Button(field_labels.SPEAK, variant="primary", elem_id="speak")
                    stop = gr.Button(field_labels.STOP, variant="stop", elem_id="stop")
                    four = gr.Button(field_labels.FOUR_TAKES, elem_id="speak-four")
                    _html(field_labels.KEPT_SEED)
                    _html(field_labels.HINTS)
                _html(_part("speak/error-card"))
                _html(_part("takes/take-list"))
            with gr.Column(scale=4, min_width=300, elem_id="side"):
                source, voice, clip_text, compare = _voice_fields(studio.voices)
                sampling = _sampling_fields()
        for area in AREAS:
            _html(_part(f"{area}/{area}"))
        _html(_part("player/player-bar"))
        _html(_part("api/code-dialog"))
        _html(_part("shell/get-s2-pro"))
        _html(_part("shell/sign-in"))
        _html(_part("models/models"))
        _html(_part("shell/shortcuts"))
        refill = gr.Button("Refill", elem_id="refill", visible="hidden")
        fields = Fields(text, source, voice, clip_text, *sampling)
        _wire(fields, {1: speak, 4: four}, compare, stop, refill)
    with page.route("Endpoints", ENDPOINTS, show_in_navbar=False):
        add_speech_endpoints(studio.speech, studio.client_files)
        add_voice_endpoints(studio)
        add_take_endpoints(studio.history, studio.client_files, studio.speech.queues.exports)
        add_project_endpoints(studio.projects)
    return page


def _voice_fields(voices: VoiceResolver) -> tuple[gr.Radio, gr.Dropdown, gr.Textbox, gr.Button]:
    source = gr.Radio(
        [(field_labels.BUNDLED, "bundled"), (field_labels.OWN_CLIP, "clip")],
        value="bundled",
        label=field_labels.SOURCE,
        elem_id="source",
    )
    shared = voices.seen_by(NOBODY)  # the same page is served to every key
    listed = shared.listed
    choices, first = [(_label(voice), voice.slug) for voice in listed], shared.first_choice(listed)
    voice = gr.Dropdown(choices, value=first, label=field_labels.VOICE, elem_id="voice", filterable=True)
    _html(field_labels.HEAR_VOICE)
    with gr.Column(elem_id="own-clip"):
        _html(field_labels.CLIP_ADVICE)
        _html(_part("capture/capture-card"))
        clip_text = gr.Textbox(
            label=field_labels.CLIP_TEXT, placeholder=field_labels.CLIP_TEXT_PLACEHOLDER, lines=2, elem_id="clip-text"
        )
        _html(_part("speak/own-clip"))
    compare = gr.Button(field_labels.COMPARE_VOICES, elem_id="compare-voices")
    return source, voice, clip_text, compare


def _sampling_fields() -> tuple[gr.Slider, gr.Slider, gr.Slider, gr.Slider, gr.Number, gr.Number]:
    _html(field_labels.PRESETS)
    speed = _slider(field_labels.SPEED, 0.5, 2.0, 1.0, 0.05)
    _html(field_labels.SAMPLING)  # not gr.Accordion, whose fields do not exist before it is opened
    with gr.Column(elem_id="sampling"):
        temperature = _slider(field_labels.TEMPERATURE, 0.0, 1.5, 0.8, 0.05)
        top_p = _slider(field_labels.TOP_P, 0.05, 1.0, 0.9, 0.05)
        top_k = _slider(field_labels.TOP_K, 1, 200, 30, 1)
        label, info = field_labels.CUT_AFTER
        cut_after = gr.Number(0, label=label, info=info, minimum=0, maximum=190, elem_id="cut-after")
        label, info = field_labels.SEED
        seed = gr.Number(
            None, label=label, info=info, placeholder=field_labels.NEW_SEED, precision=0, minimum=0, elem_id="seed"
        )
    return temperature, top_p, top_k, speed, cut_after, seed


def _label(voice: Voice) -> str:
    """The name and a short description, as in the page's own lists: "Clara · female · American"."""
    name = field_labels.RANDOM if voice.id == RANDOM else voice.name
    return " · ".join(
        part for part in (name, field_labels.SOUNDS.get(voice.gender, voice.gender), voice.accent) if part
    )


def _slider(label_and_info: tuple[str, str], low: float, high: float, value: float, step: float) -> gr.Slider:
    label, info = label_and_info
    return gr.Slider(low, high, value=value, step=step, label=label, info=info)


def _wire(fields: Fields, speak: dict[int, gr.Button], compare: gr.Button, stop: gr.Button, refill: gr.Button) -> None:
    """Connect the buttons to main.js in the browser, without a round trip. speak: buttons by number of takes."""
    for count, button in speak.items():
        button.click(
            None,
            fields.all,
            js=f"(...values) => {{ window.studio.speak(values, {count}); }}",
            api_visibility="private",
        )
    compare.click(
        None,
        fields.all,
        js="(...values) => { window.studio.compareVoices(values); }",
        api_visibility="private",
    )
    stop.click(None, js="() => { window.studio.stop(); }", api_visibility="private")
    refill.click(
        None,
        fields.all,
        fields.all,
        js="(...values) => window.studio.fields.refill(...values)",
        api_visibility="private",
    )
    gr.on(
        [field.change for field in fields.all],
        None,
        fields.all,
        js="(...values) => { window.studio.fields.changed(...values); }",
        api_visibility="private",
    )


def _html(markup: str) -> gr.HTML:
    """Markup styled only by the studio's stylesheets."""
    return gr.HTML(markup, apply_default_css=False)


def _part(name: str) -> str:
    """A markup file of the page, with {{> folder/name}} replaced by that file."""
    markup = (PAGE_FILES / f"{name}.html").read_text("utf-8")
    return _PARTIAL.sub(lambda match: _part(match[1]), markup)


def _head(settings: Settings, files: PageFiles) -> str:
    def address(name: str) -> str:
        return settings.root_path + files.address(name)

    keys = "needed" if settings.api_keys else "none"
    profile = "zero" if on_zero_gpu() else "full"
    return (
        f'<meta name="studio-keys" content="{keys}"><meta name="studio-profile" content="{profile}">'
        f'<link rel="stylesheet" href="{address(STYLES)}">'
        f'<script type="module" src="{marked("script")}"></script>'
        # Needed later, by some visitors: cached now, in case the studio is upgraded meanwhile.
        f'<link rel="prefetch" href="{address("capture/recorder-worklet.js")}">'
    )
