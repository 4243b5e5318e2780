// API calls for the trash: list, restore and delete permanently. No user interface.

import { ask, json } from "./requests.js";

/** @typedef {"take" | "voice" | "project" | "part" | "replacement" | "character" | "dictionary"} Kind */

/** List the items that can be restored, last deleted first; after: the previous page's last id. Returns {data, last_id, has_more}. */
export const listTrash = (after = "") => ask(`/v1/trash?${new URLSearchParams(after ? { after } : {})}`);

/** Restore all of these, or none. Throws Refusal. @param {Kind} kind @param {string[]} ids */
export const restore = (kind, ids) => ask("/v1/trash/restore", json("POST", { items: ids.map((id) => ({ kind, id })) }));

/** Delete these permanently; without ids: all. @param {string[]} ids */
export const emptyTrash = (ids = []) => ask(`/v1/trash?${new URLSearchParams(ids.length ? { ids: ids.join(",") } : {})}`, { method: "DELETE" });
