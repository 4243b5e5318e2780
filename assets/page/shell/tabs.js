// The page's tabs: which area is shown, its name in the address so that a reload, a link or Back comes to it.

import { isZeroGpu } from "../client/host.js";

const NAME = "Voice Studio";
const FIRST = "studio";
const NOT_ON_ZEROGPU = ["longform", "queue", "api"]; // they are about work that such a host does not do

/** What a tab shows. */
const panelOf = (tab) => /** @type {HTMLElement} */ (document.getElementById(tab.getAttribute("aria-controls")));

/** Fires "show" with {area} whenever another area is shown. */
export class Tabs extends EventTarget {
  #shown = "";

  constructor(tabs) {
    super();
    if (isZeroGpu) for (const area of NOT_ON_ZEROGPU) tabs.querySelector(`[data-area=${area}]`).remove();
    this.tabs = [...tabs.querySelectorAll("[role=tab]")];
    for (const tab of this.tabs) {
      tab.addEventListener("click", () => this.show(tab.dataset.area));
      const panel = panelOf(tab);
      panel.setAttribute("role", "tabpanel"); // Gradio's own columns do not say so
      panel.setAttribute("aria-labelledby", tab.id);
    }
    tabs.addEventListener("keydown", (event) => this.#arrow(event));
    addEventListener("hashchange", () => this.#follow());
  }

  /** Go where the address says, once everybody listens. */
  start() {
    this.#follow();
  }

  get shown() {
    return this.#shown;
  }

  show(area) {
    if (area === this.#shown) return;
    this.#shown = area;
    document.body.dataset.area = area;
    for (const tab of this.tabs) {
      const chosen = tab.dataset.area === area;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      panelOf(tab).toggleAttribute("data-shown", chosen);
      if (!chosen) continue;
      tab.scrollIntoView({ block: "nearest", inline: "nearest" });
      document.title = area === FIRST ? NAME : `${tab.textContent} · ${NAME}`;
    }
    if (location.hash.slice(1) !== area) history.pushState(null, "", `#${area}`);
    this.dispatchEvent(new CustomEvent("show", { detail: { area } }));
  }

  #follow() {
    const named = location.hash.slice(1);
    const area = this.tabs.some((tab) => tab.dataset.area === named) ? named : FIRST;
    if (!location.hash) history.replaceState(null, "", `#${area}`);
    this.show(area);
  }

  #arrow({ key }) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!by) return;
    const at = this.tabs.findIndex((tab) => tab.dataset.area === this.#shown);
    const next = this.tabs.at((at + by) % this.tabs.length);
    next.focus();
    this.show(next.dataset.area);
  }
}
