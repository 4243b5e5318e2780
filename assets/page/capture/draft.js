// A voice on its way: its clip, the cut, the words, and what is known of them. The steps write it, nothing here shows it.

/** Fires "change" with {names} of what was changed. */
export class Draft extends EventTarget {
  /** @type {Blob | null} */
  clip = null;
  source = ""; // recorded, uploaded or kept, in words
  /** Decoded; null for what the browser cannot read. @type {import("./decoded-clip.js").Clip | null} */
  sound = null;
  isDecoded = false; // or the browser has found that it cannot
  /** As the API has it. @type {any} */
  cut = null;
  denoise = false; // its noise is reduced
  /** As /v1/voices/advise gave it for this very cut. @type {any} */
  advice = null;
  isJudging = false; // the server is asked for advice
  isRead = false; // the server has looked at the clip
  refused = ""; // why it cannot be used at all
  words = "";
  heard = ""; // a recogniser's words
  language = "";
  /** The one that the clip is added to, null for a new one. @type {any} */
  voice = null;

  set(changes) {
    const names = Object.keys(changes).filter((name) => this[name] !== changes[name]);
    if (names.includes("clip")) {
      this.sound?.close();
      this.sound = null;
      this.isDecoded = false;
      this.cut = null;
      this.denoise = false;
      this.advice = null;
      this.heard = "";
      this.isRead = false;
      this.refused = "";
      names.push("cut");
    }
    Object.assign(this, changes);
    if (names.length) this.dispatchEvent(new CustomEvent("change", { detail: { names } }));
  }

  /** As the library takes it. */
  get sample() {
    return { clip: this.clip, words: this.words.trim(), cut: this.cut, denoise: this.denoise };
  }
}
