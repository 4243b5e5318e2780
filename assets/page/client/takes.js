// API calls for takes on the server: find, star, share, delete, and the addresses of their audio. No user interface.

import { address } from "./address.js";
import { untilFree } from "./places.js";
import { Refusal } from "./refusal.js";
import { ask, form, json, readJson } from "./requests.js";

/** Return the server's record of a take, with its timings; null if it no longer has one. */
export function takeRecord(id) {
  return readJson(`/v1/takes/${encodeURIComponent(id)}`);
}

/** Return this caller's current and recent requests, newest first. */
export async function recentTakes() {
  return (await readJson("/v1/takes", { cache: "no-store" }))?.data ?? [];
}

/** question: {q, voice, starred, since, until, ids, limit, after}; empty fields are omitted. Returns {data, last_id, has_more, retention}. */
export function findTakes(question) {
  const query = Object.entries(question).filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  return ask(`/v1/takes?${new URLSearchParams(query)}`);
}

/** Return a take in full: text, parameters, and the request that repeats it. */
export function wholeTake(id) {
  return ask(`/v1/takes/${id}`);
}

/** Return a recording's text and word times, {text, timestamps}; null if unknown. */
export function timesAt(path) {
  return readJson(path);
}

/**
 * Return how much a take sounds like a clip, or like its voice's clip: {percent, grade, closest, findings}; null if unavailable.
 *
 * @param {string} id
 * @param {Blob | null} clip
 */
export function likenessOf(id, clip) {
  return readJson(`/v1/takes/${encodeURIComponent(id)}/likeness`, clip ? form({ audio_sample: clip }) : {});
}

/** Regenerate the sentences from character start to end of a take's text, in code points; replacement: new words for them. Returns the new take's record. */
export function regenerateSentences(id, start, end, replacement) {
  return untilFree(() => ask(`/v1/takes/${encodeURIComponent(id)}/regenerate`, json("POST", { start, end, replacement })));
}

export const timesAddress = (id) => `/v1/takes/${encodeURIComponent(id)}/timestamps`;

export function starTake(id, starred) {
  return ask(`/v1/takes/${id}`, json("PATCH", { starred }));
}

export function deleteTake(id) {
  return ask(`/v1/takes/${id}`, { method: "DELETE" });
}

/**
 * Returns {ids, undo_seconds, left, problem}; left: those that a refusal, the problem, kept after others had been deleted. Proxies refuse
 * addresses of more than 8 KiB: those of some 200 takes. Throws Refusal if none was deleted.
 *
 * @param {string[]} ids
 */
export async function deleteTakes(ids) {
  /** @type {{ ids: string[], undo_seconds: number, left: string[], problem: Refusal | null }} */
  const deleted = { ids: [], undo_seconds: 0, left: [], problem: null };
  for (let start = 0; start < ids.length; start += 150) {
    const some = new URLSearchParams({ ids: ids.slice(start, start + 150).join(","), confirm: "true" });
    try {
      const answer = await ask(`/v1/takes?${some}`, { method: "DELETE" });
      Object.assign(deleted, answer, { ids: [...deleted.ids, ...answer.ids] });
    } catch (problem) {
      if (!(problem instanceof Refusal) || !deleted.ids.length) throw problem;
      return { ...deleted, left: ids.slice(start), problem };
    }
  }
  return deleted;
}

/** Return the links with which others can play a take, newest first: {data: [{token, path, expires}]}. */
export function sharesOf(id) {
  return ask(`/v1/takes/${id}/shares`);
}

export function addShare(id, days) {
  return ask(`/v1/takes/${id}/shares`, json("POST", { days }));
}

export function removeShare(id, token) {
  return ask(`/v1/takes/${id}/shares/${token}`, { method: "DELETE" });
}

export const soundAddress = (id, format = "wav") => address(`/v1/takes/${id}/audio?format=${format}`);
export const MAX_ZIP = 200; // takes
export const zipAddress = (ids, format) => address(`/v1/takes/export?${new URLSearchParams({ ids: ids.join(","), format })}`);
