// API calls for the voice library: check and transcribe clips; find, create and change voices. No user interface.

import { address } from "./address.js";
import { ask, fetched, form, json, parsed } from "./requests.js";
import { LANGUAGE, phrase, worded } from "../lib/phrases.js";

const RANDOM = "random"; // a voice determined by the seed alone
const GENDERS = ["female", "male", "neutral"];

/** Names by id, from the latest list of voices. @type {Map<string, string>} */
let names = new Map();

/** Return all voices: {id, name, gender, accent, bundled, …}; the preselected voice has `isFirstChoice`. Throws Refusal. */
export async function voices() {
  const { voices: listed, first_choice: first } = await ask("/v1/audio/voices");
  const all = listed.map((voice) => ({ ...voice, name: voice.id === RANDOM ? phrase("speak.voice.random") : voice.name, isFirstChoice: voice.id === first }));
  names = new Map(all.map(({ id, name }) => [id, name]));
  return all;
}

/** Return the voices in a take's record, by name if known, otherwise by id. */
export const speakersOf = ({ voice }) => voice.split(", ").map((/** @type {string} */ id) => names.get(id) ?? id).join(", ");

/** Return a voice's gender in the page's language; an unknown gender stays as written. */
export const genderOf = ({ gender }) => (GENDERS.includes(gender) ? phrase(/** @type {import("../lib/phrases.js").Key} */ (`voice.sounds.${gender}`)) : gender);

/** Label in a list: "Clara · female · American". */
export const labelOf = (voice) => [voice.name, genderOf(voice), worded(voice.accent ?? "")].filter(Boolean).join(" · ");

export const traitsOf = ({ tags }) => tags.map(worded).join(", ");

/** A voice's description; the bundled voices', which are in English, are replaced by their tags in other languages. */
export const descriptionOf = (voice) => (voice.bundled && LANGUAGE !== "en" ? traitsOf(voice) : voice.description) || traitsOf(voice);

const about = (reference) => `/v1/voices/${encodeURIComponent(reference)}`;

/** sample: {clip: Blob, words, cut: {start, end, gain_db, channel} or null, denoise}. */
const sampleForm = ({ clip, words, cut, denoise = false }, more = {}) => form({ audio_sample: clip, ref_text: words, ...cut, denoise: denoise || "", ...more });

/**
 * Returns {score, seconds, findings, figures, cut, fixed}, plus marks if heard (a recogniser's words) is given. signal: ends the upload.
 *
 * @param {any} sample
 * @param {string} [heard]
 * @param {AbortSignal | null} [signal]
 */
export function advise(sample, heard = "", signal = null) {
  return ask("/v1/voices/advise", { ...sampleForm(sample, { heard }), signal });
}

/** Return a clip's cut with reduced noise as a WAV blob, as saved with `denoise`. */
export function denoised({ clip, cut }) {
  return fetched("/v1/voices/denoise", form({ audio_sample: clip, ...cut }), (response) => response.blob());
}

/** Transcribe a sample with a recogniser: {text, language, words, marks}. */
export function transcribe(sample, language) {
  return ask("/v1/voices/transcribe", sampleForm(sample, { language }));
}

/** {name, installed, install, offered: {model, licence, bytes}, may_fetch, fetching: {bytes, total} or null, error}. */
export function recogniser() {
  return ask("/v1/recogniser");
}

/** Start the studio's download of the offered model. Returns the same as recogniser(). */
export function fetchRecogniser() {
  return ask("/v1/recogniser", { method: "POST" });
}

export function stopFetchingRecogniser() {
  return ask("/v1/recogniser", { method: "DELETE" });
}

/** Add a voice to the library; facts: {name, description, tags, language, gender, accent, licence, consent}. */
export function createVoice(sample, facts) {
  return ask("/v1/audio/voices", sampleForm(sample, facts));
}

export function addSample(reference, sample) {
  return ask(`${about(reference)}/samples`, sampleForm(sample));
}

/** facts: {name, language, statement, recording: Blob}. */
export function recordConsent(facts) {
  return ask("/v1/audio/voice_consents", form(facts));
}

export function withdrawConsent(id) {
  return ask(`/v1/audio/voice_consents/${id}`, { method: "DELETE" });
}

/** Return one page of matching voices: {data, tags, genders, accents, languages, has_more, last_id}. */
export function findVoices({ q = "", tags = [], gender = "", accent = "", language = "", favourite, order = "name", after, limit = 100 }) {
  const query = new URLSearchParams({ q, gender, accent, language, order, limit: String(limit) });
  for (const tag of tags) query.append("tag", tag);
  if (favourite) query.append("favourite", "true");
  if (after) query.append("after", after);
  return ask(`/v1/voices?${query}`);
}

/** Return a voice with its `etag`, so that a change cannot overwrite someone else's. */
export function getVoice(reference) {
  return fetched(about(reference), {}, async (response) => ({ ...(await parsed(response)), etag: response.headers.get("etag") }));
}

export async function revisionsOf(reference) {
  const revisions = [];
  for (let after = ""; ; ) {
    const page = await ask(`${about(reference)}/revisions?limit=100${after}`);
    revisions.push(...page.data);
    if (!page.has_more) return revisions;
    after = `&after=${page.last_id}`;
  }
}

/** changes: any of name, slug, description, tags, language, gender, accent, colour, favourite, licence, defaults. */
export function changeVoice(reference, changes, etag) {
  return ask(about(reference), json("PATCH", changes, etag));
}

/** changes: any of text, cut, speaker. */
export function changeSample(reference, sample, changes, etag) {
  return ask(`${about(reference)}/samples/${sample}`, json("PATCH", changes, etag));
}

export function chooseSamples(reference, samples, etag) {
  return ask(`${about(reference)}/samples`, json("PUT", { samples }, etag));
}

export function goBack(reference, revision, etag) {
  return ask(`${about(reference)}/revisions/${revision}/restore`, json("POST", {}, etag));
}

export function duplicate(reference, name) {
  return ask(`${about(reference)}/duplicate`, json("POST", { name }));
}

export function deleteVoice(id) {
  return ask(about(id), { method: "DELETE" });
}

/** file: a .fishvoice pack; as: {name} to rename it, {replaces} to add it to that voice as its next revision. */
export function importVoice(file, as = {}) {
  return ask("/v1/voices/import", form({ file, ...as }));
}

/** files: the contents of a folder with one folder per voice, each with recordings and a .lab transcript per recording. */
export function importFolder(files) {
  const body = new FormData();
  for (const file of files) body.append("file", file, file.webkitRelativePath);
  return ask("/v1/voices/import", { method: "POST", body });
}

/** Return {name, samples, …} of a .fishvoice pack. */
export function inspectPack(file) {
  return ask("/v1/voices/inspect", form({ file }));
}

/** Return a recording as it was uploaded. */
export function recordingOf(reference, sample) {
  return fetched(`${about(reference)}/samples/${sample}/audio`, {}, (response) => response.blob());
}

/** Address of a voice's sample (counted from 0), as passed to the model. */
export const previewAddress = (reference, sample = 0) => address(`${about(reference)}/preview?sample=${sample}`);
export const exportAddress = (id) => address(`${about(id)}/export`);
