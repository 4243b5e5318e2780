// The studio itself: its engine's health, its line, its settings, and signing out.

import { address } from "./address.js";
import { ask, askForKeysBy, json, readJson } from "./requests.js";

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

/** How full engine and line are; null while there is no engine. */
export function queue() {
  return readJson("/v1/queue", { cache: "no-store" });
}

/**
 * End a request that waits or speaks; one that has ended meanwhile is no error.
 *
 * @param {string} id
 */
export function cancelRequest(id) {
  return readJson(`/v1/requests/${encodeURIComponent(id)}`, { method: "DELETE" });
}

/** What this studio is: settings in force, versions, storage; null when it does not answer so. */
export function studioFacts() {
  return readJson("/v1/settings", { cache: "no-store" });
}

/**
 * Sign this browser in with a key; the answer's status: 200 for a key that is known, 0 where nobody answers.
 *
 * @param {string} key
 */
export async function signIn(key) {
  try {
    const response = await fetch(address("/sign-in"), { method: "POST", body: new URLSearchParams({ key }) });
    return response.status;
  } catch (problem) {
    if (problem instanceof TypeError) return 0;
    throw problem;
  }
}

/** Forget the key that this browser was signed in with, and ask for one. */
export async function signOut() {
  askForKeysBy(async () => false); // the page is about to be left
  await readJson("/sign-out", { method: "POST", redirect: "manual" });
  location.reload();
}

const MODEL = "/v1/engine/model";
/** @param {string} name */
const downloadOf = (name) => `${MODEL}s/${encodeURIComponent(name)}/download`;

/** {model, status, doing, progress, switching_to, can_cancel, cannot_switch, fixed_by_setting, error, downloads}. Raises Refusal. */
export function engineModel() {
  return ask(MODEL);
}

/** Whether this visitor may choose the studio's model. */
export async function mayChooseModel() {
  return Boolean(await readJson(MODEL));
}

/**
 * The same, with the models as `data`: those on offer, and the one at a path on the studio's machine.
 *
 * @param {string} path
 */
export function engineModels(path) {
  return ask(`${MODEL}s${path ? `?${new URLSearchParams({ path })}` : ""}`);
}

/**
 * Load another model. Returns as engineModel().
 *
 * @param {string} model
 */
export function switchModel(model) {
  return ask(MODEL, json("PUT", { model }));
}

/** Keep the model that is loaded, while others' speech is waited for. */
export function keepModel() {
  return ask(MODEL, { method: "DELETE" });
}

/** @param {string} name */
export function downloadModel(name) {
  return ask(downloadOf(name), { method: "POST" });
}

/** @param {string} name */
export function cancelModelDownload(name) {
  return ask(downloadOf(name), { method: "DELETE" });
}
