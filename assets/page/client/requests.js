// Requests to the studio's API and their JSON responses; a refusal is thrown, or returned as null where that suffices.

import { address } from "./address.js";
import { fileChanged, notConnected, refusalOf } from "./refusal.js";

const READ = /"seed": ?(\d{16,})/g; // in a string, its quotes are escaped
const WRITTEN = /("seed":)"(\d{16,})"/g;

/** Return a seed as a number, or as its digits if JavaScript would round it: the API's are up to 2^63 - 1. @param {string} digits @returns {number | string} */
export const seedOf = (digits) => (Number(digits) > Number.MAX_SAFE_INTEGER ? digits : Number(digits));

/** Read JSON from the studio; see seedOf. @param {string} text */
export const exactly = (text) => JSON.parse(text.replace(READ, (_, digits) => `"seed":${JSON.stringify(seedOf(digits))}`));

/** Read a JSON response. @param {Response} response */
export const parsed = async (response) => exactly(await response.text());

/** Asks the user for a key and returns whether it was accepted. isRead: nothing is changed. @type {(isRead: boolean) => Promise<boolean>} */
let askForKey = async () => false;
let keys = 0; // accepted so far

/** Set the function that asks the user for a key. Returns the one before. @param {typeof askForKey} askUser */
export function askForKeysBy(askUser) {
  const before = askForKey;
  askForKey = askUser;
  return before;
}

/**
 * Like fetch, but if the studio refuses a request for lack of a valid key, wait until the user has signed in and send it
 * again. Returns the refusal if the user does not sign in. The body must not be a stream, as it may be sent twice.
 *
 * @param {string} url
 * @param {RequestInit} [options]
 */
export async function send(url, options = {}) {
  const before = keys;
  const response = await fetch(url, options);
  if (response.status !== 401) return response;
  if (keys === before) { // otherwise the user has signed in since the request was sent
    if (!(await askForKey((options.method ?? "GET") === "GET"))) return response;
    keys += 1;
  }
  return fetch(url, options);
}

/**
 * Return the result of a request. Throws Refusal if no response arrives, the connection breaks, another server responds, or a file of the body has changed.
 *
 * @template T
 * @param {() => Promise<T>} work
 * @param {BodyInit | null} [body] of the request
 */
export async function connected(work, body = null) {
  try {
    return await work();
  } catch (problem) {
    if (!(problem instanceof TypeError || problem instanceof SyntaxError)) throw problem;
    const sent = body instanceof FormData ? [...body.values()] : [body];
    const files = await Promise.allSettled(sent.map((value) => value instanceof Blob && value.slice(0, 1).arrayBuffer()));
    throw files.some(({ status }) => status === "rejected") ? fileChanged() : notConnected();
  }
}

/**
 * Return the result of a request that outlasts the page. Firefox keeps a page that was left for Back, and then never settles such a
 * request: it counts as lost.
 *
 * @template T
 * @param {() => Promise<T>} work
 */
async function unlessLeft(work) {
  const answered = new AbortController();
  /** @type {Promise<never>} */
  const left = new Promise((_, reject) => {
    globalThis.addEventListener?.("pageshow", ({ persisted }) => persisted && reject(new TypeError("the page was left")), { signal: answered.signal });
  });
  try {
    return await Promise.race([work(), left]);
  } finally {
    answered.abort();
  }
}

/**
 * Request a path and return the result of `read`, such as the response's body. Throws Refusal.
 *
 * @template T
 * @param {string} path
 * @param {RequestInit | undefined} options
 * @param {(response: Response) => Promise<T>} read
 */
export function fetched(path, options, read) {
  const work = async () => {
    const response = await send(address(path), { cache: "no-store", ...options });
    if (!response.ok) throw await refusalOf(response);
    return read(response);
  };
  return connected(options?.keepalive ? () => unlessLeft(work) : work, options?.body);
}

/**
 * Request a path and return the JSON response. Throws Refusal.
 *
 * @param {string} path
 * @param {RequestInit} [options]
 */
export function ask(path, options) {
  return fetched(path, options, parsed);
}

/**
 * Return the JSON response, or null if the request was refused. Throws Refusal if no response arrives.
 *
 * @param {string} path
 * @param {RequestInit} [options]
 */
export function readJson(path, options) {
  return connected(async () => {
    const response = await send(address(path), options);
    return response.ok ? parsed(response) : null;
  });
}

/**
 * Return fetch options for a JSON request; with an etag, it is refused if someone else made a change first.
 *
 * @param {string} method
 * @param {object} [body]
 * @param {string | null} [etag]
 * @returns {RequestInit}
 */
export function json(method, body = {}, etag = null) {
  const headers = { "Content-Type": "application/json", ...(etag ? { "If-Match": etag } : {}) };
  return { method, headers, body: JSON.stringify(body).replace(WRITTEN, "$1$2") };
}

/**
 * Return fetch options to POST a form; empty fields are omitted.
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
