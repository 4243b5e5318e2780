// One sound at a time beside the player: recordings and introductions, each begun and ended by its own button.

/** Plays what a button stands for; `data-playing` marks the button meanwhile. */
export class PreviewPlayer {
  #sound = new Audio();
  /** @type {HTMLButtonElement | null} */
  #button = null;

  constructor() {
    for (const type of ["ended", "pause", "error"]) this.#sound.addEventListener(type, () => this.#mark(null));
  }

  /** Play an address, or stop when this button plays already. */
  async toggle(button, address) {
    const isSame = this.#button === button;
    this.stop();
    if (isSame) return;
    this.#sound.src = address;
    this.#mark(button);
    try {
      await this.#sound.play();
    } catch (problem) {
      if (problem.name !== "AbortError") throw problem; // another sound was asked for meanwhile
    }
  }

  stop() {
    this.#sound.pause();
    this.#mark(null);
  }

  #mark(button) {
    if (this.#button) delete this.#button.dataset.playing;
    this.#button = button;
    if (button) button.dataset.playing = "yes";
  }
}
