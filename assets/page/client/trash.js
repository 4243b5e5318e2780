// The page's way to the trash: what was deleted, restored or deleted for good. It shows nothing.

import { ask, json } from "./requests.js";

/** @typedef {"take" | "voice" | "project" | "part" | "replacement"} Kind */

/** What can be restored, the last deleted first; after: the last id of the page before. Gives {data, last_id, has_more}. */
export const listTrash = (after = "") => ask(`/v1/trash?${new URLSearchParams(after ? { after } : {})}`);

/** All of these, or none. Raises Refusal. @param {Kind} kind @param {string[]} ids */
export const restore = (kind, ids) => ask("/v1/trash/restore", json("POST", { items: ids.map((id) => ({ kind, id })) }));

/** Delete these for good; none given: all. @param {string[]} ids */
export const emptyTrash = (ids = []) => ask(`/v1/trash?${new URLSearchParams(ids.length ? { ids: ids.join(",") } : {})}`, { method: "DELETE" });
