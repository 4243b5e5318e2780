// A .fishvoice file comes into the library; where its name is taken, under another one or as a new revision.

import { importVoice, inspectPack, voices } from "../client/voices.js";
import { partsOf } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { once } from "../lib/once.js";
import { folded } from "../speak/dialogue.js";
import { phrase } from "../lib/phrases.js";

const TAKEN = 409;

/** The first of "NAME 2", "NAME 3" … that none of the names is. */
export function freeName(name, names) {
  const taken = new Set(names.map(folded));
  let number = 2;
  while (taken.has(folded(`${name} ${number}`))) number += 1;
  return `${name} ${number}`;
}

/** Fires "begun" and "imported" with {said}. */
export class PackImport extends EventTarget {
  /** @type {File | null} */
  #file = null; // that waits for a name
  #present = ""; // the voice that has it
  #taken = new Latest();

  /** run: does what may be refused. */
  constructor(root, run) {
    super();
    this.part = partsOf(root);
    this.part("import").addEventListener("change", ({ target }) => run(() => this.#take(target)));
    const put = once((as) => run(() => this.#put(this.#file, as)));
    this.part("taken").addEventListener("submit", (event) => {
      event.preventDefault();
      put({ name: this.part("import-name").value.trim() });
    });
    this.part("replace").addEventListener("click", () => put({ replaces: this.#present }));
    this.part("import-cancel").addEventListener("click", () => this.close());
  }

  /** Ask no longer. */
  close() {
    this.#taken.end();
    this.#file = null;
    this.part("taken").hidden = true;
  }

  async #take(input) {
    const [file] = input.files;
    input.value = "";
    this.close();
    this.dispatchEvent(new Event("begun"));
    const isLatest = this.#taken.begin();
    try {
      await this.#put(file, {});
    } catch (problem) {
      if (problem.status !== TAKEN) throw problem;
      const [{ name }, listed] = await Promise.all([inspectPack(file), voices()]);
      if (!isLatest()) throw problem; // another file is asked about, or the area is left
      this.#ask(file, name, listed);
    }
  }

  #ask(file, name, listed) {
    this.#file = file;
    this.#present = listed.find((voice) => folded(voice.name) === folded(name))?.id ?? "";
    this.part("taken-words").textContent = phrase("voices.taken", { name });
    this.part("import-name").value = freeName(name, listed.map((voice) => voice.name));
    this.part("replace").hidden = !this.#present;
    this.part("taken").hidden = false;
    this.part("import-name").focus();
    this.part("import-name").select();
  }

  async #put(file, as) {
    const voice = await importVoice(file, as);
    if (this.#file === file) this.close();
    const said = phrase(as.replaces ? "voices.replaced" : "voices.imported", { name: voice.name });
    this.dispatchEvent(new CustomEvent("imported", { detail: { said } }));
  }
}
