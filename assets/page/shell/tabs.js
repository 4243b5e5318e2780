// The page's tabs: the area and item shown are in the address, so that a reload, a link or Back leads to them.

import { isZeroGpu } from "../client/host.js";

const NAME = "Voice Studio";
const FIRST = "studio";
const NOT_ON_ZEROGPU = ["longform", "queue", "api"]; // they are about work that such a host does not do

/** What a tab shows. */
const panelOf = (tab) => /** @type {HTMLElement} */ (document.getElementById(tab.getAttribute("aria-controls")));

/** The area and item (or "") in the address; neither if it is cut off or mistyped. */
function named() {
  try {
    const [area, item = ""] = location.hash.slice(1).split("/").map(decodeURIComponent);
    return { area, item };
  } catch (problem) {
    if (!(problem instanceof URIError)) throw problem;
    return { area: "", item: "" };
  }
}

const hashOf = (area, item) => `#${area}${item ? `/${encodeURIComponent(item)}` : ""}`;

/** Fires "show" with {area, item} whenever another area is shown, and "go" with {item} when the address names another of its items. */
export class Tabs extends EventTarget {
  #shown = "";
  #item = "";

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

  /** Go to the address's area, once all listeners are attached. */
  start() {
    this.#follow();
  }

  get shown() {
    return this.#shown;
  }

  /** What of the shown area the address names, or "". */
  get item() {
    return this.#item;
  }

  show(area, item = "") {
    if (area === this.#shown) return;
    [this.#shown, this.#item] = [area, item];
    document.body.dataset.area = area;
    for (const tab of this.tabs) {
      const chosen = tab.dataset.area === area;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      panelOf(tab).toggleAttribute("data-shown", chosen);
      if (!chosen) continue;
      tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    this.#entitle();
    if (location.hash !== hashOf(area, item)) history.pushState(null, "", hashOf(area, item));
    this.dispatchEvent(new CustomEvent("show", { detail: { area, item } }));
  }

  /** An area shows one of its items now, or none of them (""); isSame: not as a step of its own, for Back. */
  about(area, { item, title = "", isSame = false }) {
    if (area !== this.#shown) return;
    this.#entitle(title);
    if (item === this.#item) return;
    this.#item = item;
    history[isSame ? "replaceState" : "pushState"](null, "", hashOf(area, item));
  }

  #entitle(title = "") {
    const tab = this.tabs.find(({ dataset }) => dataset.area === this.#shown);
    document.title = [title, this.#shown === FIRST ? "" : tab.textContent, NAME].filter(Boolean).join(" · ");
  }

  #follow() {
    const { area: wanted, item } = named();
    const area = this.tabs.some((tab) => tab.dataset.area === wanted) ? wanted : FIRST;
    if (!location.hash) history.replaceState(null, "", `#${area}`);
    if (area !== this.#shown) return this.show(area, area === wanted ? item : "");
    if (item === this.#item) return;
    this.#item = item;
    this.#entitle();
    this.dispatchEvent(new CustomEvent("go", { detail: { item } }));
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
