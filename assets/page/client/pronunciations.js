// API calls for dictionaries: read, add, change, delete, import and export as CSV. No user interface.

import { address } from "./address.js";
import { ask, fetched, form, json } from "./requests.js";

/** @typedef {{ voice?: string, project?: string }} Shelf the dictionary's voice or project; neither: the shared dictionary */

let changes = 0;

/** A number that changes with every edit made on this page. */
export const dictionaryAge = () => changes;

/** @param {Shelf} shelf */
const query = (shelf) => (Object.keys(shelf).length ? `?${new URLSearchParams(/** @type {Record<string, string>} */ (shelf))}` : "");
const one = (/** @type {string} */ id) => `/v1/pronunciations/${encodeURIComponent(id)}`;

/**
 * @param {string} path
 * @param {RequestInit} options
 */
async function change(path, options) {
  const answer = await ask(path, options);
  changes += 1;
  return answer;
}

/** @param {Shelf} shelf */
export const listPronunciations = async (shelf) => (await ask(`/v1/pronunciations${query(shelf)}`)).data;

/**
 * @param {Shelf} shelf
 * @param {{ phrase: string, said: string, match_case?: boolean }} entry
 */
export const addPronunciation = (shelf, entry) => change("/v1/pronunciations", json("POST", { ...entry, ...shelf }));

/**
 * @param {string} id
 * @param {object} changed
 */
export const changePronunciation = (id, changed) => change(one(id), json("PATCH", changed));

/** @param {string} id */
export const deletePronunciation = (id) => change(one(id), { method: "DELETE" });

/**
 * @param {Shelf} shelf
 * @param {File} file
 */
export const importPronunciations = (shelf, file) => change(`/v1/pronunciations/csv${query(shelf)}`, { ...form({ file }), method: "PUT" });

/** @param {Shelf} shelf */
export const exportedPronunciations = (shelf) => address(`/v1/pronunciations/csv${query(shelf)}`);

/**
 * Copy the dictionary of a project to another one.
 *
 * @param {string} from
 * @param {string} to
 */
export async function copyPronunciations(from, to) {
  if (!(await listPronunciations({ project: from })).length) return;
  const csv = await fetched(`/v1/pronunciations/csv${query({ project: from })}`, {}, (response) => response.blob());
  await importPronunciations({ project: to }, new File([csv], "words.csv", { type: "text/csv" }));
}
