// Shows the fixed seed of all takes as a chip beside Speak; a click removes it.

import { partsOf } from "../lib/elements.js";
import { phrase } from "../lib/phrases.js";

/** field: the seed's input, for which Gradio reports no change when cleared. */
export function showKeptSeed(chip, field, fields) {
  const words = partsOf(chip)("words");
  const newEveryTime = () => fields.fill({ seed: null });
  fields.addEventListener("change", ({ detail: { values } }) => {
    chip.hidden = !/^\d+$/.test(String(values.seed));
    words.textContent = phrase("speak.seed.kept", { seed: String(values.seed) });
    chip.title = phrase("speak.seed.kept.title");
  });
  chip.addEventListener("click", newEveryTime);
  field.addEventListener("input", () => field.value === "" && newEveryTime());
}
