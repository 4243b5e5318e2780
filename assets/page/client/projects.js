// API calls for projects: create, read, change, generate, and the addresses of their audio. No user interface.

import { address } from "./address.js";
import { ask, fetched, form, json } from "./requests.js";

const at = (id, path = "") => `/v1/projects/${encodeURIComponent(id)}${path}`;
const partAt = (id, part, path = "") => at(id, `/parts/${encodeURIComponent(part)}${path}`);

/** after: the previous page's last id. Returns {data, last_id, has_more}, newest first. */
export const listProjects = (after = "") => ask(`/v1/projects?limit=100${after && `&after=${after}`}`);
export const readProject = (id) => ask(at(id));
/** filter: a state, "silent" for parts without audio, "noted" for parts with a note, "by:" and a character's id (none: the narrator), or "" for all. */
function filtered(filter) {
  if (filter.startsWith("by:")) return `&character=${encodeURIComponent(filter.slice(3))}`;
  return { "": "", silent: "&audio=false", noted: "&noted=true" }[filter] ?? `&state=${filter}`;
}
export const readParts = (id, offset, limit, filter = "") => ask(at(id, `/parts?offset=${offset}&limit=${limit}${filtered(filter)}`));
/** limit: 0 if no parts are listed. */
export const readPartIds = async (id, filter, offset, limit) => (limit ? (await ask(at(id, `/parts/ids?offset=${offset}&limit=${limit}${filtered(filter)}`))).data : []);
const MOST_PARTS = 20_000; // of a project
export const readAllPartIds = (id) => readPartIds(id, "", 0, MOST_PARTS);
/** The chapters, each with the totals of its parts. */
export const readOutline = async (id) => (await ask(at(id, "/outline"))).data;
export const readTimeline = (id) => ask(at(id, "/timeline?partial=true"));

/** Read a document (a File or a text; columns: the roles of a table's columns) without creating a project. Returns its id, title and chapters. Throws Refusal. */
export function previewDocument(source, notes, { columns = /** @type {Record<string, string> | null} */ (null), encoding = "", signal = /** @type {AbortSignal | null} */ (null) } = {}) {
  if (typeof source === "string") return ask("/v1/projects/preview", { ...json("POST", { input: source, notes }), signal });
  const body = new FormData();
  body.append("file", source);
  body.append("notes", String(notes));
  if (columns) body.append("columns", JSON.stringify(columns));
  body.append("encoding", encoding);
  return ask("/v1/projects/preview", { method: "POST", body, signal });
}

/** Compare a project with a new version of its table, and make the changes if apply. Returns {same, added, changed, gone, lines}. Throws Refusal. */
export function updateFromTable(id, file, apply) {
  const body = new FormData();
  body.append("file", file);
  body.append("apply", String(apply));
  return ask(at(id, "/update"), { method: "POST", body });
}

export const previewCover = (id) => address(`/v1/projects/previews/${encodeURIComponent(id)}/cover`);

/** body: as expected by the API. Throws Refusal. */
export const createProject = (body) => ask("/v1/projects", json("POST", body));

/** The speakers in these chapters (null: all) of a previewed document, with proposed voices; voice: the narrator's; people: those known. Returns {data, earlier: casts that share people}. Throws Refusal. */
export const findSpeakers = (preview, chapters, voice, people) => ask("/v1/projects/characters", json("POST", { preview, chapters, voice, people }));

/** The request completes even if the page is closed. */
const lasting = (changes) => ({ ...json("PATCH", changes), keepalive: true });
export const changeProject = (id, changes) => ask(at(id), lasting(changes));
/** Returns {undo_seconds}, for which it can be restored. */
export const deleteProject = (id) => ask(at(id), { method: "DELETE" });
/** changes.text_before, changes.take_before: the text or chosen take that the change is based on; a different one is not overwritten. */
export const changePart = (id, part, changes) => ask(partAt(id, part), lasting(changes));

/** Change many parts at once; changes: voice, speed and more, as for one part, without text and take. */
export const changeParts = (id, ids, changes) => ask(at(id, "/parts"), json("PATCH", { ids, ...changes }));

const AT_ONCE = 500; // replaced values per request, whose size is limited

