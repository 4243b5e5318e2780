// This browser's preferences: theme, first voice, audio buffered before playing, volume, text, figures. Shows no controls.

import { entryOf, keep, kept } from "../lib/storage.js";

const STORE = "preferences-1";
const DEFAULTS = { theme: "system", voice: "", wait: "auto", volume: 1, rate: 1, details: "off", text: "on" };

/** Fires "change" with {values} after every change. Read preferences as properties of `values`. */
export class Preferences extends EventTarget {
  values = { ...DEFAULTS, ...kept(STORE, {}) };

  constructor() {
    super();
    addEventListener("storage", ({ key }) => key === entryOf(STORE) && this.#take(kept(STORE, {}))); // changed in another tab
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#showTheme());
    new MutationObserver(() => this.#showTheme()).observe(document.body, { attributeFilter: ["class"] }); // Gradio sets it too
    this.#show();
  }

  set(changes) {
    this.#take({ ...kept(STORE, {}), ...changes }); // another tab may have just changed others
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

  /** Seconds of audio to buffer before playing; null: the player decides. */
  get wait() {
    return this.values.wait === "auto" ? null : Number(this.values.wait);
  }

  #show() {
    this.#showTheme();
    document.body.toggleAttribute("data-details", this.values.details === "on"); // shows elements of the class figure
  }

  /** Apply the theme through Gradio's class on the body. */
  #showTheme() {
    const { theme } = this.values;
    const isDark = theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
    if (document.body.classList.contains("dark") !== isDark) document.body.classList.toggle("dark");
    document.documentElement.style.colorScheme = isDark ? "dark" : "light";
  }
}
