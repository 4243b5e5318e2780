// Requests to the studio's API and their answers as JSON; a refusal is raised, or returned as null where that is enough.

import { address } from "./address.js";
import { notConnected, noticeSignOut, refusalOf } from "./refusal.js";

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
 * The JSON of the answer, or null if the request was refused. Raises Refusal when there is no answer.
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
