// The page's way to projects: make, read, change, have spoken, and the addresses of what there is to hear. It shows nothing.

import { address } from "./address.js";
import { ask, form, json } from "./requests.js";

const at = (id, path = "") => `/v1/projects/${encodeURIComponent(id)}${path}`;

export const listProjects = () => ask("/v1/projects?limit=100");
export const readProject = (id) => ask(at(id));
export const readParts = (id, offset, limit) => ask(at(id, `/parts?offset=${offset}&limit=${limit}`));
export const readTimeline = (id) => ask(at(id, "/timeline?partial=true"));

/** source: a File, or a text; cast: voice ids by name. Raises Refusal. */
export function makeProject(source, voice, cast) {
  if (typeof source === "string") return ask("/v1/projects", json("POST", { input: source, voice, cast }));
  const body = new FormData();
  body.append("file", source);
  body.append("voice", voice);
  body.append("cast", JSON.stringify(cast));
  return ask("/v1/projects", { method: "POST", body });
}

export const changeProject = (id, changes) => ask(at(id), json("PATCH", changes));
/** Also while the page is being left. */
export const deleteProject = (id) => ask(at(id), { method: "DELETE", keepalive: true });
export const changePart = (id, part, changes) => ask(at(id, `/parts/${encodeURIComponent(part)}`), json("PATCH", changes));

/** parts: "missing", "all" or a list of ids. */
export const speakParts = (id, parts) => ask(at(id, "/speak"), json("POST", { parts }));

/** verb: pause, resume or cancel. */
export const orderProject = (id, verb) => ask(at(id, `/${verb}`), { method: "POST" });

export const takeAddress = (id, take) => address(at(id, `/takes/${encodeURIComponent(take)}/audio`));

export const timesAddress = (id, take) => at(id, `/takes/${encodeURIComponent(take)}/timestamps`);

export const savedAddress = (id, format) => address(at(id, `/audio?format=${format}&partial=true`));
export const fileAddress = (id, path) => address(at(id, `/${path}?partial=true`));

export const measureLoudness = (id) => ask(at(id, "/loudness?partial=true"));
export const coverAddress = (id, digest) => address(at(id, `/cover?of=${digest}`));
export const putCover = (id, cover) => ask(at(id, "/cover"), { ...form({ cover }), method: "PUT" });
export const removeCover = (id) => ask(at(id, "/cover"), { method: "DELETE" });
