// Hear the recording of the chosen voice before it speaks.

import { previewAddress } from "./library.js";

const [LISTEN, STOP, NONE] = ["Listen to its recording", "Stop listening", "This voice has no recording to listen to."];

/** button: what plays and stops; fields: where the voice is chosen. */
export function offerPreview(button, fields) {
  const sound = new Audio();
  const show = () => (button.textContent = sound.paused ? LISTEN : STOP);
  for (const type of ["play", "pause", "ended"]) sound.addEventListener(type, show);
  let voice = null;
  fields.addEventListener("change", ({ detail }) => {
    if (detail.values.voice === voice) return;
    voice = detail.values.voice;
    button.hidden = voice === "random"; // the seed decides how that one sounds
    sound.pause();
    show();
  });
  button.addEventListener("click", async () => {
    if (!sound.paused) return sound.pause();
    sound.src = previewAddress(fields.values.voice);
    try {
      await sound.play();
    } catch (problem) {
      if (problem.name !== "AbortError") button.textContent = NONE; // stopped before it began: nothing is wrong
    }
  });
}
