"""The page as one Gradio app: its layout, mounted at the root of the studio's web app."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import gradio as gr
from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from starlette.middleware import Middleware

from studio import ASSETS
from studio.i18n import ENGLISH, marked, page_phrases
from studio.library import Voice
from studio.library.checks import NOBODY
from studio.library.client_files import MAX_UPLOAD
from studio.library.records import RANDOM
from studio.services import Studio
from studio.settings import Settings, on_space
from studio.ui.add_endpoints import add_endpoints
from studio.ui.blocks import StudioBlocks
from studio.ui.bundle import LAYOUT, PageFiles
from studio.ui.front import TITLE, FrontPage
from studio.ui.offered_routes import app_options
from studio.ui.speech_endpoints import SpeechEndpoints, TakeEndpoints
from studio.ui.voice_endpoints import VoiceEndpoints
from studio.voices.resolver import VoiceResolver

PAGE_FILES = ASSETS / "page"

_PARTIAL = re.compile(r"\{\{> ([\w/-]+)\}\}")

AREAS: list[str] = json.loads((PAGE_FILES / LAYOUT).read_text("utf-8"))["areas"]
"""The views after the Studio's own, which consists of Gradio's fields."""

SAMPLE = (
    "Hello! I am a voice that is made while you listen. Change these words, choose who speaks, and press Speak again."
)
"""The first text, which is English in every language of the page, because the bundled model speaks only English."""

ENDPOINTS = "endpoints"
"""Path of a second Gradio page, which is never drawn, with the fields and endpoints for gradio_client. On the main
page, every browser would load their scripts and create them."""

Field = gr.Textbox | gr.Radio | gr.Dropdown | gr.Slider | gr.Number

TEXT_FONT = ("ui-sans-serif", "system-ui", "sans-serif")
"""The machine's own: the two fonts that came with Gradio were 200 kB, a third of the page."""
CODE_FONT = ("ui-monospace", "monospace")

COLOURS = {
    "body_background_fill": ("#faf9f7", "#101312"),
    "body_text_color": ("#1c1917", "#f2f1ef"),
    "body_text_color_subdued": ("#57534e", "#b3aea8"),
    "background_fill_primary": ("#ffffff", "#181c1b"),
    "background_fill_secondary": ("#faf9f7", "#101312"),
    "border_color_primary": ("#e7e5e4", "#2b312f"),
    "block_label_text_color": ("#292524", "#e7e5e4"),
    "block_title_text_color": ("#292524", "#e7e5e4"),
    "block_info_text_color": ("#57534e", "#b3aea8"),
    "input_background_fill": ("#ffffff", "#181c1b"),
    "input_border_color": ("#e7e5e4", "#2b312f"),
    "input_border_color_focus": ("#0f766e", "#2dd4bf"),
    "input_placeholder_color": ("#78716c", "#a8a29e"),
    "slider_color": ("#0f766e", "#2dd4bf"),
}
"""Colours in light and in dark mode."""


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
    options = gradio_options(studio.settings, files)
    # Gradio makes a folder, which is not used, in /tmp/gradio, which may be another user's.
    with TemporaryDirectory() as gr.routes.DEFAULT_TEMP_DIR:
        gr.mount_gradio_app(app, page, path="/", app_kwargs=app_options(page.calls), **options)


def serve_files(app: FastAPI, studio: Studio) -> PageFiles:
    """Serve the page's scripts and styles at "/page", and redirect the page of the endpoints to the page."""
    phrases, settings, host = page_phrases(), studio.settings, studio.speech.host
    app.add_api_route(f"/{ENDPOINTS}", lambda: RedirectResponse(f"{settings.root_path}/"), include_in_schema=False)
    files = PageFiles.read(PAGE_FILES, phrases.texts)
    app.mount("/page", files.app(), name="page")
    middleware = Middleware(
        FrontPage, root_path=settings.root_path, files=files, phrases=phrases, model=lambda: host.model
    )
    app.user_middleware.append(middleware)  # `add_middleware` would put it outside the access layers
    return files


