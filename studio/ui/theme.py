"""The page's theme: colours and sizes with enough contrast in light and dark mode."""

from __future__ import annotations

import gradio as gr

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


def page_theme() -> gr.themes.Base:
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
