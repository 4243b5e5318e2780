"""A line chart as SVG, in colours that are readable on a light page and on a dark one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 40, 48
"""Margins of the drawing, in pixels."""
INK = "#777d87"
COLOURS = ("#1f83d6", "#d9730d", "#2f9e5b")


def lines(title: str, across: str, steps: Sequence[int], series: Mapping[str, Sequence[float]], top: float) -> str:
    """Draw each series over the same steps, evenly spaced, on an axis from 0 to ``top`` in per cent."""
    if len(steps) < 2 or any(len(values) != len(steps) for values in series.values()) or len(series) > len(COLOURS):
        raise ValueError(f"{len(steps)} steps and series of {[len(values) for values in series.values()]} values")
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(number: int) -> float:
        return round(LEFT + wide * number / (len(steps) - 1), 1)

    def y(value: float) -> float:
        return round(TOP + high * (1 - value / top), 1)

    drawn = [_text(LEFT, 18, title, "start", "bold")]
    for mark in range(0, round(top * 100) + 1, 20):
        at = y(mark / 100)
        drawn.append(
            f'<path d="M{LEFT} {at}H{WIDTH - RIGHT}" stroke="{INK}" stroke-opacity="{0.7 if mark == 100 else 0.2}"/>'
        )
        drawn.append(_text(LEFT - 8, at + 4, f"{mark} %", "end"))
    drawn += [_text(x(number), HEIGHT - BOTTOM + 18, str(step), "middle") for number, step in enumerate(steps)]
    drawn.append(_text(LEFT + wide / 2, HEIGHT - 8, across, "middle"))
    for number, (name, values) in enumerate(series.items()):
        points = [(x(at), y(value)) for at, value in enumerate(values)]
        way = " ".join(f"{across},{down}" for across, down in points)
        drawn.append(f'<polyline points="{way}" fill="none" stroke="{COLOURS[number]}" stroke-width="2"/>')
        drawn += [f'<circle cx="{across}" cy="{down}" r="3" fill="{COLOURS[number]}"/>' for across, down in points]
        drawn.append(_text(WIDTH - RIGHT, HEIGHT - BOTTOM - 12 - 18 * number, name, "end", "bold", COLOURS[number]))
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="sans-serif" font-size="12">'
    return "\n".join([head, f"<title>{escape(title)}</title>", *drawn, "</svg>", ""])


def _text(x: float, y: float, words: str, anchor: str, weight: str = "normal", colour: str = INK) -> str:
    place = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}"'
    return f'<text {place} font-weight="{weight}" fill="{colour}">{escape(words)}</text>'
