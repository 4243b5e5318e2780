// A sound for the player: it arrives in pieces and is a file once complete. It shows nothing.

import { lostConnection, notConnected, refusalOf } from "../client/refusal.js";
import { send } from "../client/requests.js";
import { soundOf } from "../client/sound.js";
import { floats, WAV_HEADER_BYTES, wavFile } from "../lib/wav.js";
import { Waveform } from "./waveform.js";

async function soundAt(source) {
  const response = await send(source, { cache: "no-cache" }).catch(() => Promise.reject(notConnected()));
  if (!response.ok) throw await refusalOf(response);
  return response;
}

/** Pieces are there until the track is closed, then file is a WAV blob. */
export class Track {
  sampleRate = 0;
  samples = 0;
  underruns = 0;
  /** When it was asked for, in milliseconds of performance.now(), null if it is not heard while it is made. @type {number | null} */
  pressedAt = null;
  /** @type {Int16Array<ArrayBuffer>[]} */
  pieces = [];
  /** @type {Waveform | null} */
  waveform = null;
  /** @type {Blob | null} */
  file = null;
  /** Where it can be saved from. @type {string | null} */
  url = null;
  /** @type {Promise<void> | null} */
  #loading = null;
  #isHeld = false;
  #isDropped = false;

  /** What it is called. @returns {string} */
  get name() {
    return "";
  }

  /** As what it is saved. @returns {string} */
  get fileName() {
    return "";
  }

  /** The formats in which it can be downloaded. @returns {string[]} */
  get formats() {
    return ["wav"];
  }

  /** Where a WAV of it is when it is not here. @returns {string | null} */
  get source() {
    return null;
  }

  /** Where it is told when its words are heard; null while it is not whole. @returns {string | null} */
  get timesSource() {
    return null;
  }

  /** What ended it before its end, in words; mostly nothing. @returns {string} */
  get endingWords() {
    return "";
  }

  /** [name, value] each, of how it was made. @returns {[string, any][]} */
  get figures() {
    return [];
  }

  /** The probable length in seconds, while the real one is unknown. */
  get expectedSeconds() {
    return 0;
  }

  get seconds() {
    return this.sampleRate ? this.samples / this.sampleRate : 0;
  }

  /** Asks for its sound, for an answer that is a WAV; null while nobody can be asked. @returns {(() => Promise<Response>) | null} */
  get ask() {
    const { source } = this;
    return source ? () => soundAt(source) : null;
  }

  /** Fetch the sound if it is not here. Raises Refusal. */
  async load() {
    if (this.file || !this.ask) return;
    this.#loading ??= this.#fetch(this.ask);
    try {
      await this.#loading;
    } finally {
      this.#loading = null;
    }
  }

  async #fetch(ask) {
    const response = await ask();
    this.#empty();
    for await (const { sampleRate, pcm } of soundOf(response)) this.add(sampleRate, pcm);
    if (!this.samples) throw lostConnection();
    this.close();
  }

  add(sampleRate, pcm) {
    this.sampleRate = sampleRate;
    this.waveform ??= new Waveform(sampleRate);
    this.waveform.add(pcm);
    this.pieces.push(pcm);
    this.samples += pcm.length;
  }

  /** Turn what was received into a file; the pieces are let go. */
  close() {
    this.file = wavFile(this.pieces, this.sampleRate);
    this.url ??= URL.createObjectURL(this.file);
    this.pieces = [];
  }

  /** Its samples, once there is a file. */
  async pcm() {
    const bytes = await (this.file ?? new Blob()).slice(WAV_HEADER_BYTES).arrayBuffer();
    return new Int16Array(bytes);
  }

  /** Its samples as the player wants them, once there is a file. */
  async heard() {
    return floats(await this.pcm());
  }

  /** No list shows it any more: release its file once the player does not offer it either. */
  drop() {
    this.#isDropped = true;
    if (this.url && !this.#isHeld) URL.revokeObjectURL(this.url);
  }

  /** The player is about it now. */
  hold() {
    this.#isHeld = true;
  }

  /** The player is about something else now. */
  leave() {
    this.#isHeld = false;
    if (this.#isDropped) this.drop();
  }

  #empty() {
    this.pieces = [];
    this.samples = 0;
    this.waveform = null;
  }

  /** Let the sound go, which can be fetched again. */
  forget() {
    this.#empty();
    this.file = null;
  }
}

/** A sound of the studio that is whole: a recording, a sample, a part of a project. It is here only while it is heard. */
export class Recorded extends Track {
  #facts;

  /**
   * source: where its WAV is; ask: has it made, for an answer that is a WAV; neither for one whose pieces are given. pause:
   * seconds of silence that belong to it. of: its {project, part, position}, which may change. times: the address of its
   * word times. regenerate: gives the next track, with other sentences, and what undoes that.
   *
   * @param {{ name: string | (() => string), source?: string | null, ask?: () => Promise<Response>, fileName?: string, pause?: number, of?: any, times?: string,
   *   regenerate?: (span: { text: string, start: number, end: number, replacement?: string }) => Promise<{ next: Track, undo: () => unknown }> }} facts
   */
  constructor(facts) {
    super();
    this.#facts = facts;
    this.url = facts.source ?? null;
  }

  get name() {
    const { name } = this.#facts;
    return typeof name === "function" ? name() : name;
  }

  get fileName() {
    return this.#facts.fileName ?? `${this.name}.wav`;
  }

  get source() {
    return this.#facts.source ?? null;
  }

  get ask() {
    return this.#facts.ask ?? super.ask;
  }

  get timesSource() {
    return this.file ? (this.#facts.times ?? null) : null;
  }

  get of() {
    return this.#facts.of ?? null;
  }

  /** Of the take that it is. */
  get id() {
    return this.of?.take ?? null;
  }

  /** Whether its sentences can be regenerated: why one cannot, the server says. */
  get canMend() {
    return this.timesSource !== null && this.regenerate !== undefined;
  }

  get regenerate() {
    return this.#facts.regenerate;
  }

  async heard() {
    const sound = await super.heard();
    const whole = new Float32Array(sound.length + Math.round((this.#facts.pause ?? 0) * this.sampleRate));
    whole.set(sound);
    return whole;
  }

  leave() {
    super.leave();
    if (this.source) this.forget();
    else this.drop();
  }
}
