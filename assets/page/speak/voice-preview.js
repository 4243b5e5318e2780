// Hear the recording of the chosen voice before it speaks.

import { previewAddress } from "../client/voices.js";
import { Listener } from "../lib/sound-button.js";

/** button: what plays and stops; fields: where the voice is chosen. */
export function offerPreview(button, fields) {
  const listener = new Listener();
  let voice = null;
  fields.addEventListener("change", ({ detail }) => {
    if (detail.values.voice === voice) return;
    voice = detail.values.voice;
    button.hidden = voice === "random"; // the seed decides how that one sounds
    listener.stop();
  });
  button.addEventListener("click", () => listener.toggle(button, previewAddress(fields.values.voice)));
}
