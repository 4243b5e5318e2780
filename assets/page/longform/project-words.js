// Describes a project's state in words, and lists the filters for its parts.

import { duration } from "../lib/time.js";
import { phrase } from "../lib/phrases.js";

const BYTES_PER_SECOND = 44_100 * 2; // of a take in the library: 16 bits
const SHOWN = /** @type {const} */ (["new", "queued", "done", "stale", "failed"]); // states by which parts can be filtered

/**
 * Describe the progress: parts, duration, time left of the queue, failures; and what generating the rest will cost.
 *
 * @param {{ state: string, parts: Record<string, number>, seconds: number, eta_s: number | null, speak_s?: number | null }} project as returned by the server
 * @param {number} [ahead] expected seconds of the audio that is missing
 */
export function stateWords({ state, parts, seconds, eta_s: eta, speak_s: work }, ahead = 0) {
  const words = [phrase("project.spoken", { done: parts.done, count: parts.total })];
  if (seconds) words.push(duration(seconds));
  if (state === "running") words.push(eta === null ? phrase("project.speaking") : left({ parts, eta }));
  if (state === "paused") words.push(phrase("project.paused"));
  if (parts.failed) words.push(phrase("project.failed", { count: parts.failed }));
  if (parts.stale) words.push(phrase("project.stale", { count: parts.stale }));
  if (ahead && state !== "running" && parts.new + parts.stale + parts.failed) {
    const [audio, megabytes] = [duration(ahead), Math.ceil((ahead * BYTES_PER_SECOND) / 1e6)];
    words.push(work ? phrase("project.cost", { audio, megabytes, duration: duration(work) }) : phrase("project.cost.unknown", { audio, megabytes }));
  }
  return words.join(" · ");
}

/** The time left, of all missing parts or of the queued ones. */
function left({ parts, eta }) {
  const count = parts.queued + parts.speaking;
  if (!(parts.new + parts.stale + parts.failed)) return phrase("project.left", { duration: duration(eta) });
  return phrase("project.left.queued", { count, duration: duration(eta) });
}

/**
 * Return the filters for parts: groups of pairs of a filter, as client/projects.js expects it, and its label.
 *
 * @param {Record<string, number>} parts the number in each state
 * @param {{ id: string, name: string, lines: number }[]} characters
 * @param {string} current the filter in use, kept even if no parts match it
 * @returns {{ label?: string, choices: [string, string][] }[]}
 */
export function filterChoices(parts, characters, current) {
  const counted = (/** @type {string} */ state, /** @type {number} */ count) => phrase("project.filter.state", { state, count });
  /** @type {[string, string][]} */
  const states = SHOWN.map((state) => [state, counted(phrase(`longform.part.${state}`), parts[state] ?? 0)]);
  /** @type {[string, string][]} */
  const speaking = characters.filter(({ id, lines }) => lines || current === `by:${id}`).map(({ id, name, lines }) => [`by:${id}`, counted(name, lines)]);
  /** @type {[string, string][]} */
  const all = [["", phrase("project.filter.all")], ["silent", phrase("project.filter.silent")], ["noted", phrase("project.filter.noted")], ...states];
  return speaking.length ? [{ choices: all }, { label: phrase("cast.title"), choices: [["by:", phrase("cast.narrator")], ...speaking] }] : [{ choices: all }];
}
