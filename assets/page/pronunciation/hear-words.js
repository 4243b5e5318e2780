// Plays a dictionary's words in the player, spoken exactly as written, to check them.

import { requestSpeech } from "../client/speech.js";
import { Recorded } from "../player/track.js";

const FRAMES = 220; // about 10 s, in case the model does not stop by itself

/** Returns hear(button, words, shelf); `voice()` returns the voice to use for dictionaries that do not belong to a voice. */
export function hearWords(voice, playButtons) {
  return async (button, words, shelf) => {
    if (!words.trim()) return;
    const request = { input: words, voice: shelf.voice ?? voice(), dictionary: false, response_format: "wav", max_new_tokens: FRAMES, store: false };
    await playButtons.press(button, new Recorded({ name: `“${words}”`, ask: () => requestSpeech(request) }));
  };
}
