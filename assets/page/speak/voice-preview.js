// Hear the recording of the chosen voice before it speaks.

import { previewAddress } from "../client/voices.js";
import { PreviewPlayer } from "../player/preview-player.js";

/** button: what plays and stops; fields: where the voice is chosen. */
export function offerPreview(button, fields) {
  const player = new PreviewPlayer();
  let voice = null;
  fields.addEventListener("change", ({ detail }) => {
    if (detail.values.voice === voice) return;
    voice = detail.values.voice;
    button.hidden = voice === "random"; // the seed decides how that one sounds
    player.stop();
  });
  button.addEventListener("click", () => player.toggle(button, previewAddress(fields.values.voice)));
}
