// The seed that all takes are spoken with, as a chip beside Speak, which a press takes off.

import { partsOf } from "../lib/elements.js";

/** field: the seed's own, which says nothing when it is made blank. */
export function showKeptSeed(chip, field, fields) {
  const words = partsOf(chip)("words");
  const newEveryTime = () => fields.fill({ seed: null });
  fields.addEventListener("change", ({ detail: { values } }) => {
    chip.hidden = !Number.isInteger(values.seed);
    words.textContent = `Seed ${values.seed} kept`;
    chip.title = "Every take is spoken with this seed. Press to have a new one every time.";
  });
  chip.addEventListener("click", newEveryTime);
  field.addEventListener("input", () => field.value === "" && newEveryTime());
}
