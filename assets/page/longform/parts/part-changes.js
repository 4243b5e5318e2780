// Saves changes made in the rows of parts in order, keeps them on failure, and never overwrites someone else's text unasked.

import { UnderWay } from "../../lib/under-way.js";
import { valuesOf } from "./values-before.js";

export class PartChanges {
  #underWay = new UnderWay();

  /**
   * list: the rows; mark: shows a row's unsaved changes; arranging: offers to undo saved changes.
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

  /** Record changes to be saved once the field is left. */
  note(row, changes) {
    const before = valuesOf(row.part, Object.keys(changes));
    this.unsaved.note(row.part.id, changes, "text" in changes ? { ...before, text: row.base } : before);
  }

  /** Save changes; a failure is shown below the part. Throws Refusal if the part is gone. */
  async save(row, changes) {
    const { id } = row.part;
    this.note(row, changes);
    const work = this.#underWay.add(this.after(() => this.unsaved.save(id)));
    await work.catch((problem) => {
      if (!this.unsaved.of(id)) throw problem;
    });
  }

  /** Save changes anyway, or discard them and show the stored text. Throws Refusal. */
  async settle(part, isMine) {
    if (isMine) await this.unsaved.overwrite(part.id, part.text);
    else this.unsaved.forget(part.id);
  }

  /** Resolves when all saves begun so far have ended. */
  ended() {
    return this.#underWay.ended();
  }

  /** Run a button's work after pending saves: a text sent when its field is left must not arrive later and undo it. */
  async after(work) {
    await this.ended();
    return work();
  }
}
