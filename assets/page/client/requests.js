// Requests to the studio's API and their answers as JSON; a refusal is raised, or read as null where it says enough.

import { address } from "./address.js";
import { notConnected, noticeSignOut, refusalOf } from "./refusal.js";

/**
 * What comes of a request; that nobody answers, breaks off, or that it is another who answers, is a Refusal.
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
 * The answer of a route, read to its end. Raises Refusal.
 *
 * @template T
 * @param {string} path
 * @param {RequestInit | undefined} options
 * @param {(response: Response) => Promise<T>} read
 */
export function fetched(path, options, read) {
  return connected(async () => {
    const response = await fetch(address(path), { cache: "no-store", ...options });
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
 * The JSON of such an answer; null when it was refused. Raises Refusal when nobody answers.
 *
 * @param {string} path
 * @param {RequestInit} [options]
 */
export function readJson(path, options) {
  return connected(async () => {
    const response = await fetch(address(path), options);
    noticeSignOut(response);
    return response.ok ? response.json() : null;
  });
}

/**
 * A JSON request; with an etag it is refused when somebody else was faster.
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
 * A form to POST; what is empty is left out.
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
