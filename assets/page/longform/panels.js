// A project's panels, shown one at a time: its parts, its files, and panels from other folders.

import { mountCast } from "../cast/cast-panel.js";
import { element } from "../lib/elements.js";
import { phrase } from "../lib/phrases.js";
import { mountProof } from "../proof/proof.js";
import { mountProse } from "./prose.js";

/**
 * A panel from another folder. `mount` is called when the panel is first shown for a project, with an empty element and the
 * project's context; `open` and `close` of the object that it returns are called when the panel is shown and left, `follow` to
 * show the playing part, and `refresh` while it is shown when the project has changed, perhaps by somebody else.
 *
 * @typedef {object} ProjectContext
 * @property {string} id of the project
 * @property {import("../lib/drafts.js").Drafts} drafts what is typed and not saved yet
 * @property {any[]} voices the library's, as returned by client/voices.js
 * @property {AbortSignal} signal aborted when the project is left: listeners, timers and requests end with it
 * @property {import("./playback.js").Playback} playback plays a voice's sample, or a part with the others in a row
 * @property {() => Promise<unknown>} changed to call after changing parts: reads the project, its map and its list again
 * @property {(position: number) => Promise<void>} goToPart shows the part at a position in the panel of parts
 * @property {(parts: any[]) => Promise<void>} direct selects these parts in the panel of parts
 * @property {() => void} marked to call once the playing part is marked
 * @property {() => any} project the project as last returned by the API, or null
 *
 * @typedef {{ open?: () => unknown, close?: () => unknown, follow?: () => Promise<unknown>, refresh?: () => unknown } | void} Mounted
 *
 * @typedef {object} Panel
 * @property {string} key
 * @property {string} words the label of its button
 * @property {boolean} [atOnce] mount it with the project, because it handles keys everywhere
 * @property {(container: HTMLElement, project: ProjectContext) => Mounted} mount
 */

/** Panels of other folders, in order: each a line `{ key: "cast", words: phrase("…"), mount: mountCast }`. @type {Panel[]} */
const PANELS = [
  { key: "read", words: phrase("prose.title"), mount: mountProse },
  { key: "cast", words: phrase("cast.title"), mount: mountCast },
  { key: "check", words: phrase("project.panel.check"), mount: mountProof, atOnce: true },
];

export class Panels {
  /** @type {Map<string, Mounted>} */
  #mounted = new Map();
  #shown = "";
  #seen = ""; // what the last read of the project showed
  #right = "";

  /**
   * root: contains an element with data-panel for each built-in panel.
   *
   * @param {HTMLElement} root
   * @param {HTMLElement} bar
   * @param {ProjectContext} context
   */
  constructor(root, bar, context) {
    this.root = root;
    this.bar = bar;
    this.context = context;
    for (const added of root.querySelectorAll("[data-panel][data-added]")) added.remove();
    const own = [{ key: "parts", words: phrase("project.panel.parts") }, ...PANELS, { key: "files", words: phrase("project.panel.files") }];
    bar.replaceChildren(...own.map(({ key, words }) => {
      const button = element("button", { type: "button", textContent: words, onclick: () => this.show(key) });
      button.dataset.key = key;
      return button;
    }));
    for (const { key, mount, atOnce } of PANELS) if (atOnce) this.#mount(key, mount);
    this.show("parts");
    context.signal.addEventListener("abort", () => this.#mounted.get(this.#shown)?.close?.());
  }

  get shown() {
    return this.#shown;
  }

  /** Show the playing part in the panel shown; undefined if that has no parts, or shows them elsewhere. */
  follow() {
    return this.#mounted.get(this.#shown)?.follow?.();
  }

  /** Refresh the panel shown if the project has changed. */
  refresh({ parts, changed_at: changed, characters, right }) {
    const now = JSON.stringify([parts, changed, characters, right]);
    const last = this.#seen;
    this.#seen = now;
    const panel = this.#mounted.get(this.#shown);
    if (this.#right && right !== this.#right) panel?.open?.(); // without why something was refused
    else if (last && now !== last) panel?.refresh?.();
    this.#right = right;
  }

  show(key) {
    if (key === this.#shown) return;
    this.#mounted.get(this.#shown)?.close?.();
    this.#shown = key;
    const panel = PANELS.find((candidate) => candidate.key === key);
    if (panel && !this.#mounted.has(key)) this.#mount(key, panel.mount);
    for (const place of /** @type {NodeListOf<HTMLElement>} */ (this.root.querySelectorAll("[data-panel]"))) place.hidden = place.dataset.panel !== key;
    for (const button of /** @type {HTMLElement[]} */ ([...this.bar.children])) button.setAttribute("aria-pressed", String(button.dataset.key === key));
    this.#mounted.get(key)?.open?.();
  }

  #mount(key, mount) {
    this.#mounted.set(key, mount(this.#add(key), this.context));
  }

  #add(key) {
    const container = element("div", { className: "panel-added" });
    container.dataset.panel = key;
    container.dataset.added = "";
    this.root.append(container);
    return container;
  }
}
