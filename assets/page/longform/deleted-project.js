// A project that was deleted here and can still be brought back: the server is told after a while, or when the page is left.

import { deleteProject } from "../client/projects.js";
import { Refusal } from "../client/refusal.js";

const UNDO = 15_000; // ms

/** Fires "change" when there is one, another one or none any more. */
export class DeletedProject extends EventTarget {
  /** @type {{ id: string, title: string } | null} */
  #project = null;
  #timer = 0;

  constructor() {
    super();
    addEventListener("pagehide", () => this.finish());
  }

  /** {id, title}, null for none. */
  get project() {
    return this.#project;
  }

  put(project) {
    this.finish();
    this.#project = project;
    this.#timer = setTimeout(() => this.finish(), UNDO);
    this.dispatchEvent(new CustomEvent("change"));
  }

  undo() {
    clearTimeout(this.#timer);
    this.#project = null;
    this.dispatchEvent(new CustomEvent("change"));
  }

  /** Have the server delete it now. */
  async finish() {
    const project = this.#project;
    if (!project) return;
    clearTimeout(this.#timer);
    this.#project = null;
    try {
      await deleteProject(project.id);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem; // else it is in the list again, or was gone before
    }
    this.dispatchEvent(new CustomEvent("change"));
  }
}
