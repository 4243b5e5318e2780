// The page's areas and their views. The address holds the shown view and its item, so that reloads, links and Back restore them.

import { isThroughGradio } from "../client/host.js";

const NAME = "Voice Studio";
const FIRST = "studio";
/** The address of each view; the part before the slash is its area. */
const VIEWS = {
  studio: "studio",
  compare: "studio/compare",
  longform: "projects",
  voices: "voices",
  "new-voice": "voices/new",
  history: "history",
  queue: "activity",
  settings: "settings",
  api: "settings/api",
};
const NOT_THROUGH_GRADIO = ["longform", "queue", "api"]; // they concern work that such a host does not do

const panelOf = (view) => /** @type {HTMLElement} */ (document.getElementById(`area-${view}`));
const hashOf = (view, item) => `#${VIEWS[view]}${item ? `/${encodeURIComponent(item)}` : ""}`;

/** The view and item (or "") of an address; older ones are the views' names. No view if it is truncated or mistyped. */
function named(hash) {
  try {
    const [first, second = "", third = ""] = hash.slice(1).split("/").map(decodeURIComponent);
    const views = Object.keys(VIEWS);
    const whole = second && views.find((view) => VIEWS[view] === `${first}/${second}`);
    if (whole) return { view: whole, item: third };
    return { view: views.find((view) => VIEWS[view] === first) ?? views.find((view) => view === first) ?? "", item: second };
  } catch (problem) {
    if (!(problem instanceof URIError)) throw problem;
    return { view: "", item: "" };
  }
}

/** Fires "show" with {area, item} when another view is shown, and "go" with {item} when the address changes to another of its items. */
export class Areas extends EventTarget {
  #shown = "";
  #item = "";

  /** root: contains all links to areas; links to views that this host lacks are removed. */
  constructor(root) {
    super();
    this.links = [...root.querySelectorAll("a[data-view]")];
    this.views = Object.keys(VIEWS).filter((view) => !isThroughGradio || !NOT_THROUGH_GRADIO.includes(view));
    for (const link of this.links) {
      const { view } = link.dataset;
      if (this.views.includes(view)) link.href = `#${VIEWS[view]}`;
      else if (link.id) link.removeAttribute("href"); // it also shows a status
      else link.remove();
    }
    addEventListener("hashchange", () => this.#follow());
    root.querySelector("[data-part=skip]").addEventListener("click", () => this.#enter());
  }

  /** Show the address's view. To be called once all listeners are attached. */
  start() {
    for (const view of Object.keys(VIEWS)) {
      panelOf(view).setAttribute("role", "region"); // Gradio's columns have no role
      panelOf(view).setAttribute("aria-label", this.#title(view));
    }
    this.#follow();
  }

  get shown() {
    return this.#shown;
  }

  /** The item of the shown view, or "". */
  get item() {
    return this.#item;
  }

  /** Move the keyboard focus past the links, to the shown view. */
  #enter() {
    const panel = panelOf(this.#shown);
    panel.tabIndex = -1;
    panel.focus();
  }

  show(view, item = "") {
    if (view === this.#shown) return;
    [this.#shown, this.#item] = [view, item];
    document.body.dataset.area = view;
    const [area] = VIEWS[view].split("/");
    for (const other of Object.keys(VIEWS)) panelOf(other).toggleAttribute("data-shown", other === view);
    for (const link of this.links) {
      const isWithin = !link.closest(".modes") && VIEWS[link.dataset.view] === area;
      if (link.dataset.view === view) link.setAttribute("aria-current", "page");
      else if (isWithin) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    this.#entitle();
    if (location.hash !== hashOf(view, item)) history.pushState(null, "", hashOf(view, item));
    scrollTo(0, 0);
    this.dispatchEvent(new CustomEvent("show", { detail: { area: view, item } }));
  }

  /** Put the item that a view shows ("": none) into the address; isSame: without adding a history entry. */
  about(view, { item, title = "", isSame = false }) {
    if (view !== this.#shown) return;
    this.#entitle(title);
    if (item === this.#item) return;
    this.#item = item;
    history[isSame ? "replaceState" : "pushState"](null, "", hashOf(view, item));
  }

  #title(view) {
    return panelOf(view).dataset.title ?? this.links.filter(({ dataset }) => dataset.view === view).map((link) => link.title || link.textContent.trim())[0] ?? "";
  }

  #entitle(title = "") {
    document.title = [title, this.#shown === FIRST ? "" : this.#title(this.#shown), NAME].filter(Boolean).join(" · ");
  }

  #follow() {
    const { view: wanted, item } = named(location.hash);
    const isKnown = this.views.includes(wanted);
    const view = isKnown ? wanted : FIRST;
    if (!location.hash || (isKnown && !`${location.hash}/`.startsWith(`#${VIEWS[view]}/`))) history.replaceState(null, "", hashOf(view, item));
    if (view !== this.#shown) return this.show(view, isKnown ? item : "");
    if (item === this.#item) return;
    this.#item = item;
    this.#entitle();
    this.dispatchEvent(new CustomEvent("go", { detail: { item } }));
  }
}
