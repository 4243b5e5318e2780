// A voice's introduction: a short sentence in its language, played in the player.

import { requestSpeech } from "../client/speech.js";
import { sampleSentence } from "./reading-texts.js";
import { Recorded } from "../player/track.js";
import { phrase } from "../lib/phrases.js";

const FRAMES = 320; // some 15 s, in case the model does not stop by itself

/**
 * A voice's introduction, generated when it is played; playing it throws AbortError after signal.abort().
 *
 * @param {{ name: string, slug: string, language: string }} voice
 * @param {AbortSignal | null} [signal]
 */
export function introduction({ name, slug, language }, signal) {
  const request = { input: sampleSentence(language), voice: slug, response_format: "wav", max_new_tokens: FRAMES };
  return new Recorded({ name: phrase("inspector.speaking", { name }), ask: () => requestSpeech(request, signal) });
}
