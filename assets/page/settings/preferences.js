// What this browser likes: theme, first voice, sound before playing, volume, text, figures. It shows nothing.

import { keep, kept } from "../lib/storage.js";

const STORE = "voice-studio-preferences-1";
const DEFAULTS = { theme: "system", voice: "", wait: "auto", volume: 1, details: "off", text: "on" };

/** Fires "change" with {values} after every change; read them as properties of `values`. */
export class Preferences extends EventTarget {
  values = { ...DEFAULTS, ...kept(STORE, {}) };

  constructor() {
    super();
    addEventListener("storage", ({ key }) => key === STORE && this.#take(kept(STORE, {}))); // another tab has changed them
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#showTheme());
    new MutationObserver(() => this.#showTheme()).observe(document.body, { attributeFilter: ["class"] }); // Gradio sets it too
    this.#show();
  }

  set(changes) {
    this.#take({ ...kept(STORE, {}), ...changes }); // another tab may have changed others a moment ago
    keep(STORE, this.values);
  }

  #take(changes) {
    this.values = { ...this.values, ...changes };
    this.#show();
    this.dispatchEvent(new CustomEvent("change", { detail: { values: this.values } }));
  }

  reset() {
    this.set(DEFAULTS);
  }

  /** Seconds of sound to have before it plays; null: as the player learns. */
  get wait() {
    return this.values.wait === "auto" ? null : Number(this.values.wait);
  }

  #show() {
    this.#showTheme();
    document.body.toggleAttribute("data-details", this.values.details === "on"); // what has the class figure is seen then
  }

  /** Gradio's class on the body says which theme is shown. */
  #showTheme() {
    const { theme } = this.values;
    const isDark = theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
    if (document.body.classList.contains("dark") !== isDark) document.body.classList.toggle("dark");
    document.documentElement.style.colorScheme = isDark ? "dark" : "light";
  }
}
