// The page's way to the HTTP API: ask for speech, read a refusal, watch the engine's health. It shows nothing.

const root = (window.gradio_config?.root ?? window.location.origin).replace(/\/$/, "");

export function address(path) {
  const url = new URL(root, window.location.href);
  return `${window.location.origin}${url.pathname.replace(/\/$/, "")}${path}`;
}

/** Whether requests need a key; the page's own are signed in. */
export const needsKey = document.querySelector("meta[name=studio-keys]")?.content === "needed";

/** Whether a GPU is lent to Gradio's requests alone: then speech goes that way, and only as WAV. */
export const isLent = document.querySelector("meta[name=studio-profile]")?.content === "zero";

/** A request that was refused, or a connection that broke; `what`, `why` and `advice` are sentences for the card. */
export class Refusal extends Error {
  constructor({ what, why, advice, status = 0, retryAfter = null }) {
    super(why);
    Object.assign(this, { what, why, advice, status, retryAfter });
  }
}

const ADVICE_BY_FIELD = {
  input: "Change the script and press Speak again.",
  speed: "Open Sampling and choose another speed.",
  voice: "Choose another voice on the right.",
  ref_audio: "Record or upload 10 to 30 seconds of one person speaking, then press Speak again.",
  ref_text: "Write down exactly what is said in your clip, then press Speak again.",
  max_new_tokens: "Open Sampling and let the take be cut earlier, or never.",
  seed: "Open Sampling and choose a whole number, zero or larger.",
};

const BY_STATUS = {
  401: ["This studio asks for a key.", "Load the page again and sign in."],
  404: ["That was not found.", "Choose another voice, then press Speak again."],
  413: ["Your clip is too large.", "Use a shorter clip: 10 to 30 seconds is best."],
  429: ["Everyone is speaking at once.", "Wait a few seconds and press Speak again."],
  500: ["The engine failed on this take.", "Press Speak again; if it fails again, read the terminal."],
  503: ["The engine is not running.", "Read the terminal for the cause, then start the studio again."],
};

/** Turn an answer that is not audio into a Refusal, from the OpenAI error envelope. */
export async function refusalOf(response) {
  let error = {};
  try {
    error = (await response.json()).error ?? {};
  } catch (problem) {
    if (!(problem instanceof SyntaxError)) throw problem;
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
  });
}

/** POST the request; the answer is a streaming WAV. Raises Refusal, or AbortError after signal.abort(). */
export async function askForSpeech(request, signal) {
  if (isLent) return (await import("./zerogpu.js")).speakThroughGradio(request, signal);
  let response;
  try {
    response = await fetch(address("/v1/audio/speech"), {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(request),
      signal,
    });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw lostConnection();
  }
  if (!response.ok) throw await refusalOf(response);
  return response;
}

/** What the server's own clock says of a take; null when it does not know it any more. */
export function takeRecord(id) {
  return readJson(`/v1/takes/${encodeURIComponent(id)}`);
}

/** The engine's state: {status, ...} as /health gives it, or {status: "unreachable"}. */
export async function health() {
  try {
    const response = await fetch(address("/health"), { cache: "no-store" });
    return await response.json();
  } catch (problem) {
    if (problem instanceof TypeError || problem instanceof SyntaxError) return { status: "unreachable" };
    throw problem;
  }
}

/** All voices to speak in: {id, name, bundled, …}. */
export async function voices() {
  return (await readJson("/v1/audio/voices"))?.voices ?? [];
}

async function readJson(path, options) {
  const response = await fetch(address(path), options);
  return response.ok ? response.json() : null;
}

/** How full engine and line are; null while there is no engine. */
export function queue() {
  return readJson("/v1/queue", { cache: "no-store" });
}

/** This caller's requests, under way and recent, newest first. */
export async function recentTakes() {
  return (await readJson("/v1/takes", { cache: "no-store" }))?.data ?? [];
}

/** End a request that waits or speaks; one that has ended meanwhile is no error. */
export function cancelRequest(id) {
  return readJson(`/v1/requests/${encodeURIComponent(id)}`, { method: "DELETE" });
}

/** What this studio is: settings in force, versions, storage; null when it does not answer so. */
export function studioFacts() {
  return readJson("/v1/settings", { cache: "no-store" });
}

/** Forget the key that this browser was signed in with, and ask for one. */
export async function signOut() {
  await fetch(address("/sign-out"), { method: "POST", redirect: "manual" });
  location.reload();
}
