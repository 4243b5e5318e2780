// An audio track for the player: arrives in pieces and becomes a file once complete. Shows nothing.

import { lostConnection, notConnected, refusalOf } from "../client/refusal.js";
import { send } from "../client/requests.js";
import { soundOf } from "../client/sound.js";
import { phrase } from "../lib/phrases.js";
import { floats, WAV_HEADER_BYTES, wavFile } from "../lib/wav.js";
import { Waveform } from "./waveform.js";

async function soundAt(source) {
  const response = await send(source, { cache: "no-cache" }).catch(() => Promise.reject(notConnected()));
  if (!response.ok) throw await refusalOf(response);
  return response;
}

/**
 * What the player says of a track in a state; undefined: what it said before.
 *
 * @param {any} track
 * @param {string} state
 * @returns {string | undefined}
 */
export function said({ file, name, ending, endingWords }, state) {
  if (state === "playing") return file ? phrase("player.playing", { name }) : phrase("player.speaking");
  if (state === "waiting") return file ? undefined : phrase("player.waiting");
  return ending === "length" ? endingWords : [name, endingWords.toLowerCase()].filter(Boolean).join(": ");
}

/** Holds pieces until the track is closed, then file is a WAV blob. */
export class Track {
  sampleRate = 0;
  samples = 0;
  underruns = 0;
  /** When it was requested, in ms of performance.now(); null if it is not played during generation. @type {number | null} */
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

  /** Its display name. @returns {string} */
  get name() {
    return "";
  }

  /** Its name for downloads. @returns {string} */
  get fileName() {
    return "";
  }

  /** The formats in which it can be downloaded. @returns {string[]} */
  get formats() {
    return ["wav"];
  }

  /** Address of its WAV, for fetching. @returns {string | null} */
  get source() {
    return null;
  }

  /** Address of its word times; null while it is incomplete. @returns {string | null} */
  get timesSource() {
    return null;
  }

  /** Why it ended early, in words; usually blank. @returns {string} */
  get endingWords() {
    return "";
  }

  /** [name, value] pairs on its generation. @returns {[string, any][]} */
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

  /** Requests its audio, for a WAV response; null while it cannot be requested. @returns {(() => Promise<Response>) | null} */
  get ask() {
    const { source } = this;
    return source ? () => soundAt(source) : null;
  }

  /** Fetch the audio if it is not loaded. Throws Refusal. */
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

  /** Turn the received pieces into a file and release them. */
  close() {
    this.file = wavFile(this.pieces, this.sampleRate);
    this.url ??= URL.createObjectURL(this.file);
    this.pieces = [];
  }

  /** Return its samples, once there is a file. */
  async pcm() {
    const bytes = await (this.file ?? new Blob()).slice(WAV_HEADER_BYTES).arrayBuffer();
    return new Int16Array(bytes);
  }

  /** Return its samples as floats for the player, once there is a file. */
  async heard() {
    return floats(await this.pcm());
  }

  /** It left all lists: release its file once the player no longer offers it. */
  drop() {
    this.#isDropped = true;
    if (this.url && !this.#isHeld) URL.revokeObjectURL(this.url);
  }

  /** It is in the player now. */
  hold() {
    this.#isHeld = true;
  }

  /** The player has another track now. */
  leave() {
    this.#isHeld = false;
    if (this.#isDropped) this.drop();
  }

  #empty() {
    this.pieces = [];
    this.samples = 0;
    this.waveform = null;
  }

  /** Release the audio, which can be fetched again. */
  forget() {
    this.#empty();
    this.file = null;
  }
}

/** A complete track: a recording, a sample, a part of a project. Its audio is only loaded while it is in the player. */
export class Recorded extends Track {
  #facts;

  /**
   * source: address of its WAV; ask: generates it, for a WAV response; neither if its pieces are added. pause:
   * seconds of silence that belong to it. of: its {project, part, position}, which may change. times: the address of its
   * word times. regenerate: returns the next track, with new sentences, and its undo; mayRegenerate: whether the caller may.
   *
   * @param {{ name: string | (() => string), source?: string | null, ask?: () => Promise<Response>, fileName?: string, pause?: number, of?: any, times?: string,
   *   mayRegenerate?: () => boolean, regenerate?: (span: { text: string, start: number, end: number, replacement?: string }) => Promise<{ next: Track, undo: () => unknown }> }} facts
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

  /** The id of its take. */
  get id() {
    return this.of?.take ?? null;
  }

  /** Whether its sentences can be regenerated; the server's error says why one cannot. */
  get canRegenerate() {
    return this.timesSource !== null && this.regenerate !== undefined && this.#facts.mayRegenerate?.() !== false;
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
