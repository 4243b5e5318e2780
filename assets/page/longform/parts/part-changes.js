// Changes made in the rows of parts: saved in their order, kept where that fails, and never put over another's words unasked.

import { UnderWay } from "../../lib/under-way.js";
import { valuesOf } from "./values-before.js";

export class PartChanges {
  #underWay = new UnderWay();

  /**
   * list: of the rows; mark: shows what is not saved of a row's part; arranging: offers to undo what was saved.
   *
   * @param {import("../unsaved.js").Unsaved} unsaved
   * @param {{ list: import("./part-list.js").PartList, mark: (row: any) => void, arranging: import("./arranging.js").Arranging, signal: AbortSignal }} panel
   */
  constructor(unsaved, { list, mark, arranging, signal }) {
    this.unsaved = unsaved;
    unsaved.addEventListener("show", ({ detail }) => {
      const row = list.row(detail.key);
      if (row) mark(row);
    });
    unsaved.addEventListener("saved", ({ detail: { key, saved, before } }) => {
      if (!key || signal.aborted) return;
      const row = list.row(key);
      if (row) row.base = saved.text;
      list.update(saved);
      arranging.changedPart(saved, before);
    });
  }

  /** To be saved once the field is left. */
  note(row, changes) {
    const before = valuesOf(row.part, Object.keys(changes));
    this.unsaved.note(row.part.id, changes, "text" in changes ? { ...before, text: row.base } : before);
  }

  /** Save changes; the reason why that is not possible stands below the part, unless the part is gone. Raises Refusal. */
  async save(row, changes) {
    const { id } = row.part;
    this.note(row, changes);
    const work = this.#underWay.add(this.after(() => this.unsaved.save(id)));
    await work.catch((problem) => {
      if (!this.unsaved.of(id)) throw problem;
    });
  }

  /** Save changes all the same, or show what the studio has. Raises Refusal. */
  async settle(part, isMine) {
    if (isMine) await this.unsaved.overwrite(part.id, part.text);
    else this.unsaved.forget(part.id);
  }

  /** Until all have ended that were begun before. */
  ended() {
    return this.#underWay.ended();
  }

  /** Leaving a text for a button sends the text, which must not arrive after the button's own change and undo it. */
  async after(work) {
    await this.ended();
    return work();
  }
}
