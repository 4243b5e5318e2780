// What a project still lacks before it is published, each with a press that leads to its repair.

import { element } from "../lib/elements.js";
import { numeral, phrase } from "../lib/phrases.js";

/** Least pixels of a square cover that podcast apps and audiobook shops accept. @type {Record<string, number>} */
const COVER_SIDES = { podcast: 1400, acx: 2400 };
const OF_BOOKS = ["author", "year", "language", "cover-file", "opening_credits", "closing_credits"]; // fields that files of single lines have no use for
const LONG = 5; // seconds of silence; the most that audiobook shops accept, and listeners think that the sound has ended

/**
 * List what is missing, or say that nothing is. repair: called with the name of the field to fill in; "parts" for the parts.
 *
 * @param {HTMLElement} place
 * @param {{ parts: Record<string, number>, cover: string | null, settings: Record<string, any> }} project as returned by the API, with the settings as shown
 * @param {{ chapters: any[], image: { naturalWidth: number, naturalHeight: number }, measured: any }} found chapters as returned by
 *   /v1/projects/{id}/outline; image: of the cover; measured: as returned by /v1/projects/{id}/loudness, or null
 * @param {(name: string) => void} repair
 */
export function showReady(place, { parts, cover, settings }, { chapters, image, measured }, repair) {
  const untitled = chapters.slice(1).filter(({ title }) => !title).length; // the first may be what precedes them
  const [width, height, side] = [image.naturalWidth, image.naturalHeight, COVER_SIDES[settings.loudness] ?? 0];
  const isFit = !cover || !width || !side || (width === height && width >= side);
  const silence = measured?.after.longest_silence_s ?? 0;
  /** @type {[boolean, string, string][]} */
  const checks = [
    [parts.done === parts.total, "parts", phrase("ready.parts", { count: parts.total - parts.done })],
    [!untitled, "parts", phrase("ready.chapters", { count: untitled })],
    [settings.loudness !== "none", "loudness", phrase("ready.loudness")],
    [Boolean(measured) || !parts.done, "measure", phrase("ready.measure")],
    ...(measured?.faults ?? []).map((fault) => [false, "loudness", fault]),
    [silence <= LONG, "gap", phrase("ready.silence", { seconds: numeral(silence, 1) })],
    [Boolean(settings.author), "author", phrase("ready.author")],
    [Boolean(settings.year), "year", phrase("ready.year")],
    [Boolean(settings.language), "language", phrase("ready.language")],
    [Boolean(cover), "cover-file", phrase("ready.cover")],
    [isFit, "cover-file", phrase("ready.cover.size", { width, height, side })],
    [Boolean(settings.opening_credits), "opening_credits", phrase("ready.opening")],
    [Boolean(settings.closing_credits), "closing_credits", phrase("ready.closing")],
  ];
  const isEpisode = settings.loudness === "podcast"; // which needs no credits
  const isBook = !Object.values(settings.columns ?? {}).includes("id"); // else a table whose lines become files
  const missing = checks.filter(([isThere, name]) => !isThere && (isBook || !OF_BOOKS.includes(name)) && !(isEpisode && name.endsWith("_credits")));
  const key = JSON.stringify(missing);
  if (place.dataset.shown === key) return; // a press on a line is not lost
  place.dataset.shown = key;
  const lines = missing.map(([, name, words]) => element("li", {}, [element("button", { type: "button", className: "long-lack", textContent: words, onclick: () => repair(name) })]));
  place.replaceChildren(...(lines.length ? lines : [element("li", { className: "long-good", textContent: phrase("ready.all") })]));
}
