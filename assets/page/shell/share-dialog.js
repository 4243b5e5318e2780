// The dialog that creates links by which others may listen to a take or to a project's podcast feed, lists them and revokes them.

import { address } from "../client/address.js";
import { Refusal } from "../client/refusal.js";
import { copyWords } from "../lib/copy.js";
import { closeByPressBeside } from "../lib/dialog.js";
import { element, partsOf } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { once } from "../lib/once.js";
import { when } from "../history/history-row.js";
import { phrase } from "../lib/phrases.js";

const DAYS = [1, 7, 30, 90, 365];

export class ShareDialog {
  #id = "";
  #lists = new Latest();

  /**
   * calls: the requests for the links of an item; listed: told the list of them, and whether it is still about them.
   *
   * @param {any} root
   * @param {{ list: (id: string) => Promise<any>, add: (id: string, days: number) => Promise<any>, remove: (id: string, token: string) => Promise<any> }} calls
   * @param {(list: { data: any[], problem?: string | null }, isLatest: () => boolean) => unknown} listed
   */
  constructor(root, calls, listed = () => {}) {
    this.root = root;
    this.part = partsOf(root);
    this.calls = calls;
    this.listed = listed;
    this.part("share-make").addEventListener("click", once(() => this.#do(() => this.#make())));
    closeByPressBeside(root);
  }

  /** most: the longest validity of a link, in days. */
  open(id, most) {
    this.#id = id;
    const choices = [...DAYS.filter((days) => days < most), most];
    this.part("share-days").replaceChildren(...choices.map((days) => element("option", { value: String(days), textContent: phrase("history.days", { count: days }) })));
    this.part("share-days").value = String(choices.includes(7) ? 7 : most);
    this.part("share-links").replaceChildren();
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
    const id = this.#id;
    const list = await this.calls.list(id);
    if (!isLatest()) return;
    this.part("share-links").replaceChildren(...list.data.map((link) => this.#row(id, link)));
    this.#do(() => this.listed(list, isLatest)); // may take seconds, which must not delay the focus
  }

  #row(id, { token, path, expires }) {
    const url = address(path);
    const copy = element("button", { type: "button", className: "plain", textContent: phrase("shell.copy"), onclick: () => copyWords(url, copy) });
    const ends = phrase("history.share.until", { date: when(expires) });
    const back = element("button", { type: "button", className: "plain", textContent: phrase("history.share.back") });
    back.onclick = () =>
      window.confirm(phrase("history.share.back.sure")) && this.#do(async () => {
        await this.calls.remove(id, token);
        await this.#list();
        this.part("share-make").focus();
      });
    return element("li", {}, [
      element("a", { href: url, target: "_blank", rel: "noreferrer", textContent: url }),
      element("span", { className: "quiet", textContent: ends }),
      copy,
      back,
    ]);
  }

  async #make() {
    await this.calls.add(this.#id, Number(this.part("share-days").value));
    await this.#list();
    this.part("share-links").querySelector("button")?.focus();
  }
}
