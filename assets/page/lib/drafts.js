// What is typed in a project and not saved yet, kept in this browser for when the project or the page is left: of each window apart, so that none loses another's.

import { entryOf, keep, kept } from "./storage.js";

const STORE = "unsaved-1"; // by project and window, then by kind and key; of older pages by project alone, and by part
const ANSWERED = 150; // ms in which another window says that it has the project open
const closed = new Set(); // the names of those closed in this window, of which no other one need be asked

/** A window's drafts of an open project. */
export class Drafts {
  /** Those of other windows that answer. @type {Set<string>} */
  #others = new Set();
  /** @type {Record<string, any>} */
  #drafts = {};
  #isOpen = true;

  /** Without those that closed windows have left. @param {string} project */
  constructor(project) {
    this.project = project;
    this.name = `${project}/${Math.random()}`;
    try {
      this.channel = new BroadcastChannel(`${entryOf(STORE)}-${project}`);
    } catch (problem) {
      if (problem.name !== "SecurityError") throw problem; // else nothing is stored here: there are only earlier drafts of this page
    }
    this.channel?.addEventListener("message", ({ data }) => {
      if (data.name) this.#others.add(data.name);
      else this.channel?.postMessage({ name: this.name });
    });
  }

  /** Open a project's drafts, with those that closed windows have left. @param {string} project */
  static async of(project) {
    const drafts = new Drafts(project);
    for (const name of drafts.#left) if (closed.has(name)) drafts.#take(name);
    if (!drafts.#left.length) return drafts;
    drafts.channel?.postMessage({});
    await new Promise((resolve) => {
      setTimeout(resolve, ANSWERED);
    });
    for (const name of drafts.#left) drafts.#take(name);
    return drafts;
  }

  /** The windows whose drafts are stored, without those that are open. */
  get #left() {
    const isLeft = (/** @type {string} */ name) => `${name}/`.startsWith(`${this.project}/`) && name !== this.name && !this.#others.has(name);
    return Object.keys(kept(STORE, {})).filter(isLeft);
  }

  /** Take over another window's drafts; if there are several of the same thing, one each time that the project is opened. @param {string} name */
  #take(name) {
    const { [name]: left, ...all } = kept(STORE, {});
    const isOld = name === this.project;
    const found = Object.entries(left).map(([key, draft]) => [isOld ? `part/${key}` : key, draft]);
    this.#drafts = { ...Object.fromEntries(found), ...this.#drafts };
    const later = Object.fromEntries(found.filter(([key, draft]) => this.#drafts[key] !== draft));
    if (Object.keys(later).length) all[`${this.project}/${Math.random()}`] = later;
    keep(STORE, { ...all, [this.name]: this.#drafts });
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
