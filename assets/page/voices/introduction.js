// A voice introduces itself: a short sentence in its language, to be heard in the player.

import { requestSpeech } from "../client/speech.js";
import { sampleSentence } from "./reading-texts.js";
import { Recorded } from "../player/track.js";
import { phrase } from "../lib/phrases.js";

const FRAMES = 320; // some 15 s: a model that never ends by itself shall not babble on

/**
 * A voice's introduction, which is made when it is played; that raises AbortError after signal.abort().
 *
 * @param {{ name: string, slug: string, language: string }} voice
 * @param {AbortSignal | null} [signal]
 */
export function introduction({ name, slug, language }, signal) {
  const request = { input: sampleSentence(language), voice: slug, response_format: "wav", max_new_tokens: FRAMES };
  return new Recorded({ name: phrase("inspector.speaking", { name }), ask: () => requestSpeech(request, signal) });
}
