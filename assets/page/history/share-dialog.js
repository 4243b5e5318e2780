// The dialog that creates links by which others may listen to a take, lists them and revokes them.

import { address } from "../client/address.js";
import { Refusal } from "../client/refusal.js";
import { addShare, removeShare, sharesOf } from "../client/takes.js";
import { copyWords } from "../lib/copy.js";
import { closeByPressBeside } from "../lib/dialog.js";
import { element, partsOf } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { once } from "../lib/once.js";
import { when } from "./history-row.js";
import { phrase } from "../lib/phrases.js";

const DAYS = [1, 7, 30, 90, 365];

export class ShareDialog {
  /** @type {any} */
  #take = null;
  #lists = new Latest();

  constructor(root) {
    this.root = root;
    this.part = partsOf(root);
    this.part("make").addEventListener("click", once(() => this.#do(() => this.#make())));
    closeByPressBeside(root);
  }

  /** most: the longest validity of a link, in days. */
  open(take, most) {
    this.#take = take;
    const choices = [...DAYS.filter((days) => days < most), most];
    this.part("days").replaceChildren(...choices.map((days) => element("option", { value: String(days), textContent: phrase("history.days", { count: days }) })));
    this.part("days").value = String(choices.includes(7) ? 7 : most);
    this.part("links").replaceChildren();
    this.root.showModal();
    this.#do(() => this.#list());
  }

  async #do(work) {
    this.part("share-said").textContent = "";
    try {
      await work();
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.part("share-said").textContent = problem.why;
    }
  }

  async #list() {
    const isLatest = this.#lists.begin();
    const take = this.#take;
    const links = await sharesOf(take.id);
    if (isLatest()) this.part("links").replaceChildren(...links.map((link) => this.#row(take, link)));
  }

  #row(take, { token, path, expires }) {
    const url = address(path);
    const copy = element("button", { type: "button", className: "plain", textContent: phrase("shell.copy"), onclick: () => copyWords(url, copy) });
    const ends = phrase("history.share.until", { date: when(expires) });
    const back = element("button", { type: "button", className: "plain", textContent: phrase("history.share.back") });
    back.onclick = () =>
      this.#do(async () => {
        await removeShare(take.id, token);
        await this.#list();
        this.part("make").focus();
      });
    return element("li", {}, [
      element("a", { href: url, target: "_blank", rel: "noreferrer", textContent: url }),
      element("span", { className: "quiet", textContent: ends }),
      copy,
      back,
    ]);
  }

  async #make() {
    await addShare(this.#take.id, Number(this.part("days").value));
    await this.#list();
    this.part("links").querySelector("button")?.focus();
  }
}
