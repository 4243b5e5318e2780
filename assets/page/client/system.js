// The studio itself: its engine's health, its line, its settings, and signing out.

import { address } from "./address.js";
import { expectSignOut } from "./refusal.js";
import { readJson } from "./requests.js";

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
  expectSignOut();
  await readJson("/sign-out", { method: "POST", redirect: "manual" });
  location.reload();
}
