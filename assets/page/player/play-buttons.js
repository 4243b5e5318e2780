// Buttons that play and pause audio: `data-playing` marks the one whose audio is playing.

export class PlayButtons {
  /** @type {HTMLButtonElement | null} */
  #button = null;
  /** @type {import("./track.js").Track | null} */
  #track = null;

  constructor(nowPlaying) {
    this.nowPlaying = nowPlaying;
    for (const type of ["show", "state"]) nowPlaying.addEventListener(type, () => this.#mark());
  }

  /** Play a track, or pause if this button's is playing. Throws Refusal. */
  async press(button, track) {
    if (button.dataset.playing) return this.nowPlaying.pause();
    this.nowPlaying.player.wake();
    this.#unmark();
    [this.#button, this.#track] = [button, track];
    await this.nowPlaying.play(track);
  }

  /** Pause any playback, also if not started by these buttons. */
  pause() {
    this.nowPlaying.pause();
  }

  #mark() {
    const { current, isPlaying } = this.nowPlaying;
    if (this.#button && current === this.#track && isPlaying) this.#button.dataset.playing = "yes";
    else this.#unmark();
  }

  #unmark() {
    if (this.#button) delete this.#button.dataset.playing;
  }
}
