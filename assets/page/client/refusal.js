// Explains failed requests to the user in sentences.

import { phrase } from "../lib/phrases.js";

/** Fires "lost" when the studio does not respond or the connection breaks. */
export const connection = new EventTarget();

/**
 * A refused request or a broken connection; `what`, `why` and `advice` are sentences for the error card.
 * status, code, param: as sent by the server. retryAfter: in seconds. isLost: no response, or the connection broke.
 */
export class Refusal extends Error {
  /** @param {{ what: string, why: string, advice: string, status?: number, code?: string, param?: string, retryAfter?: number | null, isLost?: boolean, field?: string }} facts field: selects the one to fill in */
  constructor({ what, why, advice, status = 0, code = "", param = "", retryAfter = null, isLost = false, field = "" }) {
    super(why);
    this.what = what;
    this.why = why;
    this.advice = advice;
    this.status = status;
    this.code = code;
    this.param = param;
    this.retryAfter = retryAfter;
    this.isLost = isLost;
    this.field = field;
    if (isLost) connection.dispatchEvent(new Event("lost"));
  }

  /** Whether the request was based on data that has changed since. */
  get isOutdated() {
    return this.status === 412;
  }

  /** Whether a project has no such part any more. */
  get isOfPart() {
    return this.status === 404 && this.param === "part";
  }

  /** Whether the request is at fault rather than the studio: another script, voice or setting may work. */
  get isOfRequest() {
    return !this.isLost && this.status < 429 && ![401, 408].includes(this.status);
  }
}

/** @type {Record<string, string>} */
const ADVICE_BY_FIELD = {
  input: phrase("refusal.input"),
  speed: phrase("refusal.speed"),
  voice: phrase("refusal.voice"),
  ref_audio: phrase("refusal.clip"),
  ref_text: phrase("refusal.clipWords"),
  max_new_tokens: phrase("refusal.cutAfter"),
  seed: phrase("refusal.seed"),
};

/** The labels of fields that a person fills in, by their names in the API. @type {Record<string, string>} */
const LABELS = {
  input: phrase("speak.script"),
  ref_text: phrase("speak.clip.words"),
  speed: phrase("speak.speed"),
  temperature: phrase("speak.temperature"),
  top_p: phrase("speak.topP"),
  top_k: phrase("speak.topK"),
  seed: phrase("speak.seed"),
  text: phrase("player.text"),
  title: phrase("import.name"),
  author: phrase("project.author"),
  replace: phrase("project.replacement"),
  phrase: phrase("dictionary.phrase"),
  said: phrase("dictionary.said"),
  name: phrase("voice.name"),
  description: phrase("voice.description"),
  tags: phrase("voice.tags"),
  language: phrase("voice.language"),
};

/** Reasons that the server gives in the terms of programs, by field. @type {Record<string, [RegExp, string]>} */
const REASONS = {
  max_new_tokens: [/^max_new_tokens: Input/, phrase("refusal.cutAfter.why")], // a number of frames
  ref_text: [/^ref_text is (blank|missing)/, phrase("speak.clip.noWords.why")], // how to send it
};

/** @type {Record<number, [string, string]>} */
const BY_STATUS = {
  401: [phrase("refusal.401"), ""],
  404: [phrase("refusal.404"), phrase("refusal.404.advice")],
  413: [phrase("speak.clip.large"), phrase("speak.clip.shorter")],
  429: [phrase("refusal.429"), phrase("refusal.429.advice")],
  500: [phrase("refusal.500"), phrase("refusal.500.advice")],
  503: [phrase("refusal.503"), phrase("refusal.503.advice")],
};

/**
 * The server's message as a sentence of the page; a first word that is the name of a file, or of a field without a label, stays as it is.
 *
 * @param {string} message
 * @param {string} [field]
 */
function sentence(message, field = "") {
  if (REASONS[field]?.[0].test(message)) return REASONS[field][1];
  const [begin, name] = message.match(/^(\w+)(?:: (?:Input|String))? /) ?? ["", ""];
  if (name === field && LABELS[field]) return `“${LABELS[field]}” ${message.slice(begin.length)}`;
  return message.replace(/^\p{Ll}(?=\p{L}*[ ,])/u, (letter) => letter.toLocaleUpperCase());
}

/**
 * Convert an error response in OpenAI's format to a Refusal.
 *
 * @param {Response} response
 */
export async function refusalOf(response) {
  /** @type {{ message?: string, param?: any, code?: string }} */
  let error = {};
  try {
    error = (await response.json()).error ?? {};
  } catch (problem) {
    if (!(problem instanceof SyntaxError || problem instanceof TypeError)) throw problem; // the reason is missing or incomplete
  }
  if (response.status === 404 && !error.message) return notConnected(); // from a proxy or tunnel: the studio is away, and its own 404 gives a reason
  const [what, advice] = BY_STATUS[response.status] ?? [phrase("refusal.other"), phrase("refusal.other.advice")];
  return new Refusal({
    what,
    why: response.status === 401 ? phrase("refusal.401.why") : (error.message ? sentence(error.message, error.param) : phrase("refusal.noReason", { status: String(response.status) })), // the server's is for programs
    advice: ADVICE_BY_FIELD[error.param] ?? advice,
    status: response.status,
    code: error.code,
    param: error.param ?? "",
    retryAfter: Number(response.headers.get("retry-after")) || null,
  });
}

export function lostConnection() {
  return new Refusal({
    what: phrase("refusal.lost"),
    why: phrase("refusal.lost.why"),
    advice: phrase("refusal.lost.advice"),
    isLost: true,
  });
}

export function notConnected() {
  return new Refusal({ what: phrase("refusal.notConnected"), why: phrase("refusal.notConnected.why"), advice: phrase("refusal.notConnected.advice"), isLost: true });
}

/** A file that was chosen has been changed or deleted since: browsers do not send it any more. */
export const fileChanged = () => new Refusal({ what: "", why: phrase("refusal.file"), advice: "" });
