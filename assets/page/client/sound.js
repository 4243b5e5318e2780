// An answer that is sound: read as it comes, or kept as a file. It asks for none.

import { lostConnection } from "./refusal.js";
import { connected } from "./requests.js";
import { readWav } from "../lib/wav.js";

/**
 * {sampleRate, pcm: Int16Array} each, as they come. Raises Refusal when the answer breaks off, AbortError after signal.abort().
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
 * All of it. Raises Refusal.
 *
 * @param {Response} response
 */
export const fileOf = (response) => connected(() => response.blob());
