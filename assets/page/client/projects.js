// API calls for projects: create, read, change, generate, and the addresses of their audio. It shows nothing.

import { address } from "./address.js";
import { ask, form, json } from "./requests.js";

const at = (id, path = "") => `/v1/projects/${encodeURIComponent(id)}${path}`;
const partAt = (id, part, path = "") => at(id, `/parts/${encodeURIComponent(part)}${path}`);

export const listProjects = () => ask("/v1/projects?limit=100");
export const readProject = (id) => ask(at(id));
/** state: only parts in this state; blank: all. */
export const readParts = (id, offset, limit, state = "") => ask(at(id, `/parts?offset=${offset}&limit=${limit}${state ? `&state=${state}` : ""}`));
export const readTimeline = (id) => ask(at(id, "/timeline?partial=true"));

/** A request with a document, a File or a text, and fields. */
export function documentBody(source, fields) {
  if (typeof source === "string") return json("POST", { input: source, ...fields });
  const body = new FormData();
  body.append("file", source);
  for (const [name, value] of Object.entries(fields)) body.append(name, typeof value === "object" ? JSON.stringify(value) : value);
  return { method: "POST", body };
}

/** source: a File, or a text; cast: voice ids by name; how: split_by, part_length, notes and speakers. Raises Refusal. */
export const makeProject = (source, voice, cast, how) => ask("/v1/projects", documentBody(source, { voice, cast, ...how }));

export const changeProject = (id, changes) => ask(at(id), json("PATCH", changes));
/** Returns {undo_seconds}, how long it can be restored. */
export const deleteProject = (id) => ask(at(id), { method: "DELETE" });
export const changePart = (id, part, changes) => ask(partAt(id, part), json("PATCH", changes));

/** A new part after another one; null: before the first. */
export const insertPart = (id, after, text) => ask(at(id, "/parts"), json("POST", { text, after }));
/** position: index of the second part's first character, in code points. */
export const splitPart = (id, part, text, position) => ask(partAt(id, part, "/split"), json("POST", { text, at: position }));
/** Regenerates the sentences from character start to end of its text, in code points. Returns the part. */
export const mendPart = (id, part, text, start, end) => ask(partAt(id, part, "/mend"), json("POST", { text, start, end }));
export const mergeParts = (id, part, following) => ask(partAt(id, part, "/merge"), json("POST", { following }));
export const movePart = (id, part, position) => ask(partAt(id, part, "/move"), json("POST", { position }));
/** Returns {undo_seconds}, how long it can be restored. */
export const deletePart = (id, part) => ask(partAt(id, part), { method: "DELETE" });
/** query: find, replace, match_case, whole_words and dry_run, which only counts. */
export const replaceWords = (id, query) => ask(at(id, "/replace"), json("POST", query));
export const undoReplace = (id) => ask(at(id, "/replace/undo"), { method: "POST" });

/** parts: "missing", "stale", "all" or a list of ids. */
export const speakParts = (id, parts) => ask(at(id, "/speak"), json("POST", { parts }));

/** verb: pause, resume or cancel. */
export const orderProject = (id, verb) => ask(at(id, `/${verb}`), { method: "POST" });

export const savedAddress = (id, format) => address(at(id, `/audio?format=${format}&partial=true`));
export const fileAddress = (id, path) => address(at(id, `/${path}?partial=true`));

export const measureLoudness = (id) => ask(at(id, "/loudness?partial=true"));
export const coverAddress = (id, digest) => address(at(id, `/cover?of=${digest}`));
export const putCover = (id, cover) => ask(at(id, "/cover"), { ...form({ cover }), method: "PUT" });
export const removeCover = (id) => ask(at(id, "/cover"), { method: "DELETE" });

const characterAt = (id, who, path = "") => at(id, `/cast/${encodeURIComponent(who)}${path}`);

/** {narrator, data, unsure, assistant} of a project. */
export const readCast = (id) => ask(at(id, "/cast"));
/** which: unsure or character. Returns {data, total, has_more}. */
export const readLines = (id, which, offset, limit) => ask(at(id, `/cast/lines?${new URLSearchParams({ ...which, offset, limit })}`));
export const addCharacter = (id, name) => ask(at(id, "/cast"), json("POST", { name }));
export const changeCharacter = (id, who, changes) => ask(characterAt(id, who), json("PATCH", changes));
export const mergeCharacter = (id, who, into) => ask(characterAt(id, who, "/merge"), json("POST", { into }));
export const deleteCharacter = (id, who) => ask(characterAt(id, who), { method: "DELETE" });
/** Gives characters proposed voices; missing: only those without one. */
export const recast = (id, missing) => ask(at(id, "/cast/recast"), json("POST", { missing }));
/** What the chat endpoint proposes for lines: {data: [{part, character, name, tags}]}. */
export const proposeSpeakers = (id, ids) => ask(at(id, "/cast/proposals"), json("POST", { ids }));
/** Changes many parts at once: changes as for one part, but text and take. */
export const changeParts = (id, ids, changes) => ask(at(id, "/parts"), json("PATCH", { ids, ...changes }));
/** Who speaks in a File or a text, with proposed voices: {data}. */
export const findSpeakers = (source, voice) => ask("/v1/projects/characters", documentBody(source, { voice }));
