// Asks for speech: over the HTTP API, or over Gradio's where that is the only way to a GPU.

import { address } from "./address.js";
import { isZeroGpu } from "./host.js";
import { untilFree } from "./places.js";
import { lostConnection, Refusal, refusalOf } from "./refusal.js";
import { json, readJson, send } from "./requests.js";
import { speakThroughGradio } from "./zerogpu.js";

/**
 * POST the request, once this caller has a place; the answer is a streaming WAV. Raises Refusal, or AbortError after
 * signal.abort().
 *
 * @param {Record<string, any>} request
 * @param {AbortSignal | null} [signal]
 */
export async function requestSpeech(request, signal) {
  if (isZeroGpu) return speakThroughGradio(request, signal);
  return untilFree(() => postForSpeech("/v1/audio/speech", request, signal), signal);
}

/**
 * Have the server go on with a take that a limit cut: the whole one, as the answer of requestSpeech.
 *
 * @param {string} id
 * @param {AbortSignal | null} [signal]
 */
export function requestRest(id, signal) {
  return untilFree(() => postForSpeech(`/v1/takes/${encodeURIComponent(id)}/continue`, { response_format: "wav" }, signal), signal);
}

/**
 * @param {string} path
 * @param {Record<string, any>} request
 * @param {AbortSignal | null} [signal]
 */
async function postForSpeech(path, request, signal) {
  let response;
  try {
    response = await send(address(path), {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(request),
      signal,
    });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw lostConnection();
  }
  if (!response.ok) throw await refusalOf(response);
  return response;
}

/**
 * How a text would be read: {text, changed}; null while the studio cannot say.
 *
 * @param {{ input: string, voice?: string, cast?: Record<string, string> }} request
 */
export async function readingOf(request) {
  try {
    return await readJson("/v1/audio/speech/reading", json("POST", request));
  } catch (problem) {
    if (problem instanceof Refusal) return null; // no connection: Speak will tell
    throw problem;
  }
}
