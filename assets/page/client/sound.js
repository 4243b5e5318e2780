// Reads audio responses, while they arrive or as a whole. Sends no requests.

import { lostConnection } from "./refusal.js";
import { connected } from "./requests.js";
import { readWav } from "../lib/wav.js";

/**
 * Yield {sampleRate, pcm: Int16Array} as they arrive. Throws Refusal if the response is cut off, AbortError on abort.
 *
 * @param {Response} response
 */
export async function* soundOf(response) {
  try {
    yield* readWav(response);
  } catch (problem) {
    throw problem.name === "AbortError" ? problem : lostConnection();
  }
}

/**
 * Return the whole response as a Blob. Throws Refusal.
 *
 * @param {Response} response
 */
export const fileOf = (response) => connected(() => response.blob());