/** Undo a change that answered with replaced, where nobody has changed it since. Returns {undone, left}: how much was undone, and what was left. Throws Refusal. */
export async function undoChange(id, replaced) {
  const done = { undone: 0, left: /** @type {string[]} */ ([]) };
  const { parts = [], ...others } = replaced;
  for (let from = 0; from < Math.max(parts.length, 1); from += AT_ONCE) {
    const some = { parts: parts.slice(from, from + AT_ONCE), ...(from ? {} : others) };
    const { undone, left } = await ask(at(id, "/undo"), json("POST", some));
    done.undone += undone;
    done.left.push(...left);
  }
  return done;
}

/** Insert a part after another one; null: before the first. */
export const insertPart = (id, after, text) => ask(at(id, "/parts"), json("POST", { text, after }));
/** position: index of the second part's first character, in code points. */
export const splitPart = (id, part, text, position) => ask(partAt(id, part, "/split"), json("POST", { text, at: position }));
/** Regenerate the sentences from character start to end of its text, in code points; replacement: new words for them. Returns the part. */
export const regeneratePart = (id, part, text, start, end, replacement = undefined) => ask(partAt(id, part, "/regenerate"), json("POST", { text, start, end, replacement }));
/** text: the text before a split, to undo the split. */
export const mergeParts = (id, part, following, text = undefined) => ask(partAt(id, part, "/merge"), json("POST", { following, text }));
/** before: the position as read; a part that is elsewhere stays there. */
export const movePart = (id, part, position, before = undefined) => ask(partAt(id, part, "/move"), json("POST", { position, position_before: before }));
/** Delete all of these parts, or none; text: theirs as read, another one is kept. Returns {undo_seconds}, for which they can be restored. Throws Refusal. */
export const deleteParts = (id, ids, text = undefined) => ask(at(id, "/parts/delete"), json("POST", { ids, text_before: text }));
/** Restore deleted parts where they were; a merged part is separated again. */
export const restoreParts = (id, ids) => ask(at(id, "/parts/restore"), json("POST", { ids }));
/** query: find, replace, match_case, whole_words and dry_run, which only counts. */
export const replaceWords = (id, query) => ask(at(id, "/replace"), json("POST", query));
export const undoReplace = (id, replacement) => ask(at(id, `/replace/undo?replacement=${replacement}`), { method: "POST" });

/** parts: "missing", "stale", "all" or a list of ids; chapter: the id of its first part, to generate only that chapter. */
export const speakParts = (id, parts, chapter = null) => ask(at(id, "/speak"), json("POST", chapter ? { parts, chapter } : { parts }));

/** verb: pause, resume or cancel. */
export const orderProject = (id, verb) => ask(at(id, `/${verb}`), { method: "POST" });

/** The address of a file of the finished parts; path may have a query. */
const filePath = (id, path) => at(id, `/${path}${path.includes("?") ? "&" : "?"}partial=true`);
export const fileAddress = (id, path) => address(filePath(id, path));

/** Returns {blob, name, parts}: a file, its name, and how many parts it has if the studio says so. Throws Refusal. */
const readBlob = (path) => fetched(path, {}, async (response) => ({
  blob: await response.blob(),
  name: decodeURIComponent(/filename\*=UTF-8''(.+)$/.exec(response.headers.get("content-disposition") ?? "")?.[1] ?? "sample.mp3"),
  parts: Number(response.headers.get("x-parts")) || null,
}));

/** Returns a file as {blob, name, parts}; path: as for fileAddress. Throws Refusal. */
export const readFile = (id, path) => readBlob(filePath(id, path));

/** Say that a zip has arrived whole, so that the next one of changes leaves out its takes; receipt: as in its path. Throws Refusal. */
export const confirmZip = (id, receipt) => ask(at(id, `/zip/${receipt}`), { method: "POST" });

/** Returns a sample as {blob, name}, with its file name; first, last: ids of parts, or null. Throws Refusal. */
export function readSample(id, first, last) {
  const range = [["first", first], ["last", last]].map(([name, part]) => (part ? `&${name}=${encodeURIComponent(part)}` : "")).join("");
  return readBlob(at(id, `/sample?partial=true${range}`));
}

/** The audio of a part's take, for everybody who may see the project; a take's own address is only for the project's owner. */
export const partSound = (id, take) => address(at(id, `/takes/${encodeURIComponent(take)}/audio`));
export const partTimes = (id, take) => at(id, `/takes/${encodeURIComponent(take)}/timestamps`);

