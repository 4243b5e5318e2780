// What is typed and not saved yet, in a project or on the rest of the page, kept in this browser for when it is left: of each window apart, so that none loses another's.

import { entryOf, keep, kept } from "./storage.js";

const STORE = "unsaved-1"; // by project and window, those written last at the end, then by kind and key; of older pages by project alone, and by part
const ANSWERED = 150; // ms in which another window says that it has the project open
const MOST = 20; // drafts of closed windows that wait to be taken over, and their characters together: older ones go, before the browser's storage is full
const MOST_CHARACTERS = 1_500_000;
const closed = new Set(); // the names of those closed in this window, of which no other one need be asked

/** A window's drafts of an open project. */
export class Drafts {
  /** Those of other windows that answer. @type {Set<string>} */
  #others = new Set();
  /** @type {Record<string, any>} */
  #drafts = {};
  #isOpen = true;

  /** Without those that closed windows have left. @param {string} project @param {string} [name] of these drafts, before the page was reloaded */
  constructor(project, name) {
    this.project = project;
    this.name = name ?? nameOf(project);
    this.#drafts = kept(STORE, {})[this.name] ?? {};
    try {
      this.channel = new BroadcastChannel(`${entryOf(STORE)}-${project}`);
    } catch (problem) {
      if (problem.name !== "SecurityError") throw problem; // else nothing is stored here: there are only earlier drafts of this page
    }
    this.channel?.addEventListener("message", ({ data }) => {
      if (data.name) this.#others.add(data.name);
      else this.channel?.postMessage({ name: this.name });
      if (data.name === this.name) this.name = nameOf(project); // this window is a copy of that one
    });
    if (name) this.channel?.postMessage({});
  }

  /** Open a project's drafts, with those that closed windows have left: of several of the same thing, the newest. @param {string} project */
  static async of(project) {
    const drafts = new Drafts(project);
    for (const name of drafts.#left) if (closed.has(name)) drafts.#take(name);
    if (!drafts.#left.length) return drafts;
    drafts.channel?.postMessage({});
    await new Promise((resolve) => {
      setTimeout(resolve, ANSWERED);
    });
    for (const name of drafts.#left) drafts.#take(name);
    drafts.#forgetOld();
    return drafts;
  }

  /** The windows whose drafts are stored, the newest first, without those that are open. */
  get #left() {
    const isLeft = (/** @type {string} */ name) => `${name}/`.startsWith(`${this.project}/`) && name !== this.name && !this.#others.has(name);
    return Object.keys(kept(STORE, {})).filter(isLeft).reverse();
  }

  #forgetOld() {
    const all = kept(STORE, {});
    let room = MOST_CHARACTERS;
    const old = this.#left.filter((name, i) => (room -= JSON.stringify(all[name]).length) < 0 || i >= MOST);
    for (const name of old) delete all[name];
    if (old.length) keep(STORE, all);
  }

  /** Take over another window's drafts; if there are several of the same thing, one each time that the project is opened. @param {string} name */
  #take(name) {
    const all = Object.entries(kept(STORE, {}));
    const at = all.findIndex(([other]) => other === name);
    if (at < 0) return; // another new window was faster
    const isOld = name === this.project;
    const found = Object.entries(all[at][1]).map(([key, draft]) => [isOld ? `part/${key}` : key, draft]);
    this.#drafts = { ...Object.fromEntries(found), ...this.#drafts };
    const later = found.filter(([key, draft]) => JSON.stringify(this.#drafts[key]) !== JSON.stringify(draft));
    if (later.length) all[at] = [nameOf(this.project), Object.fromEntries(later)]; // in its place: it is as old as it was
    else all.splice(at, 1);
    keep(STORE, { ...Object.fromEntries(all), [this.name]: this.#drafts });
  }

  /** To be left to the next window that opens the project. */
  close() {
    this.#isOpen = false;
    closed.add(this.name);
    this.channel?.close();
  }

  /** @param {string} kind @returns {[string, any][]} by key */
  all(kind) {
    return Object.entries(this.#drafts).filter(([key]) => key.startsWith(`${kind}/`)).map(([key, draft]) => [key.slice(kind.length + 1), draft]);
  }

  /** @param {string} kind @param {string} key */
  get(kind, key) {
    return this.#drafts[`${kind}/${key}`];
  }

  /** What any window has stored last. @param {string} kind @param {string} key */
  latest(kind, key) {
    const ofProject = Object.entries(kept(STORE, {})).filter(([name]) => name.startsWith(`${this.project}/`));
    return ofProject.map(([, drafts]) => drafts[`${kind}/${key}`]).findLast(Boolean);
  }

  /** @param {string} kind @param {string} key @param {unknown} draft blank: none any more */
  keep(kind, key, draft) {
    const { [`${kind}/${key}`]: before, ...others } = this.#drafts;
    if (!draft && !before) return;
    this.#drafts = draft ? { ...others, [`${kind}/${key}`]: draft } : others;
    const { [this.name]: stored, ...all } = kept(STORE, {});
    if (!this.#isOpen && !stored) return; // the project was opened again, with them
    keep(STORE, Object.keys(this.#drafts).length ? { ...all, [this.name]: this.#drafts } : all);
  }
}

/** A new window's name. @param {string} project */
function nameOf(project) {
  return `${project}/${Math.random()}`;
}