def gradio_options(settings: Settings, files: PageFiles, speaks_through_gradio: bool = False) -> dict[str, Any]:
    """Gradio's options for the page, mounted or launched.

    ``speaks_through_gradio``: only Gradio's requests can generate speech, so the page offers nothing that needs others.
    """
    return {
        "root_path": settings.root_path or None,
        "theme": _theme(),
        "head": _head(settings, "gradio" if speaks_through_gradio else "full"),
        "favicon_path": str(PAGE_FILES / "icon.svg"),
        "footer_links": [],
        "run_history": False,
        "ssr_mode": False,
        "show_error": False,  # unexpected errors can contain paths of this machine
        "max_file_size": MAX_UPLOAD,
    }


def build_page(studio: Studio) -> StudioBlocks:
    """The page, not mounted. It shows a warning if the library does not survive a restart."""
    with StudioBlocks(studio.client_files, title=TITLE, analytics_enabled=False) as page:
        _part("shell/header")
        if studio.temporary:
            _part("shell/full")
        elif on_space() and not studio.settings.backup_dir:
            _part("shell/temporary")
        with gr.Column(elem_id="area-studio", elem_classes="area"), gr.Row(elem_id="desk", equal_height=False):
            with gr.Column(scale=8, min_width=320):
                text = gr.Textbox(
                    SAMPLE,
                    label=marked("speak.script"),
                    placeholder=marked("speak.script.placeholder"),
                    lines=3,
                    max_lines=24,
                    elem_id="script",
                    autofocus=True,
                )
                _part("speak/script-tools")
                _part("speak/reading")
                _part("speak/cast")
                with gr.Row(elem_id="actions"):
                    speak = gr.Button(marked("speak.speak"), variant="primary", elem_id="speak")
                    stop = gr.Button(marked("speak.stop"), variant="stop", elem_id="stop")
                    four = gr.Button(marked("speak.four"), elem_id="speak-four")
                    _part("speak/kept-seed")
                    _part("speak/hints")
                _part("speak/error-card")
                _part("takes/take-list")
            with gr.Column(scale=4, min_width=300, elem_id="side"):
                _part("shell/demo-line")
                source, voice, clip_text, compare = _voice_fields(studio.voices)
                sampling = _sampling_fields()
        for area in AREAS:
            _part(f"{area}/{area}")
        _part("player/player-bar")
        _part("api/code-dialog")
        _part("shell/better-model")
        _part("shell/sign-in")
        _part("models/models")
        _part("shell/shortcuts")
        refill = gr.Button("Refill", elem_id="refill", visible="hidden")
        fields = Fields(text, source, voice, clip_text, *sampling)
        _wire(fields, {1: speak, 4: four}, compare, stop, refill)
    with page.route("Endpoints", ENDPOINTS, show_in_navbar=False):
        add_endpoints(
            SpeechEndpoints(studio.speech, studio.client_files),
            VoiceEndpoints(studio),
            TakeEndpoints(studio.history, studio.client_files, studio.speech.queues.exports),
            *(made() for made in studio.additions.gradio_endpoints),
        )
    page.is_complete = True
    return page


def _voice_fields(voices: VoiceResolver) -> tuple[gr.Radio, gr.Dropdown, gr.Textbox, gr.Button]:
    source = gr.Radio(
        [(marked("speak.source.library"), "bundled"), (marked("speak.source.clip"), "clip")],
        value="bundled",
        label=marked("speak.source"),
        elem_id="source",
    )
    resolver = voices.seen_by(NOBODY)  # the same page is served to every key
    available = resolver.listed
    choices, first = [(_label(voice), voice.slug) for voice in available], resolver.first_choice(available)
    voice = gr.Dropdown(choices, value=first, label=marked("speak.voice"), elem_id="voice", filterable=True)
    _part("speak/voice-preview")
    with gr.Column(elem_id="own-clip"):
        _part("speak/clip-advice")
        _part("capture/capture-card")
        label, placeholder = marked("speak.clip.words"), marked("speak.clip.words.placeholder")
        clip_text = gr.Textbox(label=label, placeholder=placeholder, lines=2, elem_id="clip-text")
        _part("speak/own-clip")
    compare = gr.Button(marked("speak.compare"), elem_id="compare-voices")
    return source, voice, clip_text, compare


