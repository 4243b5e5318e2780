// Changes to a project that the studio has not saved yet: stored in this browser, sent again later, with a warning before the page is left.

import { changePart, changeProject } from "../client/projects.js";
import { Refusal } from "../client/refusal.js";
import { isBeingTyped } from "../lib/typing.js";

/**
 * before: the values that the changes replace; isDue: to be sent again once the studio responds; problem: why they were not
 * saved, or null if not tried yet; refused: why, by name of the project's texts that
 * were refused, and are not sent again before they are changed; lost: the values by name whose answers did not arrive; position: of the part when it was changed; below: the text of a new part being written below it.
 *
 * @typedef {{ changes: Record<string, any>, before: Record<string, any>, position: number, below: string, isDue: boolean, isSending: boolean, problem: Refusal | null, refused: Map<string, Refusal>, lost: Map<string, Set<any>> }} Entry
 */

/** @returns {Entry} */
const newEntry = () => ({ changes: {}, before: {}, position: 0, below: "", isDue: false, isSending: false, problem: null, refused: new Map(), lost: new Map() });

/**
 * Each key is the id of a part, or blank for the project itself. Fires "show" with {key} when its unsaved changes change, "saved"
 * with {key, saved} (as returned by the API), "refused" with {problem} if the project's were sent again in vain, and "gone" with {key, position} of a part that no longer
 * exists, before "show"; its text is kept.
 */
export class Unsaved extends EventTarget {
  /** @type {Map<string, Entry>} */
  #entries = new Map();
  /** @type {Map<string, Promise<void>>} */ #sending = new Map();
  /** The project's field that is being edited. @type {HTMLElement | null} */
  #typed = null;
  /** The project's title and settings as its fields show them. @type {Record<string, any>} */
  #seen = {};

