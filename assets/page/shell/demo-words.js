// Texts about a demo model, without user interface.

import { LANGUAGE, listed, phrase } from "../lib/phrases.js";

const LANGUAGES = new Intl.DisplayNames(LANGUAGE, { type: "language" });

/**
 * One line about the model. languages: ISO 639-1 codes of those it speaks; empty: not stated.
 *
 * @param {string[]} languages
 */
export function demoLine(languages) {
  if (!languages.length) return phrase("shell.demo.line");
  return phrase("shell.demo.line.only", { languages: listed(languages.map((code) => LANGUAGES.of(code) ?? code)) });
}

/**
 * A description of the model, and how to run a studio with a larger one.
 *
 * @param {string} model
 * @param {number} parameters
 */
export function modelWords(model, parameters) {
  return phrase("shell.betterModel.own", { model, millions: Math.round(parameters / 1e6) });
}