def _sampling_fields() -> tuple[gr.Slider, gr.Slider, gr.Slider, gr.Slider, gr.Number, gr.Number]:
    _part("speak/presets")
    speed = _slider("speak.speed", 0.5, 2.0, 1.0, 0.05)
    _part("speak/sampling-toggle")  # not gr.Accordion, whose fields do not exist before it is opened
    with gr.Column(elem_id="sampling"):
        temperature = _slider("speak.temperature", 0.0, 1.5, 0.8, 0.05)
        top_p = _slider("speak.topP", 0.05, 1.0, 0.9, 0.05)
        top_k = _slider("speak.topK", 1, 200, 30, 1)
        label, info = _label_and_info("speak.cutAfter")
        cut_after = gr.Number(0, label=label, info=info, minimum=0, maximum=190, elem_id="cut-after")
        label, info = _label_and_info("speak.seed")
        new = marked("speak.seed.new")
        seed = gr.Number(None, label=label, info=info, placeholder=new, precision=0, minimum=0, elem_id="seed")
    return temperature, top_p, top_k, speed, cut_after, seed


def _label(voice: Voice) -> str:
    """The name and a short description, as in the page's own lists: "Clara · female · American"."""
    name = marked("speak.voice.random") if voice.id == RANDOM else voice.name
    sounds = marked(f"voice.sounds.{voice.gender}") if voice.gender else ""
    accent = marked(key) if (key := f"word.{voice.accent}") in page_phrases().texts[ENGLISH] else voice.accent
    return " · ".join(filter(None, (name, sounds, accent)))


def _label_and_info(key: str) -> tuple[str, str]:
    return marked(key), marked(f"{key}.info")


def _slider(key: str, low: float, high: float, value: float, step: float) -> gr.Slider:
    label, info = _label_and_info(key)
    return gr.Slider(low, high, value=value, step=step, label=label, info=info)


def _wire(fields: Fields, speak: dict[int, gr.Button], compare: gr.Button, stop: gr.Button, refill: gr.Button) -> None:
    """Connect the buttons to main.js in the browser, without a round trip. speak: buttons by number of takes."""
    for count, button in speak.items():
        js = f"(...values) => {{ window.studio.speak(values, {count}); }}"
        button.click(None, fields.all, js=js, api_visibility="private")
    js = "(...values) => { window.studio.compareVoices(values); }"
    compare.click(None, fields.all, js=js, api_visibility="private")
    stop.click(None, js="() => { window.studio.stop(); }", api_visibility="private")
    js = "(...values) => window.studio.fields.refill(...values)"
    refill.click(None, fields.all, fields.all, js=js, api_visibility="private")
    js = "(...values) => { window.studio.fields.changed(...values); }"
    gr.on([field.change for field in fields.all], None, fields.all, js=js, api_visibility="private")


def _part(name: str) -> gr.HTML:
    """A markup file of the page, styled only by the studio's stylesheets."""
    return gr.HTML(_markup(name), apply_default_css=False)


def _markup(name: str) -> str:
    """A markup file of the page, with {{> folder/name}} replaced by that file."""
    markup = (PAGE_FILES / f"{name}.html").read_text("utf-8")
    return _PARTIAL.sub(lambda match: _markup(match[1]), markup)


def _head(settings: Settings, profile: str) -> str:
    keys = "needed" if settings.api_keys else "none"
    return (
        f'<meta name="studio-keys" content="{keys}"><meta name="studio-profile" content="{profile}">'
        f'<script type="module" src="{marked("script")}"></script>'
    )


def _theme() -> gr.themes.Base:
    """Warm paper and dark teal."""
    light = {name: colours[0] for name, colours in COLOURS.items()}
    dark = {f"{name}_dark": colours[1] for name, colours in COLOURS.items()}
    return gr.themes.Base(
        primary_hue="teal", neutral_hue="stone", text_size="lg", radius_size="lg", font=TEXT_FONT, font_mono=CODE_FONT
    ).set(
        **light,
        **dark,
        block_background_fill="transparent",
        block_background_fill_dark="transparent",
        block_border_width="0px",
        block_border_width_dark="0px",
        block_padding="0px",
        block_shadow="none",
        block_label_background_fill="transparent",
        block_label_background_fill_dark="transparent",
        block_label_border_width="0px",
        block_title_text_weight="600",
        block_title_text_size="*text_md",
        block_info_text_size="*text_sm",
        input_border_width="1px",
        input_shadow_focus="none",
        button_primary_background_fill="*primary_700",
        button_primary_background_fill_hover="*primary_800",
        button_primary_text_color="#ffffff",
        panel_border_width="0px",
        layout_gap="1.1rem",
    )
