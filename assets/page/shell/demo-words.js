// The texts about a demo model and the needs of S2 Pro. It shows nothing.

import { LANGUAGE, listed, phrase } from "../lib/phrases.js";

const GIB = 2 ** 30;
const [ENOUGH, WITH_FOUR_ROWS] = [22, 14]; // GiB of a GPU, as its driver counts: an engine with the usual settings, one with STUDIO_MAX_ROWS=4

const LANGUAGES = new Intl.DisplayNames(LANGUAGE, { type: "language" });

/**
 * One line about the model. languages: ISO 639-1 codes of those that it speaks; none: it does not say.
 *
 * @param {string[]} languages
 */
export function demoLine(languages) {
  if (!languages.length) return phrase("shell.demo.line");
  return phrase("shell.demo.line.only", { languages: listed(languages.map((code) => LANGUAGES.of(code) ?? code)) });
}

/**
 * What it is, and what S2 Pro is beside it.
 *
 * @param {string} model
 * @param {number} parameters
 */
export function modelWords(model, parameters) {
  return phrase("shell.demo.model", { model, millions: Math.round(parameters / 1e6) });
}

/**
 * Whether S2 Pro fits the studio's GPU. gpu: as /health has it, null where there is none; isLent: the host lends one for each take.
 *
 * @param {{ name: string, memory_bytes: number } | null} gpu
 * @param {boolean} [isLent]
 */
export function gpuWords(gpu, isLent = false) {
  if (!gpu) return phrase("shell.gpu.none");
  const gib = Math.round(gpu.memory_bytes / GIB);
  const verdict = gib >= ENOUGH ? "shell.gpu.enough" : gib >= WITH_FOUR_ROWS ? "shell.gpu.enoughWithFour" : "shell.gpu.little";
  const card = phrase(isLent ? "shell.gpu.lent" : "shell.gpu.size", { name: gpu.name, gib });
  return phrase("shell.gpu", { gpu: card, verdict: phrase(verdict) });
}
