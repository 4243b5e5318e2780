// Saves changes made in the rows of parts in order, keeps them on failure, and never overwrites someone else's text unasked.

import { focusAfterwards } from "../../lib/typing.js";
import { UnderWay } from "../../lib/under-way.js";

/** Values with which the API resets a field to the project's. @type {Record<string, any>} */
const UNSET = { voice: "", character: "", speed: -1, temperature: -1, top_p: -1, top_k: -1, pause: -1 };

export class PartChanges {
  #underWay = new UnderWay();
  #steps = 0; // arrangements under way

  /**
   * list: the rows; mark: shows a row's unsaved changes; arranging: offers to undo saved changes.
   *
   * @param {import("../unsaved.js").Unsaved} unsaved
   * @param {{ list: import("./part-list.js").PartList, mark: (row: any) => void, arranging: import("./arranging.js").Arranging, signal: AbortSignal }} panel
   */
  constructor(unsaved, { list, mark, arranging, signal }) {
    this.unsaved = unsaved;
    this.arranging = arranging;
    this.list = list;
    unsaved.addEventListener("show", ({ detail: { key } }) => {
      const [row, entry] = [list.row(key), unsaved.of(key)];
      if (entry?.problem?.isOfPart) list.showGone(key, entry.position);
      else if (row) mark(row);
    });
    unsaved.addEventListener("saved", ({ detail: { key, saved } }) => {
      if (!key || signal.aborted) return;
      const row = list.row(key);
      const { replaced, ...part } = saved;
      if (row) row.base = part.text;
      list.update(part);
      arranging.changedPart(part, replaced);
    });
  }

  /** Record changes to be saved once the field is left. */
  note(row, changes) {
    const before = Object.fromEntries(Object.keys(changes).map((name) => [name, row.part[name] ?? UNSET[name]]));
    this.unsaved.note(row.part.id, changes, "text" in changes ? { ...before, text: row.base } : before, row.part.position);
  }

  /** Save changes; a failure is shown below the part. Throws Refusal if the part is gone. */
  async save(row, changes) {
    const { id } = row.part;
    if (changes.text === row.base && !this.unsaved.of(id)) return; // it was typed back, or left for the second half of a split
    this.note(row, changes);
    await this.#underWay.add(this.after(() => this.#send(id)));
  }

  async #send(id) {
    await this.unsaved.save(id).catch((problem) => {
      if (!this.unsaved.of(id)) throw problem;
    });
  }

  /** Save changes anyway, or discard them and show the stored text; a part that is gone is put back, or its row leaves. Throws Refusal. */
  async settle(row, isMine) {
    const { part, element } = row;
    const { changes = {}, problem } = this.unsaved.of(part.id) ?? {};
    const isGone = element.hasAttribute("data-gone");
    if (isGone && !isMine) (element.nextElementSibling ?? element.previousElementSibling)?.querySelector(".long-more")?.focus();
    if (!isMine) {
      this.unsaved.forget(part.id);
      const { text: _, ...others } = changes; // such as a voice, which waited for the choice between the texts
      return problem?.isOutdated && Object.keys(others).length ? this.save(row, others) : undefined;
    }
    if (!isGone) return this.unsaved.overwrite(part.id, part.text);
    const id = await this.arranging.putBack(part, changes.text);
    if (id === part.id) await this.#send(id);
    else this.unsaved.forget(part.id);
    await this.list.look();
    focusAfterwards(this.list.row(id)?.text);
  }

  /** Resolves when all saves begun so far have ended. */
  ended() {
    return this.#underWay.ended();
  }

  /** Arrange parts after all that was begun before, in the list as it is then: an earlier step may have moved them. */
  async inTurn(work) {
    const isFirst = !this.#steps;
    this.#steps += 1;
    const look = () => (isFirst ? undefined : this.list.look());
    try {
      await this.#underWay.add(this.after(look).then(work));
    } finally {
      this.#steps -= 1;
    }
  }

  /** Run a button's work after pending saves: a text sent when its field is left must not arrive later and undo it. */
  async after(work) {
    await this.ended();
    return work();
  }
}
