// From the page's fields to the body of POST /v1/audio/speech. It sends nothing.

import { address } from "../client/address.js";
import { Refusal } from "../client/refusal.js";
import { connected } from "../client/requests.js";

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
    if (!response.ok) throw missing("Your clip could not be read.", "The studio no longer has the file.", "Record or upload it again.");
    return response.blob();
  });
  if (blob.size > LARGEST_CLIP) {
    throw missing(
      "Your clip is too large.",
      `It is ${(blob.size / 2 ** 20).toFixed(1)} MB; at most ${LARGEST_CLIP / 2 ** 20} MB can be sent.`,
      "Use a shorter clip: 10 to 30 seconds is best.",
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
    reader.onerror = () => reject(missing("Your clip could not be read.", String(reader.error), "Record or upload it again."));
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
    throw missing("There is nothing to say.", "The script is empty.", "Write a sentence, then press Speak.");
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
    throw missing("There is no clip yet.", "You chose your own clip, but none is recorded or uploaded.", "Record or upload 10 to 30 seconds of one person speaking.");
  }
  if (!fields.clipText.trim()) {
    throw missing("Your clip's words are missing.", "The model needs the clip and its words together.", "Write down exactly what is said in your clip.");
  }
  return { ...request, ref_audio: await clipUrl(fields.clip), ref_text: fields.clipText };
}