/** The links to a project's podcast feed, newest first: {data: [{token, path, expires}], share_days, problem}; share_days: the longest validity, or 0 without links; problem: which parts have lost their audio. */
export const listFeeds = (id) => ask(at(id, "/feeds"));
export const addFeed = (id, days) => ask(at(id, "/feeds"), json("POST", { days }));
export const removeFeed = (id, token) => ask(at(id, `/feeds/${token}`), { method: "DELETE" });
/** The episodes that a podcast app finds at a feed's path: [{title, seconds}]. The studio makes missing ones meanwhile. */
export const readEpisodes = (path) => fetched(path, {}, async (response) => {
  const items = new DOMParser().parseFromString(await response.text(), "text/xml").getElementsByTagName("item");
  return [...items].map((item) => ({
    title: item.getElementsByTagName("title")[0].textContent,
    seconds: Number(item.getElementsByTagName("itunes:duration")[0].textContent),
  }));
});

export const measureLoudness = (id) => ask(at(id, "/loudness?partial=true"));
export const coverAddress = (id, digest) => address(at(id, `/cover?of=${digest}`));
/** Returns a cover as {blob}. Throws Refusal. */
export const readCover = (id, digest) => readBlob(at(id, `/cover?of=${digest}`));
export const putCover = (id, cover) => ask(at(id, "/cover"), { ...form({ cover }), method: "PUT" });
export const removeCover = (id) => ask(at(id, "/cover"), { method: "DELETE" });

const characterAt = (id, character, path = "") => at(id, `/cast/${encodeURIComponent(character)}${path}`);

/** {narrator, data, unsure, assistant} of a project. */
export const readCast = (id) => ask(at(id, "/cast"));
/** which: {unsure} or {character}. Returns {data, total, has_more}. */
export const readLines = (id, which, offset, limit) => ask(at(id, `/cast/lines?${new URLSearchParams({ ...which, offset, limit })}`));
export const addCharacter = (id, name) => ask(at(id, "/cast"), json("POST", { name }));
export const changeCharacter = (id, character, changes) => ask(characterAt(id, character), json("PATCH", changes));
export const mergeCharacter = (id, character, into) => ask(characterAt(id, character, "/merge"), json("POST", { into }));
export const deleteCharacter = (id, character) => ask(characterAt(id, character), { method: "DELETE" });
/** Assign proposed voices to the characters; missing: only to characters without one. */
export const recast = (id, missing) => ask(at(id, "/cast/recast"), json("POST", { missing }));
/** The chat endpoint's proposals for lines: {data: [{part, character, name, tags}]}; estimate: only {questions, tokens}. */
export const proposeSpeakers = (id, ids, estimate = false) => ask(at(id, "/cast/proposals"), json("POST", { ids, estimate }));

/** {state, error, recogniser, eta_s, parts, checked, words, wrong, wrong_per_1000, seconds, changed, spots: by kind}. */
export const readProof = (id) => ask(at(id, "/proof"));
/** Check everything not checked yet. Returns the same as readProof. */
export const startProof = (id) => ask(at(id, "/proof"), json("POST", {}));
export const cancelProof = (id) => ask(at(id, "/proof"), { method: "DELETE" });
/** Returns {data, total, has_more}, the most severe first. */
export const readSpots = (id, limit) => ask(at(id, `/proof/spots?limit=${limit}`));
/** before: its acceptance as read; one that has changed since is not overwritten. Returns the spot. */
export const acceptSpot = (id, spot, accepted, before = undefined) => ask(at(id, `/proof/spots/${encodeURIComponent(spot)}`), json("PATCH", { accepted, acceptance_before: before }));
/** seconds: the position in the take. Returns the spot. */
export const addNote = (id, take, seconds, note) => ask(at(id, "/proof/notes"), json("POST", { take, at: seconds, note }));
/** Regenerate a part until nothing in it is doubtful. Returns {replaced, tries, weight_before, weight, part}. */
export const improvePart = (id, part) => ask(at(id, "/proof/regenerate"), json("POST", { part }));
export const reportAddress = (id, format) => address(at(id, `/proof/report?format=${format}`));
