// One take: its request, audio and figures. Shows nothing.

import { figuresOf } from "../player/take-figures.js";
import { Track } from "../player/track.js";
import { seedOf } from "../client/requests.js";
import { soundAddress, timesAddress, wholeTake } from "../client/takes.js";
import { speakersOf } from "../client/voices.js";
import { isThroughGradio } from "../client/host.js";
import { FORMATS } from "../player/download.js";
import { expectedSeconds } from "../speak/request.js";
import { phrase } from "../lib/phrases.js";

const USUAL_PART = 300; // the default chunk_length

/** Texts for takes that did not end normally. */
const ENDINGS = {
  length: phrase("takes.ending.length"),
  stopped: phrase("takes.ending.stopped"),
  failed: phrase("takes.ending.failed"),
  broken: phrase("takes.ending.broken"),
};

function milliseconds(headers, name) {
  const value = headers.get(name);
  return value === null ? null : Number(value);
}

/** Return how a take ended, from the server's record. */
function endingOf({ state, finish_reason: reason }) {
  return state === "cancelled" ? "stopped" : state === "failed" ? "failed" : reason;
}

/** Return a voice's address without its revision. */
export const plainVoice = (address) => address.replace(/@\d+$/, "");

/** Return the page's fields for a stored take. Clips are not stored: for these, leave out the voice. */
function settingsOf({ text, voice, parameters, frames, audio_s: seconds }) {
  const { temperature, top_p: topP, top_k: topK, speed, max_new_tokens: budget } = parameters;
  const cutAfter = budget && frames ? Math.round((budget * seconds * 10) / frames) / 10 : 0;
  const own = parameters.cast ? plainVoice(parameters.voice ?? "clip") : voice; // in a dialogue, the narrator's
  const spoken = own === "clip" ? {} : { voice: own, source: "bundled" };
  const sampling = Object.entries({ temperature, topP, topK }).filter(([, value]) => value !== null); // null: the voice's own default
  return { text, ...Object.fromEntries(sampling), speed, cutAfter, ...spoken };
}

/** Return the request without defaults, for a WAV at the model's own sample rate. */
function plain({ chunk_length: part, speed, sample_rate: _own, ...request }) {
  return { ...request, response_format: "wav", ...(speed === 1 ? {} : { speed }), ...(part === USUAL_PART ? {} : { chunk_length: part }) };
}

/** isBlind: its name and settings are hidden for now. settings: the page's fields at the time. */
export class Take extends Track {
  constructor({ number, request, voiceName, settings, continues = null, isFirstOfClone = false }) {
    super();
    this.number = number;
    this.request = request;
    this.voiceName = voiceName;
    this.settings = settings;
    this.isStarred = false;
    this.isBlind = false;
    this.isFirstOfClone = isFirstOfClone;
    /** As listed by /v1/takes. @type {any} */
    this.record = null;
    /** @type {string | null} */
    this.id = null;
    /** @type {string | null} */
    this.seed = null;
    /** @type {number | null} */
    this.queueMs = null;
    /** @type {number | null} */
    this.serverMs = null;
    /** @type {number | null} */
    this.heardMs = null;
    /** @type {number | null} */
    this.rtf = null;
    /** @type {string | null} */
    this.ending = null;
    /** Whether the server can continue it after a limit cut it off. */
    this.canContinue = false;
    /** The id of the take from which it was made by regenerating a sentence. @type {string | null} */
    this.regeneratedFrom = null;
    /** The id of the take that it continues. @type {string | null} */
    this.continues = continues;
    /** Its row in a list. @type {any} */
    this.row = null;
  }

  /** Create a stored take from a record of /v1/takes; `load` and `whole` fetch its audio and settings. */
  static of(record, { number = null, voiceName = record.voice } = {}) {
    const take = new Take({ number, request: { input: record.excerpt, voice: record.voice }, voiceName, settings: null });
    const { id, seed, starred, queue_ms: queueMs, first_audio_ms: serverMs, rtf } = record;
    const { can_continue: canContinue, continues, regenerated_from: regeneratedFrom } = record;
    return Object.assign(take, { record, id, seed: String(seed), isStarred: starred, queueMs, serverMs, rtf, canContinue, continues, regeneratedFrom, ending: endingOf(record) });
  }

  /** Fetch the settings if they are not loaded. Throws Refusal. */
  async whole() {
    if (this.settings) return;
    const record = await wholeTake(this.id);
    this.request = record.request ? plain(record.request) : { ...this.request, input: record.text };
    this.settings = settingsOf(record);
  }

  /** Read the response's headers. */
  begin(headers) {
    this.id = headers.get("x-request-id");
    this.seed = headers.get("x-seed");
    this.queueMs = milliseconds(headers, "x-queue-ms");
    this.serverMs = milliseconds(headers, "x-first-audio-ms");
  }

  close(ending = this.ending) {
    this.ending = ending;
    super.close();
  }

  /** record: the server's, as returned by /v1/takes/{id}; null if it no longer exists. */
  settle(record) {
    if (!record) return;
    this.rtf = record.rtf;
    this.canContinue = record.can_continue;
    this.ending = record.finish_reason ?? this.ending;
  }

  get seconds() {
    return super.seconds || (this.record?.seconds ?? 0);
  }

  /** A host that only lends its GPU cannot convert audio, and an interrupted take cannot be repeated. */
  get formats() {
    const isWhole = Boolean(this.record?.audio) || ["stop", "length"].includes(this.ending ?? "");
    return isWhole && !isThroughGradio ? FORMATS : super.formats;
  }

  get source() {
    return this.record ? soundAddress(this.id) : null;
  }

  get timesSource() {
    const isBrokenOff = this.ending === "broken" || this.ending === "failed"; // the server did not store its word times
    return this.id && this.file && !this.isBlind && !isBrokenOff ? timesAddress(this.id) : null;
  }

  /** Whether its sentences can be regenerated; the server's error says why one cannot. */
  get canRegenerate() {
    return this.timesSource !== null && this.ending === "stop";
  }

  /** Whether it was generated without a reference, so that its audio and text can become a voice. */
  get canBeVoice() {
    const { voice, cast, ref_audio: clip } = this.request;
    return voice === "random" && !cast && !clip;
  }

  get expectedSeconds() {
    return this.file ? 0 : expectedSeconds(this.request.input);
  }

  get figures() {
    return figuresOf(this);
  }

  /** Whether it has audio. */
  get hasSound() {
    return this.file !== null || Boolean(this.record?.audio);
  }

  /** Whether it can be requested again: the user's own clip is not stored. */
  get isRepeatable() {
    return !this.record?.voice.split(", ").includes("clip");
  }

  get name() {
    return this.number === null ? phrase("takes.name.seed", { voice: speakersOf(this.record), seed: String(this.seed) }) : phrase("takes.name", { number: this.number });
  }

  get fileName() {
    const number = this.number === null ? "" : `-${this.number}`;
    if (this.isBlind) return `take${number}.wav`;
    return `take${number}-${this.request.voice || "own-clip"}-seed-${this.seed}.wav`;
  }

  get endingWords() {
    return this.canContinue ? phrase("takes.ending.continue") : (ENDINGS[this.ending] ?? "");
  }

  /** The facts for a new take that continues this one to the end of its text; its settings must be loaded. */
  get continued() {
    const { max_new_tokens: _limit, ...request } = this.repeat;
    return { request, voiceName: this.voiceName, settings: { ...this.settings, cutAfter: 0 }, continues: this.id };
  }

  /** The request that generates this exact take again. */
  get repeat() {
    return this.seed === null ? this.request : { ...this.request, seed: seedOf(this.seed) };
  }
}
