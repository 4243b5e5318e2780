// The seed that all takes are spoken with, as a chip beside Speak, which a press takes off.

import { partsOf } from "../lib/elements.js";
import { phrase } from "../lib/phrases.js";

/** field: the seed's own, which says nothing when it is made blank. */
export function showKeptSeed(chip, field, fields) {
  const words = partsOf(chip)("words");
  const newEveryTime = () => fields.fill({ seed: null });
  fields.addEventListener("change", ({ detail: { values } }) => {
    chip.hidden = !Number.isInteger(values.seed);
    words.textContent = phrase("speak.seed.kept", { seed: String(values.seed) });
    chip.title = phrase("speak.seed.kept.title");
  });
  chip.addEventListener("click", newEveryTime);
  field.addEventListener("input", () => field.value === "" && newEveryTime());
}
