// From the page's fields to the body of POST /v1/audio/speech. It sends nothing.

import { address } from "../client/address.js";
import { Refusal } from "../client/refusal.js";
import { connected } from "../client/requests.js";
import { numeral, phrase } from "../lib/phrases.js";

const LARGEST_CLIP = 10 * 1024 * 1024; // bytes; base64 makes a third more of it
const LETTERS_A_SECOND = 15; // of speech, in Latin script
const CJK = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/gu;

/**
 * A guess, in seconds, from the number of letters; tags in [brackets] are not spoken.
 *
 * @param {string} text
 */
export function expectedSeconds(text) {
  const spoken = text.replace(/\[[^\]]*\]/g, "");
  const dense = (spoken.match(CJK) ?? []).length;
  return (spoken.length - dense) / LETTERS_A_SECOND + dense / 4.5;
}

/**
 * @param {string} what
 * @param {string} why
 * @param {string} advice
 */
function missing(what, why, advice) {
  return new Refusal({ what, why, advice });
}

/** The last clip, so that using it again does not fetch it again. @type {{ path: string, blob: Blob, url: string | null } | null} */
let last = null;

/**
 * The bytes of a file that Gradio holds. Raises Refusal.
 *
 * @param {{ path: string, url?: string }} file
 */
export async function clipBlob(file) {
  return (await clipOf(file)).blob;
}

/**
 * @param {{ path: string, url?: string }} file
 */
async function clipOf(file) {
  if (last?.path === file.path) return last;
  const blob = await connected(async () => {
    const response = await fetch(file.url ?? address(`/gradio_api/file=${file.path}`));
    if (!response.ok) throw missing(phrase("speak.clip.notRead"), phrase("speak.clip.gone"), phrase("speak.clip.again"));
    return response.blob();
  });
  if (blob.size > LARGEST_CLIP) {
    throw missing(
      phrase("speak.clip.large"),
      phrase("speak.clip.large.why", { size: numeral(blob.size / 2 ** 20, 1), most: LARGEST_CLIP / 2 ** 20 }),
      phrase("speak.clip.shorter"),
    );
  }
  last = { path: file.path, blob, url: null };
  return last;
}

/**
 * @param {{ path: string, url?: string }} file
 */
async function clipUrl(file) {
  const clip = await clipOf(file); // another one may be the last by the time that this one is read
  clip.url ??= await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(missing(phrase("speak.clip.notRead"), String(reader.error), phrase("speak.clip.again")));
    reader.readAsDataURL(clip.blob);
  });
  return clip.url;
}

/**
 * fields as the page has them; frameRate in frames a second. Raises Refusal when something is missing.
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
  if (Number.isInteger(fields.seed)) request.seed = fields.seed;
  if (fields.source !== "clip") return { ...request, voice: fields.voice };
  if (!fields.clip) {
    throw missing(phrase("speak.clip.none"), phrase("speak.clip.none.why"), phrase("speak.clip.none.advice"));
  }
  if (!fields.clipText.trim()) {
    throw missing(phrase("speak.clip.noWords"), phrase("speak.clip.noWords.why"), phrase("speak.clip.noWords.advice"));
  }
  return { ...request, ref_audio: await clipUrl(fields.clip), ref_text: fields.clipText };
}
