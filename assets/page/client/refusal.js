// Why the studio did not do what it was asked, in sentences for people.

/**
 * A request that was refused, or a connection that broke; `what`, `why` and `advice` are sentences for the error card.
 * isLost: nobody answers, or no more.
 */
export class Refusal extends Error {
  /** @param {{ what: string, why: string, advice: string, status?: number, retryAfter?: number | null, isLost?: boolean }} told */
  constructor({ what, why, advice, status = 0, retryAfter = null, isLost = false }) {
    super(why);
    this.what = what;
    this.why = why;
    this.advice = advice;
    this.status = status;
    this.retryAfter = retryAfter;
    this.isLost = isLost;
  }

  /** Whether another script, voice or setting may do: what was asked for is at fault, not the studio. */
  get isOfRequest() {
    return !this.isLost && this.status < 429;
  }
}

/** @type {Record<string, string>} */
const ADVICE_BY_FIELD = {
  input: "Change the script and press Speak again.",
  speed: "Open Sampling and choose another speed.",
  voice: "Choose another voice on the right.",
  ref_audio: "Record or upload 10 to 30 seconds of one person speaking, then press Speak again.",
  ref_text: "Write down exactly what is said in your clip, then press Speak again.",
  max_new_tokens: "Open Sampling and set “Cut after” to a smaller number, or to 0.",
  seed: "Open Sampling and choose a whole number, zero or larger.",
};

/** @type {Record<number, [string, string]>} */
const BY_STATUS = {
  401: ["This studio asks for a key.", "Load the page again and sign in."],
  404: ["That was not found.", "Choose another voice, then press Speak again."],
  413: ["Your clip is too large.", "Use a shorter clip: 10 to 30 seconds is best."],
  429: ["All slots are busy.", "Wait a few seconds and press Speak again."],
  500: ["The engine failed on this take.", "Press Speak again; if it fails again, save a diagnostics file under Settings."],
  503: ["The engine is not running.", "Try again in a minute. If it stays so, tell whoever runs the studio: its terminal says why."],
};

/**
 * Turn an answer that is not audio into a Refusal, from the OpenAI error envelope.
 *
 * @param {Response} response
 */
export async function refusalOf(response) {
  /** @type {{ message?: string, param?: any }} */
  let error = {};
  try {
    error = (await response.json()).error ?? {};
  } catch (problem) {
    if (!(problem instanceof SyntaxError || problem instanceof TypeError)) throw problem; // no reason, or only its beginning
  }
  const [what, advice] = BY_STATUS[response.status] ?? ["The studio could not speak this.", "Change the request and press Speak again."];
  return new Refusal({
    what,
    why: error.message ?? `The server answered ${response.status} without a reason.`,
    advice: ADVICE_BY_FIELD[error.param] ?? advice,
    status: response.status,
    retryAfter: Number(response.headers.get("retry-after")) || null,
  });
}

export function lostConnection() {
  return new Refusal({
    what: "The connection was lost.",
    why: "The studio stopped answering before the take was complete.",
    advice: "Check that the studio is still running, then press Speak again.",
    isLost: true,
  });
}

export function notConnected() {
  return new Refusal({ what: "Not connected.", why: "The studio does not answer.", advice: "Try again once it does.", isLost: true });
}
