// What parts had before they are changed together, so that each can get it back.

import { readParts } from "../../client/projects.js";

const PAGE = 200; // parts of one request

/** The value of the API that sets a field back to the project's. @type {Record<string, any>} */
const UNSET = { voice: "", character: "", speed: -1, temperature: -1, top_p: -1, top_k: -1, pause: -1 };
/** Fields of a part that a change of one field changes with it. @type {Record<string, string[]>} */
const WITH = { character: ["character", "voice", "confirmed"], tags: ["text"], take: ["chosen"] };

/**
 * The values of a part that changes of these fields replace: to be sent as changes.
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
 * These values for each group of parts that have the same. Raises Refusal.
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
