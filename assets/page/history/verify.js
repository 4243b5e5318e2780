// Checks whether a take can be reproduced sample by sample, without user interface or playback.

import { soundOf } from "../client/sound.js";
import { requestSpeech } from "../client/speech.js";

/** Generate a stored take again without storing the result, and compare both. Throws Refusal. */
export async function repeatsExactly(take) {
  await take.whole();
  await take.load();
  const kept = await take.pcm();
  const response = await requestSpeech({ ...take.repeat, store: false });
  let at = 0;
  for await (const { sampleRate, pcm } of soundOf(response)) {
    if (sampleRate !== take.sampleRate || pcm.some((value, i) => value !== kept[at + i])) return false; // cancels the request
    at += pcm.length;
  }
  return at === kept.length;
}
