// Whether a take can be made again, sample by sample. It shows nothing and plays nothing.

import { soundOf } from "../client/sound.js";
import { requestSpeech } from "../client/speech.js";

/** Speak a kept take's request again, without keeping it, and compare. Raises Refusal. */
export async function repeatsExactly(take) {
  await take.whole();
  await take.load();
  const kept = await take.pcm();
  const response = await requestSpeech({ ...take.repeat, store: false });
  let at = 0;
  for await (const { sampleRate, pcm } of soundOf(response)) {
    if (sampleRate !== take.sampleRate || pcm.some((value, i) => value !== kept[at + i])) return false; // leaving ends the request
    at += pcm.length;
  }
  return at === kept.length;
}
