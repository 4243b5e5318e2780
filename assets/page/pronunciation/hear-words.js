// Words of a dictionary spoken as they stand there, to hear whether they are right.

import { requestSpeech } from "../client/speech.js";
import { readWav, wavFile } from "../lib/wav.js";
import { PreviewPlayer } from "../player/preview-player.js";

const FRAMES = 220; // some 10 s: a model that never ends by itself shall not babble on

/** Gives hear(button, words, shelf); `voice()` is who speaks where the dictionary is no voice's own. */
export function hearWords(voice) {
  const player = new PreviewPlayer();
  let address = "";
  return async (button, words, shelf) => {
    if (button.dataset.playing || !words.trim()) return player.stop();
    const request = { input: words, voice: shelf.voice ?? voice(), dictionary: false, response_format: "wav", max_new_tokens: FRAMES, store: false };
    const pieces = [];
    let rate = 0;
    for await (const { sampleRate, pcm } of readWav(await requestSpeech(request))) {
      rate = sampleRate;
      pieces.push(pcm);
    }
    URL.revokeObjectURL(address);
    address = URL.createObjectURL(wavFile(pieces, rate));
    await player.toggle(button, address);
  };
}
