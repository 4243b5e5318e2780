// Describes the chosen voice in a line and plays its recording as a preview.

import { descriptionOf, previewAddress } from "../client/voices.js";
import { Recorded } from "../player/track.js";
import { phrase } from "../lib/phrases.js";

/** buttons: each plays and pauses; fields: the page's fields, with the chosen voice; playButtons, errorCard: the page's. */
export function offerPreview(buttons, { fields, playButtons, errorCard }) {
  fields.addEventListener("change", ({ detail }) => buttons.forEach((button) => (button.hidden = detail.values.voice === "random"))); // its sound depends on the seed
  const about = document.getElementById("about-voice");
  const usual = about?.textContent ?? "";
  fields.addEventListener("change", ({ detail }) => {
    const chosen = fields.voices.find(({ id }) => id === detail.values.voice);
    if (about) about.textContent = chosen ? descriptionOf(chosen) : usual;
  });
  const play = (button) => {
    const { voice } = fields.values;
    const name = fields.voices.find(({ id }) => id === voice)?.name ?? voice;
    errorCard.attempt(() => playButtons.press(button, new Recorded({ name: phrase("speak.voice.recording", { name }), source: previewAddress(voice), fileName: `${voice}.wav` })));
  };
  for (const button of buttons) button.addEventListener("click", () => play(button));
}
