// Builds the body of POST /v1/audio/speech from the page's fields. Sends nothing.

import { Refusal } from "../client/refusal.js";
import { phrase } from "../lib/phrases.js";

const LETTERS_A_SECOND = 15; // in Latin script
const CJK = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/gu;

/**
 * Estimate the length of speech in seconds from the number of letters; tags in [brackets] are not spoken.
 *
 * @param {string} text
 */
export function expectedSeconds(text) {
  const spoken = text.replace(/\[[^[\]]*\]/g, "");
  const dense = (spoken.match(CJK) ?? []).length;
  return (spoken.length - dense) / LETTERS_A_SECOND + dense / 4.5;
}

/**
 * @param {string} what
 * @param {string} why
 * @param {string} advice
 * @param {string} [field] selects the one to fill in
 */
function missing(what, why, advice, field = "") {
  return new Refusal({ what, why, advice, field });
}

/** By clip, so that a reused clip is not read again. @type {WeakMap<Blob, Promise<string>>} */
const urls = new WeakMap();

/**
 * Return a clip as a data: URL. Throws Refusal.
 *
 * @param {Blob} clip
 */
function clipUrl(clip) {
  const known = urls.get(clip);
  if (known) return known;
  /** @type {Promise<string>} */
  const url = new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(missing(phrase("speak.clip.notRead"), String(reader.error), phrase("speak.clip.again")));
    reader.readAsDataURL(clip);
  });
  urls.set(clip, url);
  return url;
}

/**
 * Return the body for the page's fields; frameRate in frames per second. Throws Refusal if something is missing.
 *
 * @param {Record<string, any>} fields
 * @param {number} frameRate
 */
export async function buildRequest(fields, frameRate) {
  if (!fields.text.trim()) {
    throw missing(phrase("speak.nothing"), phrase("speak.nothing.why"), phrase("speak.nothing.advice"));
  }
  /** @type {Record<string, any>} */
  const request = {
    input: fields.text,
    response_format: "wav",
    temperature: fields.temperature,
    top_p: fields.topP,
    top_k: fields.topK,
  };
  if (fields.speed !== 1) request.speed = fields.speed;
  if (fields.cutAfter > 0) request.max_new_tokens = Math.max(1, Math.round(fields.cutAfter * frameRate));
  if (Number.isInteger(fields.seed) || typeof fields.seed === "string") request.seed = fields.seed;
  else if (typeof fields.seed === "number") throw missing(phrase("refusal.other"), phrase("speak.seed.notWhole", { seed: String(fields.seed) }), phrase("refusal.seed"));
  if (fields.source !== "clip") return { ...request, voice: fields.voice };
  if (!fields.clip) {
    throw missing(phrase("speak.clip.none"), phrase("speak.clip.none.why"), phrase("speak.clip.none.advice"));
  }
  if (!fields.clipText.trim()) {
    throw missing(phrase("speak.clip.noWords"), phrase("speak.clip.noWords.why"), phrase("speak.clip.noWords.advice"), "#clip-text textarea");
  }
  return { ...request, ref_audio: await clipUrl(fields.clip), ref_text: fields.clipText };
}
