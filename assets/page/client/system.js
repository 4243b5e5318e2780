// API calls for the studio itself: its engine's health, queue, settings and models, and signing in and out.

import { forget, forgetOthers } from "../lib/storage.js";
import { address } from "./address.js";
import { ask, askForKeysBy, json, readJson } from "./requests.js";

/** Return the engine's state: {status, ...} as returned by /health, or {status: "unreachable"}. */
export async function health() {
  try {
    const response = await fetch(address("/health"), { cache: "no-store" });
    return await response.json();
  } catch (problem) {
    if (problem instanceof TypeError || problem instanceof SyntaxError) return { status: "unreachable" };
    throw problem;
  }
}

/** Return the load of the engine and its queue; null while no engine is running. */
export function queue() {
  return readJson("/v1/queue", { cache: "no-store" });
}

/**
 * Cancel a waiting or running request; it is not an error if it has already ended.
 *
 * @param {string} id
 */
export function cancelRequest(id) {
  return readJson(`/v1/requests/${encodeURIComponent(id)}`, { method: "DELETE" });
}

/** The visitor's long work that is under way: {id, kind, title, project, done, total, left, eta_s}; null if the studio refuses. */
export const jobs = async () => (await readJson("/v1/jobs", { cache: "no-store" }))?.data ?? null;

/** @param {string} id */
export const cancelJob = (id) => readJson(`/v1/jobs/${encodeURIComponent(id)}`, { method: "DELETE" });

/** Return the studio's current settings, versions and storage; null if it refuses. */
export function studioFacts() {
  return readJson("/v1/settings", { cache: "no-store" });
}

/**
 * Sign this browser in with a key. Returns the response's status: 200 for a known key, 0 if none arrived.
 *
 * @param {string} key
 */
export async function signIn(key) {
  try {
    const response = await fetch(address("/sign-in"), { method: "POST", body: new URLSearchParams({ key }) });
    if (!response.ok || !forgetOthers()) return response.status;
    location.reload(); // what is on the page is another person's, and so are its requests that wait for a key
    return await new Promise(() => {});
  } catch (problem) {
    if (problem instanceof TypeError) return 0;
    throw problem;
  }
}

/** Sign this browser out, remove what the person left in it, and reload the page, which asks for a key. Throws Refusal. */
export async function signOut() {
  const before = askForKeysBy(async () => false); // the page is about to reload
  try {
    await readJson("/sign-out", { method: "POST", redirect: "manual" });
  } catch (problem) {
    askForKeysBy(before);
    throw problem;
  }
  forget();
  location.reload();
}

const MODEL = "/v1/engine/model";
/** @param {string} name */
const downloadOf = (name) => `${MODEL}s/${encodeURIComponent(name)}/download`;

/** {model, status, doing, progress, switching_to, can_cancel, cannot_switch, fixed_by_setting, error, downloads}. Throws Refusal. */
export function engineModel() {
  return ask(MODEL);
}

/** Whether this visitor may choose the studio's model. */
export async function mayChooseModel() {
  return Boolean(await readJson(MODEL));
}

/**
 * Like engineModel(), with the models as `data`: all on offer, and the model at a path on the studio's machine.
 *
 * @param {string} path
 */
export function engineModels(path) {
  return ask(`${MODEL}s${path ? `?${new URLSearchParams({ path })}` : ""}`);
}

/**
 * Load another model. Returns the same as engineModel().
 *
 * @param {string} model
 */
export function switchModel(model) {
  return ask(MODEL, json("PUT", { model }));
}

/** Keep the loaded model; possible while a switch waits for other callers' speech. */
export function keepModel() {
  return ask(MODEL, { method: "DELETE" });
}

/** @param {string} name */
export function downloadModel(name) {
  return ask(downloadOf(name), { method: "POST" });
}

/**
 * @param {string} name
 * @param {boolean} keep - whether the part that has arrived stays, so that the next download continues it
 */
export function cancelModelDownload(name, keep) {
  return ask(`${downloadOf(name)}${keep ? "?keep=true" : ""}`, { method: "DELETE" });
}
