"""The page as one Gradio app: its layout, and its mounting at the root of the studio's web app."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import gradio as gr
from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from studio.settings import Settings
from studio.speech import SpeechService
from studio.ui import words
from studio.ui.doors import add_client_doors
from studio.ui.theme import page_theme
from studio.ui.voice_doors import add_voice_doors

PAGE_FILES = Path(__file__).resolve().parents[2] / "assets" / "page"
LARGEST_UPLOAD = "25mb"

RAW_MICROPHONE = """<script>(() => {
  // The browser's noise and echo filters bend a voice: record without them.
  const devices = navigator.mediaDevices;
  if (!devices) return;
  const ask = devices.getUserMedia.bind(devices);
  const raw = { echoCancellation: false, noiseSuppression: false, autoGainControl: false, channelCount: 1 };
  devices.getUserMedia = (wish) => ask(wish?.audio === true ? { ...wish, audio: raw } : wish);
})()</script>"""


Field = gr.Textbox | gr.Radio | gr.Dropdown | gr.Audio | gr.Slider | gr.Number | gr.Checkbox


@dataclass(frozen=True, slots=True)
class Fields:
    """What the page sends with Speak, in the order that fields.js reads."""

    text: gr.Textbox
    source: gr.Radio
    voice: gr.Dropdown
    clip: gr.Audio
    clip_text: gr.Textbox
    temperature: gr.Slider
    top_p: gr.Slider
    top_k: gr.Slider
    speed: gr.Slider
    cut_after: gr.Number
    seed: gr.Number
    keep_seed: gr.Checkbox

    @property
    def all(self) -> list[Field]:
        return [getattr(self, name) for name in self.__slots__]


def mount_page(app: FastAPI, speech: SpeechService, settings: Settings) -> None:
    """Serve the page at "/" and its files at "/page"; every other route must be on the app already."""
    app.mount("/page", StaticFiles(directory=PAGE_FILES), name="page")
    gr.mount_gradio_app(
        app,
        build_page(speech),
        path="/",
        root_path=settings.root_path or None,
        theme=page_theme(),
        head=_head(settings.root_path),
        favicon_path=str(PAGE_FILES / "icon.svg"),
        footer_links=[],
        run_history=False,
        ssr_mode=False,
        show_error=True,
        max_file_size=LARGEST_UPLOAD,
    )


def build_page(speech: SpeechService) -> gr.Blocks:
    """The page alone, unmounted."""
    with gr.Blocks(title=words.TITLE, analytics_enabled=False, delete_cache=(3600, 86400)) as page:
        _html(_part("header"))
        with gr.Column(elem_id="area-studio", elem_classes="area"):
            with gr.Row(elem_id="desk", equal_height=False):
                with gr.Column(scale=8, min_width=320):
                    text = gr.Textbox(
                        words.SAMPLE,
                        label=words.SCRIPT,
                        placeholder=words.SCRIPT_PLACEHOLDER,
                        lines=6,
                        max_lines=24,
                        elem_id="script",
                        autofocus=True,
                    )
                    _html(_part("script"))
                    with gr.Row(elem_id="actions"):
                        speak = gr.Button("Speak", variant="primary", elem_id="speak")
                        stop = gr.Button("Stop", variant="stop", elem_id="stop")
                        four = gr.Button("4 takes", elem_id="speak-four")
                        _html(words.HINTS)
                    _html(_part("card"))
                with gr.Column(scale=4, min_width=300, elem_id="side"):
                    source, voice, clip, clip_text, every = _voice_fields(speech)
                    sampling = _sampling_fields()
            _html(_part("takes"))
        for area in ("new-voice", "voices", "queue", "api"):
            _html(_part(area))
        _html(_part("dock"))
        _html(_part("code"))
        refill = gr.Button("Refill", elem_id="refill", visible="hidden")
        fields = Fields(text, source, voice, clip, clip_text, *sampling)
        _wire(fields, {1: speak, 4: four}, every, stop, refill)
        add_client_doors(speech)
        add_voice_doors(speech)
    return page


def _voice_fields(speech: SpeechService) -> tuple[gr.Radio, gr.Dropdown, gr.Audio, gr.Textbox, gr.Button]:
    choices = [(voice.name, voice.id) for voice in speech.voices.listed]
    source = gr.Radio(
        [(words.BUNDLED, "bundled"), (words.OWN_CLIP, "clip")],
        value="bundled",
        label=words.SOURCE,
        elem_id="source",
    )
    voice = gr.Dropdown(
        choices, value=choices[0][1], label=words.VOICE, info=words.VOICE_INFO, elem_id="voice", filterable=True
    )
    every = gr.Button("Hear the script in every voice", elem_id="every-voice")
    with gr.Column(elem_id="own-clip"):
        clip = gr.Audio(
            label=words.CLIP,
            sources=["microphone", "upload"],
            type="filepath",
            format=None,
            elem_id="clip",
            buttons=["download"],
            waveform_options=gr.WaveformOptions(
                waveform_color="#a8a29e", waveform_progress_color="#0f766e", sample_rate=44100
            ),
        )
        _html(words.CLIP_ADVICE)
        clip_text = gr.Textbox(
            label=words.CLIP_TEXT, placeholder=words.CLIP_TEXT_PLACEHOLDER, lines=2, elem_id="clip-text"
        )
        _html(_part("own-clip"))
    return source, voice, clip, clip_text, every


def _sampling_fields() -> tuple[gr.Slider, gr.Slider, gr.Slider, gr.Slider, gr.Number, gr.Number, gr.Checkbox]:
    _html(words.PRESETS)
    _html(words.SAMPLING)  # not gr.Accordion: its fields do not exist, and cannot be filled, before it is opened
    with gr.Column(elem_id="sampling"):
        temperature = _slider(words.TEMPERATURE, 0.0, 1.5, 0.8, 0.05)
        top_p = _slider(words.TOP_P, 0.05, 1.0, 0.9, 0.05)
        top_k = _slider(words.TOP_K, 1, 200, 30, 1)
        speed = _slider(words.SPEED, 0.5, 2.0, 1.0, 0.05)
        label, info = words.CUT_AFTER
        cut_after = gr.Number(0, label=label, info=info, minimum=0, maximum=190, elem_id="cut-after")
        label, info = words.SEED
        seed = gr.Number(0, label=label, info=info, precision=0, minimum=0, elem_id="seed")
        keep_seed = gr.Checkbox(False, label=words.KEEP_SEED, elem_id="keep-seed")
    return temperature, top_p, top_k, speed, cut_after, seed, keep_seed


def _slider(label_and_info: tuple[str, str], low: float, high: float, value: float, step: float) -> gr.Slider:
    label, info = label_and_info
    return gr.Slider(low, high, value=value, step=step, label=label, info=info)


def _wire(fields: Fields, speak: dict[int, gr.Button], every: gr.Button, stop: gr.Button, refill: gr.Button) -> None:
    """Presses go to studio.js in the browser; none makes a round trip through Gradio. speak: by number of takes."""
    for count, button in speak.items():
        button.click(
            None,
            fields.all,
            js=f"(...values) => {{ window.studio.speak(values, {count}); }}",
            api_visibility="private",
        )
    every.click(
        None,
        fields.all,
        js="(...values) => { window.studio.audition(values); }",
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
    """Markup of ours, styled by studio.css alone."""
    return gr.HTML(markup, apply_default_css=False)


def _part(name: str) -> str:
    return (PAGE_FILES / f"{name}.html").read_text("utf-8")


def _head(root_path: str) -> str:
    return (
        f'<link rel="stylesheet" href="{root_path}/page/studio.css">'
        f'<link rel="stylesheet" href="{root_path}/page/new-voice.css">'
        f'<link rel="stylesheet" href="{root_path}/page/voices.css">'
        f"{RAW_MICROPHONE}"
        f'<script type="module" src="{root_path}/page/studio.js"></script>'
    )
