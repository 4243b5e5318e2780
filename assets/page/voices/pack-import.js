// Imports a .fishvoice file into the library; if its name is taken, under another one or as a new revision. Also imports
// a folder of fish-speech's references, or a zip of it, in which each folder is a voice.

import { importFolder, importVoice, inspectPack, voices } from "../client/voices.js";
import { partsOf } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { once } from "../lib/once.js";
import { folded } from "../speak/dialogue.js";
import { phrase } from "../lib/phrases.js";

const TAKEN = 409;

/** The first of "NAME 2", "NAME 3" … that is not among the names. */
export function freeName(name, names) {
  const taken = new Set(names.map(folded));
  let number = 2;
  while (taken.has(folded(`${name} ${number}`))) number += 1;
  return `${name} ${number}`;
}

/** The message about an imported voice, or about a folder's voices and the files left out. */
function messageOf({ name, data, refused }) {
  if (!data) return phrase("voices.imported", { name });
  const sentences = [phrase("voices.folder.imported", { count: data.length })];
  if (refused.length) {
    const files = refused.map((file) => `${file.name}: ${file.message}`).join("; ");
    sentences.push(phrase("voices.folder.refused", { files }));
  }
  return sentences.join(" ");
}

/** Fires "begun" and "imported" with {message, id}; id: the voice's, if it is a single one. */
export class PackImport extends EventTarget {
  /** @type {File | null} */
  #file = null; // to be imported once a name is chosen
  #present = ""; // id of the voice with its name
  #taken = new Latest();

  /** run: runs work that may be refused. */
  constructor(root, run) {
    super();
    this.part = partsOf(root);
    this.part("import").addEventListener("change", ({ target }) => run(() => this.#take(target)));
    this.part("import-folder").addEventListener("change", ({ target }) => run(() => this.#takeFolder(target)));
    const put = once((as) => run(() => this.#put(this.#file, as)));
    this.part("taken").addEventListener("submit", (event) => {
      event.preventDefault();
      put({ name: this.part("import-name").value.trim() });
    });
    this.part("replace").addEventListener("click", () => put({ replaces: this.#present }));
    this.part("import-cancel").addEventListener("click", () => this.close());
  }

  /** Discard the question about a taken name. */
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
      if (!isLatest()) throw problem; // another file was chosen, or the area was left
      this.#ask(file, name, listed);
    }
  }

  async #takeFolder(input) {
    const files = [...input.files];
    input.value = "";
    this.close();
    this.dispatchEvent(new Event("begun"));
    this.#say(messageOf(await importFolder(files)));
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
    const answer = await importVoice(file, as);
    if (this.#file === file) this.close();
    this.#say(as.replaces ? phrase("voices.replaced", { name: answer.name }) : messageOf(answer), answer.id);
  }

  #say(message, id = "") {
    this.dispatchEvent(new CustomEvent("imported", { detail: { message, id } }));
  }
}
