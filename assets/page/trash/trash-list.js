// The trash in Settings: deleted items, to restore or delete permanently.

import { Refusal } from "../client/refusal.js";
import { emptyTrash, listTrash, restore } from "../client/trash.js";
import { when } from "../history/history-row.js";
import { element, partsOf } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { once } from "../lib/once.js";
import { phrase } from "../lib/phrases.js";

/** Fires "restored" with {kind, id}. */
export class TrashList extends EventTarget {
  #lists = new Latest();
  #last = "";

  /** @param {HTMLDetailsElement} root */
  constructor(root) {
    super();
    this.root = root;
    this.part = partsOf(root);
    root.addEventListener("toggle", () => this.open());
    this.part("trash-more").addEventListener("click", once(() => this.#do(() => this.#list(this.#last))));
    this.part("trash-empty").addEventListener("click", once(() => this.#do(() => this.#empty())));
  }

  /** Update the list, if the trash is open. */
  open() {
    if (this.root.open) this.#do(() => this.#list());
  }

  async #do(work) {
    this.part("trash-said").textContent = "";
    try {
      await work();
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.part("trash-said").textContent = problem.why;
    }
  }

  async #list(after = "") {
    const isLatest = this.#lists.begin();
    const { data, last_id: last, has_more: hasMore } = await listTrash(after);
    if (!isLatest()) return;
    if (!after) this.part("trash-list").replaceChildren();
    this.part("trash-list").append(...data.map((item) => this.#row(item)));
    this.#last = last;
    this.part("trash-more").hidden = !hasMore;
    const isEmpty = !this.part("trash-list").children.length;
    this.part("trash-empty").hidden = isEmpty;
    if (isEmpty) this.part("trash-said").textContent = phrase("trash.none");
  }

  #row({ kind, id, title, parts, expires }) {
    const row = element("li", {}, [
      element("span", { dir: "auto", textContent: phrase(/** @type {import("../lib/phrases.js").Key} */ (`trash.${kind}`), { title, count: parts ?? 0 }) }),
      element("span", { className: "quiet", textContent: phrase("history.share.until", { date: when(expires) }) }),
    ]);
    const button = (words, work) => {
      const press = once(() =>
        this.#do(async () => {
          await work();
          row.remove();
          await this.#list();
        }),
      );
      row.append(element("button", { type: "button", className: "plain", textContent: words, onclick: press }));
    };
    button(phrase("trash.restore"), async () => {
      await restore(kind, [id]);
      this.dispatchEvent(new CustomEvent("restored", { detail: { kind, id } }));
    });
    button(phrase("trash.remove"), () => emptyTrash([id]));
    return row;
  }

  async #empty() {
    if (!window.confirm(phrase("trash.empty.sure"))) return;
    await emptyTrash();
    await this.#list();
  }
}
