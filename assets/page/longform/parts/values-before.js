// What parts had before they are changed together, so that each can get it back.

import { readParts } from "../../client/projects.js";

const PAGE = 200; // parts of one request

/** The value of the API that sets a field back to the project's. @type {Record<string, any>} */
const UNSET = { voice: "", speed: -1 };

/**
 * The values of these fields, for each group of parts that have the same: to be sent as changes. Raises Refusal.
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
      const values = Object.fromEntries(names.map((name) => [name, part[name] ?? UNSET[name]]));
      const key = JSON.stringify(values);
      const group = groups.get(key) ?? { ids: [], values };
      groups.set(key, group);
      group.ids.push(part.id);
    }
  }
  return [...groups.values()];
}
