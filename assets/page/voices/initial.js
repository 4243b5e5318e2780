// The coloured initial by which a voice is recognised.

import { element } from "../lib/elements.js";

const COLOURS = ["#0f766e", "#1d4ed8", "#6d28d9", "#be185d", "#b45309", "#15803d", "#0369a1", "#86198f", "#be123c", "#4d7c0f", "#475569", "#c2410c"];
const DARK = "#1c1917";

/** A voice's own colour, or one derived from its name, as #rrggbb. */
export function colourOf({ name, colour }) {
  if (colour) return colour;
  let drawn = 0;
  for (const letter of name) drawn = (31 * drawn + letter.codePointAt(0)) % 65521;
  return COLOURS[drawn % COLOURS.length];
}

/** Black or white, whichever is more legible on #rrggbb, with a contrast of at least 4.5 (WCAG 2). */
export function inkOn(colour) {
  const light = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  const luminance = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2];
  return luminance > 0.183 ? DARK : "#ffffff";
}

/** The first letters of the first and last words of a voice's name, in its colour, or that of a character's mark. Hidden from screen readers: show the name beside it. */
export function initialOf(voice, mark = null) {
  const words = voice.name.trim().split(/\s+/);
  const letters = [...new Set([words[0], words.at(-1)])].map((word) => [...new Intl.Segmenter().segment(word)][0]?.segment ?? "");
  const badge = element("span", { className: "voice-initial", textContent: letters.join("").toLocaleUpperCase() });
  badge.setAttribute("aria-hidden", "true");
  if (mark !== null) badge.dataset.mark = mark;
  if (mark !== null) return badge;
  const colour = colourOf(voice);
  badge.style.background = colour;
  badge.style.color = inkOn(colour);
  return badge;
}
