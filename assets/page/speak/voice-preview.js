// Hear the recording of the chosen voice before it speaks.

import { previewAddress } from "../client/voices.js";
import { Recorded } from "../player/track.js";

/** button: what plays and pauses; fields: where the voice is chosen; playButtons, errorCard: the page's. */
export function offerPreview(button, { fields, playButtons, errorCard }) {
  fields.addEventListener("change", ({ detail }) => (button.hidden = detail.values.voice === "random")); // the seed decides how that one sounds
  button.addEventListener("click", () => {
    const { voice } = fields.values;
    const name = fields.voices.find(({ id }) => id === voice)?.name ?? voice;
    errorCard.attempt(() => playButtons.press(button, new Recorded({ name: `${name}’s recording`, source: previewAddress(voice), fileName: `${voice}.wav` })));
  });
}
