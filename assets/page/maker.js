// Makes one take: from a request to samples, a file and the server's word on it. It shows nothing and plays nothing.

import { askForSpeech, lostConnection, takeRecord } from "./door.js";
import { readWav } from "./wav.js";

/**
 * Ask for a take and fill it while it is made. `heard(pcm)` is awaited for every piece of Int16Array samples,
 * `kept()` is called once the file is there, whole or not. Raises Refusal, or AbortError after signal.abort().
 */
export async function makeTake(take, signal, { begun, heard, kept }) {
  const response = await askForSpeech(take.request, signal);
  take.begin(response.headers);
  begun?.();
  let ending = "stop";
  try {
    for await (const { sampleRate, pcm } of readWav(response)) {
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
  take.settle(await takeRecord(take.id));
}
