// A voice introduces itself: a short sentence in its language, to be heard in the player.

import { requestSpeech } from "../client/speech.js";
import { sampleSentence } from "./reading-texts.js";
import { readWav } from "../lib/wav.js";
import { Recorded } from "../player/track.js";

const FRAMES = 320; // some 15 s: a model that never ends by itself shall not babble on

/** voice: {name, slug, language}. Gives a track. Raises Refusal, and AbortError after signal.abort(). */
export async function introduce({ name, slug, language }, signal) {
  const request = { input: sampleSentence(language), voice: slug, response_format: "wav", max_new_tokens: FRAMES };
  const response = await requestSpeech(request, signal);
  const track = new Recorded({ name: `${name} speaking` });
  for await (const { sampleRate, pcm } of readWav(response)) track.add(sampleRate, pcm);
  track.close();
  return track;
}
