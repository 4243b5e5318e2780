// The page's way to the voice library: judge a clip, keep a voice, list, favour, delete and bring back. It shows nothing.

import { address, lostConnection, refusalOf } from "./door.js";

export async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(address(path), { cache: "no-store", ...options });
  } catch (problem) {
    if (problem instanceof TypeError) throw lostConnection();
    throw problem;
  }
  if (!response.ok) throw await refusalOf(response);
  return response.json();
}

function form(clip, words, cut, more = {}) {
  const body = new FormData();
  body.append("audio_sample", clip, "clip");
  for (const [name, value] of Object.entries({ ref_text: words, ...cut, ...more })) {
    if (value !== null && value !== undefined && value !== "") body.append(name, value);
  }
  return { method: "POST", body };
}

/** clip: Blob; cut: {start, end, gain_db, channel} or null. Gives {score, seconds, findings, fixed}. Raises Refusal. */
export function advise(clip, words, cut) {
  return ask("/v1/voices/advise", form(clip, words, cut));
}

/** Put a voice into the library and return its id. Raises Refusal. */
export async function keepVoice(clip, words, cut, { name, consent }) {
  return (await ask("/v1/audio/voices", form(clip, words, cut, { name, consent }))).id;
}

/** Voices by name, at most a hundred; `has_more` tells that a search is needed. */
export function findVoices(search) {
  return ask(`/v1/voices?limit=100&q=${encodeURIComponent(search)}`);
}

export function favour(id, favourite) {
  const headers = { "Content-Type": "application/json" };
  return ask(`/v1/voices/${id}`, { method: "PATCH", headers, body: JSON.stringify({ favourite }) });
}

export function deleteVoice(id) {
  return ask(`/v1/voices/${id}`, { method: "DELETE" });
}

export function restoreVoice(id) {
  return ask(`/v1/voices/${id}/restore`, { method: "POST" });
}

/** file: a .fishvoice pack. */
export function importVoice(file) {
  const body = new FormData();
  body.append("file", file);
  return ask("/v1/voices/import", { method: "POST", body });
}

export const previewAddress = (id) => address(`/v1/voices/${id}/preview`);
export const exportAddress = (id) => address(`/v1/voices/${id}/export`);
