// Named deliveries: presets for three sampling fields, each marked while the fields have its values.

import { phrase } from "../lib/phrases.js";

/** @type {Record<"steady" | "natural" | "lively", Record<string, number>>} */
export const PRESETS = {
  steady: { temperature: 0.6, topP: 0.8, topK: 20 },
  natural: { temperature: 0.8, topP: 0.9, topK: 30 },
  lively: { temperature: 1.0, topP: 0.95, topK: 60 },
};

/** Add the presets to root and keep their marks up to date. */
export function offerPresets(root, fields) {
  /** @type {[HTMLButtonElement, Record<string, number>][]} */
  const buttons = Object.entries(PRESETS).map(([name, values]) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: phrase(/** @type {import("../lib/phrases.js").Key} */ (`speak.delivery.${name}`)) });
    button.title = phrase("speak.delivery.values", values);
    button.addEventListener("click", () => fields.fill(values));
    root.append(button);
    return [button, values];
  });
  fields.addEventListener("change", ({ detail }) => {
    for (const [button, values] of buttons) {
      const same = Object.entries(values).every(([name, value]) => Math.abs(detail.values[name] - value) < 1e-9);
      button.setAttribute("aria-pressed", String(same));
    }
  });
}
