// The dialog in which the studio's owner chooses a model: shows which fit this machine, downloads and switches models.

import { Refusal } from "../client/refusal.js";
import { cancelModelDownload, downloadModel, engineModel, engineModels, keepModel, switchModel } from "../client/system.js";
import { closeByPressBeside } from "../lib/dialog.js";
import { Keyed, partsOf, setChildren } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { once } from "../lib/once.js";
import { phrase } from "../lib/phrases.js";
import { stepWords } from "../shell/engine-health.js";
import { modelCard, recommended, showProgress } from "./model-card.js";

const AGAIN = 1000; // ms between polls during a download or switch

export class ModelsDialog {
  #state = /** @type {any} */ ({});
  #models = /** @type {any[]} */ ([]);
  #path = "";
  #confirming = "";
  #wanted = "";
  #cards = new Keyed();
  #looks = new Latest();
  #timer = 0;

  /** Every button with data-opens="models" opens the dialog. */
  constructor(root) {
    this.root = root;
    this.part = partsOf(root);
    this.part("keep").addEventListener("click", once(() => this.#do(keepModel)));
    this.part("path-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#path = event.target.elements.path.value.trim();
      this.#list().then(() => this.part("list").lastElementChild?.scrollIntoView({ block: "nearest" })); // the result, above the form
    });
    root.addEventListener("close", () => {
      this.#looks.end();
      clearTimeout(this.#timer);
    });
    closeByPressBeside(root);
    document.addEventListener("click", ({ target }) => {
      if (!(target instanceof Element) || !target.closest("[data-opens=models]")) return;
      /** @type {HTMLDialogElement | null} */ (target.closest("dialog[open]"))?.close();
      this.open();
    });
  }

  /** wanted: a fact of models, such as "designs", with which they are not hidden behind the others. */
  open(wanted = "") {
    this.#wanted = wanted;
    this.#confirming = "";
    this.root.showModal();
    this.#list();
  }

  /** Examine the machine again, which takes a second or two. */
  async #list() {
    if (!this.#models.length) this.#say(phrase("models.looking"));
    await this.#show(() => engineModels(this.#path));
  }

  #do(work) {
    this.#confirming = "";
    return this.#show(work);
  }

  /** Show the state that work() returns, and poll it while a download or switch is under way. */
  async #show(work) {
    clearTimeout(this.#timer);
    const isLatest = this.#looks.begin();
    try {
      const state = await work();
      if (!isLatest() || !this.root.open) return;
      const before = this.#state;
      this.#state = state;
      // Only now, since an outdated response must not restore an older list.
      if (state.data) this.#models = state.data.map((model) => (model.name === "bundled" ? { ...model, title: phrase("models.bundled") } : model));
      this.#draw();
      const isBusy = state.switching_to !== null || state.status === "starting" || Object.values(state.downloads).some(({ running }) => running);
      const hasEnded = hasEndedSince(before, state);
      if (isBusy || hasEnded) this.#timer = setTimeout(() => (hasEnded ? this.#list() : this.#show(engineModel)), hasEnded ? 0 : AGAIN);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      if (!isLatest()) return;
      if (this.#models.length) this.#draw(); // no longer asks for confirmation
      this.#say(problem.why);
    }
  }

  #draw() {
    const { switching_to: target, can_cancel: canCancel, doing, progress, status } = this.#state;
    const isLoading = target !== null || status === "starting";
    this.part("switching").hidden = !isLoading;
    if (isLoading && !canCancel && status === "starting") this.part("progress").value = progress;
    else this.part("progress").removeAttribute("value");
    this.part("keep").hidden = !canCancel;
    this.#say(isLoading ? phrase("models.switching", { model: this.#titleOf(target ?? this.#state.model), step: stepWords(status === "starting" ? doing : "changing the model") }) : this.#settled());
    const held = document.activeElement;
    const holder = /** @type {HTMLElement | null | undefined} */ (held?.closest("#models li"));
    const best = recommended(this.#models);
    const cards = this.#cards.of(this.#models.map((model) => ({ ...model, id: model.name })), (model, before) => this.#card(model, before, model.name === best?.name));
    const isInFront = ({ name, loaded, path, ...facts }) => !best || loaded || facts[this.#wanted] || name === best.name || path === name || name === this.#confirming || name === target || Boolean(this.#state.downloads[name]?.running || this.#state.downloads[name]?.error);
    const place = new Map(this.#models.map((model, number) => [cards[number], Boolean(isInFront(model))]));
    const others = cards.filter((card) => !place.get(card));
    const bestCard = this.#cards.get(best?.name ?? "");
    setChildren(this.part("list"), cards.filter((card) => place.get(card)).sort((card, other) => Number(other === bestCard) - Number(card === bestCard)));
    setChildren(this.part("others"), others);
    this.part("behind").hidden = !others.length;
    this.part("behind-count").textContent = phrase("models.others", { count: others.length });
    if (!holder || holder.isConnected) return;
    const card = this.#cards.get(holder.dataset.model ?? "");
    const controls = /** @type {HTMLElement[]} */ ([...(card?.querySelectorAll("button, a") ?? [])]);
    (controls.find(({ textContent }) => textContent === held?.textContent) ?? controls[0])?.focus({ preventScroll: true });
  }

  #settled() {
    const { error, cannot_switch: cannot, fixed_by_setting: isFixed } = this.#state;
    return [error && phrase("models.failed", { why: error }), cannot, isFixed && !cannot && phrase("models.fixed")].filter(Boolean).join(" ");
  }

  /** Reuse the existing card unless more than its progress has changed, so that no click on it is lost. */
  #card(model, before, isRecommended) {
    const { name } = model;
    const download = this.#state.downloads[name];
    const isBusy = this.#state.switching_to !== null || this.#state.status === "starting" || Boolean(this.#state.cannot_switch);
    const buttons = {
      download: () => this.#do(() => downloadModel(name)),
      cancel: () => this.#do(() => cancelModelDownload(name, false)),
      pause: () => this.#do(() => cancelModelDownload(name, true)),
      ask: () => {
        this.#confirming = name;
        this.#draw();
        this.#cards.get(name)?.querySelector("button")?.focus();
      },
      use: () => {
        this.root.scrollTo({ top: 0 }); // to the progress and the result
        return this.#do(() => switchModel(name));
      },
      back: () => {
        this.#confirming = "";
        this.#draw();
        this.#cards.get(name)?.querySelector("button")?.focus();
      },
    };
    const current = this.#models.find(({ loaded }) => loaded)?.title ?? this.#state.model;
    const drawn = modelCard(model, download, { isBusy, isConfirming: this.#confirming === name, isRecommended, current }, buttons);
    const looks = drawn.outerHTML;
    const card = before?.dataset.looks === looks ? before : drawn;
    Object.assign(card.dataset, { looks, model: name });
    if (download?.running) showProgress(card, download);
    return card;
  }

  #titleOf(name) {
    return this.#models.find((model) => model.name === name || model.repo === name)?.title ?? name;
  }

  #say(words) {
    if (this.part("said").textContent !== words) this.part("said").textContent = words;
  }
}

/** Whether a download or switch has ended between two states, so that the available or loaded models have changed. */
export function hasEndedSince(before, now) {
  if (before.switching_to && now.switching_to === null && now.status !== "starting") return true;
  return Object.entries(before.downloads ?? {}).some(([name, { running }]) => running && !now.downloads[name]?.running);
}
