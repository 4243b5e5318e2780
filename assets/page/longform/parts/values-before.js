// Values of parts before a change, so that the change can be undone.

import { readParts } from "../../client/projects.js";

const PAGE = 200; // parts per request

/** Values with which the API resets a field to the project's. @type {Record<string, any>} */
const UNSET = { voice: "", character: "", speed: -1, temperature: -1, top_p: -1, top_k: -1, pause: -1 };
/** Fields of a part that change along with a field. @type {Record<string, string[]>} */
const WITH = { character: ["character", "voice", "confirmed"], tags: ["text"], take: ["chosen"] };

/**
 * Return the values that a change of these fields replaces, in the form of changes.
 *
 * @param {any} part
 * @param {string[]} names
 * @returns {Record<string, any>}
 */
export function valuesOf(part, names) {
  const fields = names.flatMap((name) => WITH[name] ?? [name]);
  return Object.fromEntries(fields.map((name) => [name === "chosen" ? "take" : name, part[name] ?? UNSET[name]]));
}

/**
 * Return these values for each group of parts that share them. Throws Refusal.
 *
 * @param {string} project
 * @param {string[]} ids
 * @param {string[]} names
 * @returns {Promise<{ ids: string[], values: Record<string, any> }[]>}
 */
export async function valuesBefore(project, ids, names) {
  const wanted = new Set(ids);
  /** @type {Map<string, { ids: string[], values: Record<string, any> }>} */
  const groups = new Map();
  let hasMore = true;
  for (let offset = 0; hasMore && wanted.size; offset += PAGE) {
    const { data, has_more: more } = await readParts(project, offset, PAGE);
    hasMore = more;
    for (const part of data) {
      if (!wanted.delete(part.id)) continue;
      const values = valuesOf(part, names);
      const key = JSON.stringify(values);
      const group = groups.get(key) ?? { ids: [], values };
      groups.set(key, group);
      group.ids.push(part.id);
    }
  }
  return [...groups.values()];
}
