// Words of a dictionary spoken as they stand there, to hear in the player whether they are right.

import { requestSpeech } from "../client/speech.js";
import { Recorded } from "../player/track.js";

const FRAMES = 220; // some 10 s: a model that never ends by itself shall not babble on

/** Gives hear(button, words, shelf); `voice()` gives the speaking voice for a dictionary that does not belong to a voice. */
export function hearWords(voice, playButtons) {
  return async (button, words, shelf) => {
    if (!words.trim()) return;
    const request = { input: words, voice: shelf.voice ?? voice(), dictionary: false, response_format: "wav", max_new_tokens: FRAMES, store: false };
    await playButtons.press(button, new Recorded({ name: `“${words}”`, ask: () => requestSpeech(request) }));
  };
}
