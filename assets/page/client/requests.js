// Requests to the studio's API and their answers as JSON; a refusal is raised, or returned as null where that is enough.

import { address } from "./address.js";
import { notConnected, refusalOf } from "./refusal.js";

/** Asks the user for a key: whether one was accepted. isRead: of a request that changes nothing. @type {(isRead: boolean) => Promise<boolean>} */
let askForKey = async () => false;
let keys = 0; // accepted so far

/** Have keys asked for like this from now on. @param {typeof askForKey} askUser */
export function askForKeysBy(askUser) {
  askForKey = askUser;
}

/**
 * As fetch, but a request that the studio refuses for its key waits until the user has signed in, then is sent once more.
 * Returns the refusal if they do not sign in. The body is one that can be sent twice, so not a stream.
 *
 * @param {string} url
 * @param {RequestInit} [options]
 */
export async function send(url, options = {}) {
  const before = keys;
  const response = await fetch(url, options);
  if (response.status !== 401) return response;
  if (keys === before) { // else the user has signed in while this one was under way
    if (!(await askForKey((options.method ?? "GET") === "GET"))) return response;
    keys += 1;
  }
  return fetch(url, options);
}

/**
 * The result of a request. Raises Refusal when there is no answer, the connection breaks, or another server answers.
 *
 * @template T
 * @param {() => Promise<T>} work
 */
export async function connected(work) {
  try {
    return await work();
  } catch (problem) {
    if (problem instanceof TypeError || problem instanceof SyntaxError) throw notConnected();
    throw problem;
  }
}

/**
 * The complete answer of a route. Raises Refusal.
 *
 * @template T
 * @param {string} path
 * @param {RequestInit | undefined} options
 * @param {(response: Response) => Promise<T>} read
 */
export function fetched(path, options, read) {
  return connected(async () => {
    const response = await send(address(path), { cache: "no-store", ...options });
    if (!response.ok) throw await refusalOf(response);
    return read(response);
  });
}

/**
 * The JSON of such an answer. Raises Refusal.
 *
 * @param {string} path
 * @param {RequestInit} [options]
 */
export function ask(path, options) {
  return fetched(path, options, (response) => response.json());
}

/**
 * The JSON of the answer, or null if the request was refused. Raises Refusal when there is no answer.
 *
 * @param {string} path
 * @param {RequestInit} [options]
 */
export function readJson(path, options) {
  return connected(async () => {
    const response = await send(address(path), options);
    return response.ok ? response.json() : null;
  });
}

/**
 * A JSON request; with an etag it is refused if someone else made a change first.
 *
 * @param {string} method
 * @param {object} [body]
 * @param {string | null} [etag]
 * @returns {RequestInit}
 */
export function json(method, body = {}, etag = null) {
  const headers = { "Content-Type": "application/json", ...(etag ? { "If-Match": etag } : {}) };
  return { method, headers, body: JSON.stringify(body) };
}

/**
 * A form to POST; empty fields are left out.
 *
 * @param {Record<string, any>} fields
 */
export function form(fields) {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    if (value instanceof Blob) body.append(name, value, "clip");
    else if (value !== null && value !== undefined && value !== "") body.append(name, value);
  }
  return { method: "POST", body };
}
