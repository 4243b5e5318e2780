// The draft of a voice: its clip, cut and transcript, and the facts known of them. Set by the steps; shows nothing.

/** Fires "change" with {names} of changed properties. */
export class Draft extends EventTarget {
  /** @type {Blob | null} */
  clip = null;
  source = ""; // recorded, uploaded or kept, in words
  /** Decoded; null if the browser cannot read it. @type {import("./decoded-clip.js").Clip | null} */
  sound = null;
  isDecoded = false; // or the browser could not decode it
  /** As in the API. @type {any} */
  cut = null;
  denoise = false; // whether to reduce noise
  /** As returned by /v1/voices/advise for this exact cut. @type {any} */
  advice = null;
  isJudging = false; // a request for advice is pending
  isRead = false; // the server has checked the clip
  refused = ""; // why it cannot be used at all
  words = "";
  heard = ""; // the transcript by speech recognition
  language = "";
  description = ""; // from which the voice was made up
  isMadeUp = false; // by the model: nobody has to agree to its use
  /** The voice to add the clip to, null for a new one. @type {any} */
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

  /** The sample in the library's format. */
  get sample() {
    return { clip: this.clip, words: this.words.trim(), cut: this.cut, denoise: this.denoise };
  }
}
