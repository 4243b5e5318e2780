// A voice introduces itself: a short sentence in its language, as a file to hear.

import { requestSpeech } from "../client/speech.js";
import { sampleSentence } from "./reading-texts.js";
import { readWav, wavFile } from "../lib/wav.js";

const FRAMES = 320; // some 15 s: a model that never ends by itself shall not babble on

/** A WAV blob. Raises Refusal, and AbortError after signal.abort(). */
export async function introduce(voice, language, signal) {
  const request = { input: sampleSentence(language), voice, response_format: "wav", max_new_tokens: FRAMES };
  const response = await requestSpeech(request, signal);
  const pieces = [];
  let rate = 0;
  for await (const { sampleRate, pcm } of readWav(response)) {
    rate = sampleRate;
    pieces.push(pcm);
  }
  return wavFile(pieces, rate);
}
