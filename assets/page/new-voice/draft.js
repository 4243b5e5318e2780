// A voice on its way: its clip, the cut, the words, and what is known of them. The steps write it, nothing here shows it.

/** Fires "change" with {names} of what was changed. */
export class Draft extends EventTarget {
  static #EMPTY = { clip: null, source: "", sound: null, cut: null, advice: null, words: "", heard: "", language: "", voice: null };

  constructor() {
    super();
    this.clear();
  }

  /** clip: Blob; source: recorded, uploaded or kept; sound: the decoded Clip, null for what the browser cannot read; cut as
   * the API has it; advice as /v1/voices/advise gave it for this very cut, else null; heard: a recogniser's words;
   * voice: the one that the clip is added to, null for a new one. */
  clear() {
    this.sound?.close();
    Object.assign(this, Draft.#EMPTY);
  }

  set(changes) {
    const names = Object.keys(changes).filter((name) => this[name] !== changes[name]);
    if (names.includes("clip")) {
      this.sound?.close();
      Object.assign(this, { sound: null, cut: null, advice: null, heard: "" });
      names.push("cut");
    }
    Object.assign(this, changes);
    if (names.length) this.dispatchEvent(new CustomEvent("change", { detail: { names } }));
  }

  /** As the library takes it. */
  get sample() {
    return { clip: this.clip, words: this.words.trim(), cut: this.cut };
  }
}
