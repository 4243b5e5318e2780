// The loaded model's usual sampling, and named deliveries around it, each marked while the fields have its values.

import { phrase } from "../lib/phrases.js";

/** @type {Record<string, number>} */
export const usual = { temperature: 0.8, topP: 0.9, topK: 30 }; // S2's, as in studio/ui/page.py, until the model is known

/** @param {{ temperature: number, top_p: number, top_k: number }} sampling of the loaded model, as /health returns it */
export function setUsual({ temperature, top_p: topP, top_k: topK }) {
  Object.assign(usual, { temperature, topP, topK });
}

/** The deliveries by name, for the loaded model: natural is its usual sampling. */
export function presets() {
  const { temperature, topP, topK } = usual;
  const near = (/** @type {number} */ value) => Number(value.toFixed(2));
  return {
    steady: { temperature: near(temperature - 0.2), topP: near(topP - 0.1), topK: Math.round((topK * 2) / 3) },
    natural: { ...usual },
    lively: { temperature: near(temperature + 0.2), topP: near(Math.min(topP + 0.05, 1)), topK: 2 * topK },
  };
}

/** Add the presets to root and keep their marks up to date. */
export function offerPresets(root, fields) {
  const buttons = Object.keys(presets()).map((name) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: phrase(/** @type {import("../lib/phrases.js").Key} */ (`speak.delivery.${name}`)) });
    button.addEventListener("click", () => fields.fill(presets()[name]));
    root.append(button);
    return button;
  });
  fields.addEventListener("change", ({ detail }) => {
    for (const [i, values] of Object.values(presets()).entries()) {
      const button = buttons[i];
      const same = Object.entries(values).every(([name, value]) => Math.abs(detail.values[name] - value) < 1e-9);
      button.title = phrase("speak.delivery.values", values);
      button.setAttribute("aria-pressed", String(same));
    }
  });
}