  /**
   * fields: the title and the settings by the names of their fields in root, whose pending input is sent when the page is left.
   *
   * @param {import("../lib/drafts.js").Drafts} drafts of the project
   * @param {{ root: HTMLElement, fields: Record<string, string>, signal: AbortSignal }} project
   */
  constructor(drafts, { root, fields, signal }) {
    super();
    this.drafts = drafts;
    this.id = drafts.project;
    this.root = root;
    this.fields = fields;
    for (const [key, draft] of drafts.all("part")) this.#entries.set(key, { ...newEntry(), ...draft, isDue: true });
    for (const [key, { text, position }] of drafts.all("below")) this.#entries.set(key, { ...this.#entryOf(key, position), below: text, isDue: true });
    root.addEventListener("input", ({ target }) => {
      if (target instanceof HTMLElement && (target.dataset.part ?? "") in fields) this.#typed = target;
    }, { signal });
    root.addEventListener("change", () => (this.#typed = null), { signal });
    document.addEventListener("visibilitychange", () => document.hidden && this.leave(), { signal });
    addEventListener("pagehide", () => this.leave(), { signal });
    addEventListener("beforeunload", (event) => {
      this.leave();
      if (this.#entries.size) event.preventDefault();
    }, { signal });
  }

  /** Why a text of the project is kept, but not saved; undefined: none is. */
  get refusal() {
    return this.#entries.get("")?.refused.values().next().value;
  }

  /** The name of a text of the project that is kept because someone else has changed it, and the refusal; empty: there is none. */
  get conflict() {
    return [...this.#entries.get("")?.refused ?? []].find(([, problem]) => problem.isOutdated) ?? [];
  }

  /** @param {string} key */
  of(key) {
    return this.#entries.get(key);
  }

  /** Number of parts with unsaved changes, and one for the project's own. */
  get size() {
    return this.#entries.size;
  }

  /** The project is shown as it is now; a field that is being typed in stays as it is. @param {{ title: string, settings: object }} project */
  see({ title, settings }) {
    const field = /** @type {HTMLElement | null} */ (document.activeElement);
    const edited = isBeingTyped(field) ? this.fields[field?.dataset.part ?? ""] ?? "" : "";
    const now = { title, ...settings };
    this.#seen = { ...now, ...(edited in this.#seen ? { [edited]: this.#seen[edited] } : {}) };
    this.found("", now);
  }

  /** A part, or blank the project, is now like this: changes that have arrived there are not somebody else's, though their answers were lost. @param {string} key @param {Record<string, any>} now */
  found(key, now) {
    const entry = this.#entries.get(key);
    for (const [name, values] of entry?.lost ?? []) {
      if (!entry || !values.has(now[name])) continue;
      entry.before[name] = now[name];
      if (entry.problem?.isOutdated) entry.isDue = true;
    }
  }

  /** Record changes to be saved later. @param {string} key @param {Record<string, any>} changes @param {Record<string, any> | null} [before] by default, what the project's fields showed; a text that somebody else has changed, too, is not based on theirs then @param {number} [position] of the part */
  note(key, changes, before = null, position = 0) {
    const entry = this.#entryOf(key, position);
    for (const [name, value] of Object.entries(changes)) {
      const isPending = name in entry.changes;
      if (!isPending || (before && entry.refused.get(name)?.isOutdated)) entry.before[name] = (before ?? this.#seen)[name];
      entry.changes[name] = value;
      entry.refused.delete(name);
      if (isPending && value === entry.before[name] && !entry.isSending) delete entry.changes[name];
    }
    this.#put(key, entry);
  }

  /** Keep the text of a new part that is being written below a part; blank: none any more. @param {string} key @param {string} text @param {number} [position] of the part above */
  write(key, text, position = 0) {
    const entry = this.#entryOf(key, position);
    entry.below = text.trim() && text;
    this.#put(key, entry);
  }

  /** @param {string} key @param {number} position @returns {Entry} */
  #entryOf(key, position) {
    return this.#entries.get(key) ?? { ...newEntry(), position };
  }

  /** Discard the changes, but not the text of a new part. @param {string} key */
  forget(key) {
    const { below = "", position } = this.#entries.get(key) ?? {};
    this.#entries.delete(key);
    if (below) this.write(key, below, position);
    else this.#keep(key);
  }

  /** Save over a text that someone else has changed. Throws Refusal. @param {string} key @param {string} text @param {string} [name] */
  overwrite(key, text, name = "text") {
    const entry = this.#entries.get(key);
    if (entry) entry.before[name] = text;
    entry?.refused.delete(name);
    return this.save(key);
  }

  /** Send the changes. Throws Refusal, and then keeps them. @param {string} key */
  save(key) {
    const earlier = (this.#sending.get(key) ?? Promise.resolve()).catch(() => {}); // handled by its caller
    const work = earlier.then(() => this.#send(key));
    this.#sending.set(key, work);
    return work;
  }

  /** Send changes again that the studio could not save before. mayEdit: whether the project may be edited; has(key): whether the part exists, which may have been restored. @param {boolean} mayEdit @param {(key: string) => boolean} has */
  async resend(mayEdit, has) {
    for (const [key, { isDue, problem }] of [...this.#entries]) {
      if (isDue || (problem?.status === 403 && mayEdit) || (problem?.isOfPart && has(key))) await this.#attempt(key);
    }
  }

  /** Send everything before the page is hidden or left, including pending input. */
  leave() {
    this.#typed?.dispatchEvent(new Event("change", { bubbles: true }));
    for (const [key, { changes, problem }] of this.#entries) if (Object.keys(changes).length && !problem?.isOutdated && !problem?.isOfPart) this.#attempt(key);
  }

  /** Save changes; a refusal is shown with the part, or told. @param {string} key */
  async #attempt(key) {
    try {
      await this.save(key);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      if (!key && problem.isOfRequest) this.dispatchEvent(new CustomEvent("refused", { detail: { problem } }));
    }
  }

  /** Send the changes, without those of the project that were refused; without any, this tells whether the part still exists. @param {string} key */
  async #send(key) {
    const entry = this.#entries.get(key);
    if (!entry) return;
    const changes = Object.fromEntries(Object.entries(entry.changes).filter(([name]) => !entry.refused.has(name)));
    const before = { ...entry.before };
    if (!key && !Object.keys(changes).length) return;
    entry.isSending = true;
    entry.isDue = false;
    try {
      const saved = await (key ? changePart(this.id, key, "text" in changes ? { ...changes, text_before: before.text } : changes) : changeProject(this.id, { ...changes, before }));
      entry.isSending = false;
      this.#settle(key, entry, changes, saved);
      if (Object.keys(changes).length) this.dispatchEvent(new CustomEvent("saved", { detail: { key, saved } }));
      this.#put(key, entry);
    } catch (problem) {
      entry.isSending = false;
      if (problem instanceof Refusal && this.#fail(key, entry, problem, changes)) await this.#send(key); // the others
      throw problem;
    }
  }

  /** Base input typed during the request on the saved values. @param {string} key @param {Entry} entry @param {Record<string, any>} sent @param {any} saved */
  #settle(key, entry, sent, saved) {
    entry.problem = null;
    entry.lost.clear();
    Object.assign(this.#seen, saved.replaced?.settings?.after);
    for (const [name, value] of Object.entries(sent)) {
      if (entry.changes[name] === value) delete entry.changes[name];
      else entry.before[name] = key && name !== "text" ? value : { ...saved, ...saved.settings }[name];
    }
  }

  /**
   * Return whether other changes of the project can be saved without the refused one.
   *
   * @param {string} key @param {Entry} entry @param {Refusal} problem @param {Record<string, any>} sent
   */
  #fail(key, entry, problem, sent) {
    if (this.#entries.get(key) !== entry) return false; // discarded meanwhile
    if (!key && problem.isOfRequest && problem.param !== "project") {
      const names = problem.param in sent ? [problem.param] : Object.keys(sent);
      for (const name of names) {
        if (problem.isOutdated) delete this.#seen[name]; // what it is now is told
        if (entry.changes[name] !== sent[name]) continue;
        if (this.#isText(name)) entry.refused.set(name, problem);
        else delete entry.changes[name]; // reported, and reverts
      }
      this.#put(key, entry);
      return names.length < Object.keys(sent).length;
    }
    if (key && problem.isOfPart && !("text" in entry.changes) && !entry.below) {
      this.forget(key); // likewise
      return false;
    }
    if (problem.isOfPart && !entry.problem?.isOfPart) this.dispatchEvent(new CustomEvent("gone", { detail: { key, position: entry.position } }));
    entry.problem = problem;
    entry.isDue = !problem.isOfRequest;
    if (entry.isDue) for (const [name, value] of Object.entries(sent)) entry.lost.set(name, (entry.lost.get(name) ?? new Set()).add(value));
    this.#put(key, entry);
    return false;
  }

  /** Whether a change of the project is a text that somebody has written, not a choice. @param {string} name */
  #isText(name) {
    return Boolean(this.root.querySelector(`[data-part="${name}"]`)?.matches("textarea, input:not([type])"));
  }

  /** @param {string} key @param {Entry} entry */
  #put(key, entry) {
    if (Object.keys(entry.changes).length || entry.below || entry.isSending) this.#entries.set(key, entry);
    else this.#entries.delete(key);
    this.#keep(key);
  }

  /** @param {string} key */
  #keep(key) {
    const { changes, before, position, below } = this.#entries.get(key) ?? newEntry();
    this.drafts.keep("part", key, Object.keys(changes).length ? { changes, before, position } : null);
    this.drafts.keep("below", key, below ? { text: below, position } : null);
    this.dispatchEvent(new CustomEvent("show", { detail: { key } }));
  }
}
