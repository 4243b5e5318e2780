// The waveform of a growing take: the loudest sample of each short interval.

export const BARS_PER_SECOND = 30;

/** Loudest sample of each bar of a growing take. */
export class Waveform {
  #room;
  #filled = 0;

  /**
   * @param {number} sampleRate
   */
  constructor(sampleRate) {
    /** @type {number[]} */
    this.bars = [];
    this.#room = Math.round(sampleRate / BARS_PER_SECOND);
  }

  /**
   * @param {Int16Array} pcm
   */
  add(pcm) {
    for (const value of pcm) {
      if (this.#filled === 0) this.bars.push(0);
      const last = this.bars.length - 1;
      this.bars[last] = Math.max(this.bars[last], Math.abs(value) / 32768);
      this.#filled = (this.#filled + 1) % this.#room;
    }
  }
}
