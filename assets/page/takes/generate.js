// Generates one take: from a request to samples, a file and the server's record. Neither shows nor plays it.

import { places } from "../client/places.js";
import { Refusal } from "../client/refusal.js";
import { soundOf } from "../client/sound.js";
import { requestRest, requestSpeech } from "../client/speech.js";
import { takeRecord } from "../client/takes.js";
import { phrase } from "../lib/phrases.js";

/**
 * Request a take and fill it as it is generated. `heard(pcm)` is awaited for every piece of Int16Array samples,
 * `kept()` is called once the file exists, complete or not. Throws Refusal, also for a response without audio,
 * or AbortError after signal.abort() or if the take was stopped elsewhere, such as in the queue.
 */
export async function generateTake(take, signal, listeners) {
  const leave = await places.enter(signal);
  try {
    await fill(take, signal, listeners);
  } finally {
    leave();
  }
}

async function fill(take, signal, { begun = () => {}, heard, kept }) {
  const response = await responseTo(take, signal);
  take.begin(response.headers);
  begun();
  let ending = "stop";
  try {
    for await (const { sampleRate, pcm } of soundOf(response)) {
      take.add(sampleRate, pcm);
      await heard?.(pcm);
    }
  } catch (problem) {
    const error = problem.name === "AbortError" || !(await isStopped(take)) ? problem : stoppedElsewhere();
    ending = error.name === "AbortError" ? "stopped" : "broken";
    throw error;
  } finally {
    if (take.samples) {
      take.close(ending);
      kept?.();
    }
  }
  if (!take.samples) throw nothing();
  take.settle(await takeRecord(take.id));
}

async function responseTo(take, signal) {
  try {
    return await (take.continues ? requestRest(take.continues, signal) : requestSpeech(take.request, signal));
  } catch (problem) {
    throw problem.code === "request_cancelled" ? stoppedElsewhere() : problem;
  }
}

/** Whether the take was cancelled on the server: the audio just breaks off here. */
async function isStopped({ id }) {
  try {
    return (await takeRecord(id))?.state === "cancelled";
  } catch (problem) {
    if (!(problem instanceof Refusal)) throw problem;
    return false; // no response: the connection is lost
  }
}

const stoppedElsewhere = () => new DOMException("stopped elsewhere", "AbortError");

function nothing() {
  return new Refusal({ what: phrase("refusal.silent"), why: phrase("refusal.silent.why"), advice: phrase("refusal.input") });
}
