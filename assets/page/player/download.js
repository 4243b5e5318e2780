// The download button of a take, with a menu of formats.

import { element } from "../lib/elements.js";
import { offerMenu } from "../lib/menu.js";
import { phrase } from "../lib/phrases.js";

/** @type {Record<string, string>} */
const NAMES = { wav: "WAV", mp3: "MP3", flac: "FLAC", opus: "Opus", aac: "AAC" };
export const FORMATS = Object.keys(NAMES);

/**
 * Have a button open a menu of the formats available when it is clicked.
 *
 * @template {HTMLElement} T
 * @param {T} button
 * @param {() => string[]} formats
 * @param {(format: string) => unknown} save
 */
export function offerFormats(button, formats, save) {
  return offerMenu(button, () => formats().map((format) => ({ words: NAMES[format], run: () => save(format) })));
}

/** A button with a text label. @param {() => string[]} formats @param {(format: string) => unknown} save */
export function downloadButton(formats, save) {
  return offerFormats(element("button", { type: "button", className: "take-save", textContent: phrase("takes.save") }), formats, save);
}
