// Requests speech through the HTTP API, or through Gradio's where only that gets a GPU.

import { address } from "./address.js";
import { isThroughGradio } from "./host.js";
import { untilFree } from "./places.js";
import { lostConnection, Refusal, refusalOf } from "./refusal.js";
import { json, readJson, send } from "./requests.js";
import { speakThroughGradio } from "./gradio-speech.js";

/**
 * Send the request as soon as this caller has a place; the response streams the audio, through Gradio always as WAV.
 * Throws Refusal, or AbortError after signal.abort().
 *
 * @param {Record<string, any>} request
 * @param {AbortSignal | null} [signal]
 */
export async function requestSpeech(request, signal) {
  if (isThroughGradio) return speakThroughGradio(request, signal);
  return untilFree(() => postForSpeech("/v1/audio/speech", request, signal), signal);
}

/**
 * Continue a take that a limit cut off. Returns the whole take, as requestSpeech does.
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
    response = await send(address(path), { ...json("POST", request), signal });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw lostConnection();
  }
  if (!response.ok) throw await refusalOf(response);
  return response;
}

/**
 * Return how a text would be read: {text, changed}; null if the studio refuses or is not connected.
 *
 * @param {{ input: string, voice?: string, cast?: Record<string, string> }} request
 */
export async function readingOf(request) {
  try {
    return await readJson("/v1/audio/speech/reading", json("POST", request));
  } catch (problem) {
    if (problem instanceof Refusal) return null; // no connection: Speak will report it
    throw problem;
  }
}
