// Makes one take: from a request to samples, a file and the server's word on it. It shows nothing and plays nothing.

import { lostConnection, Refusal } from "../client/refusal.js";
import { soundOf } from "../client/sound.js";
import { requestRest, requestSpeech } from "../client/speech.js";
import { takeRecord } from "../client/takes.js";
import { phrase } from "../lib/phrases.js";

/**
 * Ask for a take and fill it while it is made. `heard(pcm)` is awaited for every piece of Int16Array samples,
 * `kept()` is called once the file is there, whole or not. Raises Refusal, also of an answer without any sound,
 * or AbortError after signal.abort().
 */
export async function generateTake(take, signal, { begun = () => {}, heard, kept }) {
  const response = await (take.continues ? requestRest(take.continues, signal) : requestSpeech(take.request, signal));
  take.begin(response.headers);
  begun();
  let ending = "stop";
  try {
    for await (const { sampleRate, pcm } of soundOf(response)) {
      take.add(sampleRate, pcm);
      await heard?.(pcm);
    }
  } catch (problem) {
    ending = problem.name === "AbortError" ? "stopped" : "broken";
    throw ending === "stopped" ? problem : lostConnection();
  } finally {
    if (take.samples) {
      take.close(ending);
      kept?.();
    }
  }
  if (!take.samples) throw nothing();
  take.settle(await takeRecord(take.id));
}

function nothing() {
  return new Refusal({ what: phrase("refusal.silent"), why: phrase("refusal.silent.why"), advice: phrase("refusal.input") });
}
