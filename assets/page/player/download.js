// The button that downloads a take: its menu has the formats.

import { element } from "../lib/elements.js";
import { offerMenu } from "../lib/menu.js";
import { phrase } from "../lib/phrases.js";

/** @type {Record<string, string>} */
const NAMES = { wav: "WAV", mp3: "MP3", flac: "FLAC", opus: "Opus", aac: "AAC" };
export const FORMATS = Object.keys(NAMES);

/**
 * Have a button offer formats, those that there are when it is pressed.
 *
 * @template {HTMLElement} T
 * @param {T} button
 * @param {() => string[]} formats
 * @param {(format: string) => unknown} save
 */
export function offerFormats(button, formats, save) {
  return offerMenu(button, () => formats().map((format) => ({ words: NAMES[format], run: () => save(format) })));
}

/** Such a button in words. @param {() => string[]} formats @param {(format: string) => unknown} save */
export function downloadButton(formats, save) {
  return offerFormats(element("button", { type: "button", className: "take-save", textContent: phrase("takes.save") }), formats, save);
}
