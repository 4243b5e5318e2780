// How a project stands, in words, and what can be shown of its parts.

import { duration } from "../lib/time.js";
import { phrase } from "../lib/phrases.js";

const SHOWN = /** @type {const} */ (["new", "queued", "done", "stale", "failed"]); // states that parts can be listed by

/**
 * How far it is: parts, seconds, what is left, what failed.
 *
 * @param {{ state: string, parts: Record<string, number>, seconds: number, eta_s: number | null }} project as the server tells it
 */
export function stateWords({ state, parts, seconds, eta_s: eta }) {
  const words = [phrase("project.spoken", { done: parts.done, count: parts.total })];
  if (seconds) words.push(duration(seconds));
  if (state === "running") words.push(eta === null ? phrase("project.speaking") : phrase("project.left", { duration: duration(eta) }));
  if (state === "paused") words.push(phrase("project.paused"));
  if (parts.failed) words.push(phrase("project.failed", { count: parts.failed }));
  if (parts.stale) words.push(phrase("project.stale", { count: parts.stale }));
  return words.join(" · ");
}

/**
 * Which parts can be shown: pairs of a state, "" for all, "silent" for those without audio, and its words.
 *
 * @param {Record<string, number>} parts how many are in each state
 * @returns {[string, string][]}
 */
export function filterChoices(parts) {
  /** @type {[string, string][]} */
  const states = SHOWN.map((state) => [state, phrase("project.filter.state", { state: phrase(`longform.part.${state}`), count: parts[state] ?? 0 })]);
  return [["", phrase("project.filter.all")], ["silent", phrase("project.filter.silent")], ...states];
}
