// The speakers of a script: lines that begin with a name and a colon are turns, as in the API.

import { genderOfName } from "../lib/given-names.js";

const NAME = /^[ \t\u00ad\u200b-\u200f\u2060\ufeff]*(?:\*\*)?(\p{L}[\p{L}\p{M}\p{N}_ .'’\u00ad\u200b-\u200f\u2060\ufeff-]{0,39}?)(?:\*\*)?[ \t]*(?::(?:\*\*)?(?=\s|$)|：)/u;
const UNSEEN = /[\u00ad\u200b-\u200f\u2060\ufeff]/g;
const WORDS_IN_A_NAME = 4;

/**
 * Return the name at the start of a line, or undefined.
 *
 * @param {string} line
 */
function nameIn(line) {
  const name = NAME.exec(line)?.[1].replace(UNSEEN, "");
  return name && name.split(/\s+/).length <= WORDS_IN_A_NAME ? name : undefined;
}

/**
 * Whether there is text for the narrator: text before the first name.
 *
 * @param {string} script
 */
export function isTold(script) {
  const lines = script.split("\n");
  const first = lines.findIndex(nameIn);
  return lines.slice(0, first < 0 ? lines.length : first).join("").trim() !== "";
}

/**
 * Return the names at the start of at least `least` lines of a script, once each, as first written.
 *
 * @param {string} script
 */
export function speakers(script, least = 1) {
  const names = new Map();
  for (const name of script.split("\n").map(nameIn)) {
    if (!name) continue;
    const counted = names.get(folded(name)) ?? { name, lines: 0 };
    counted.lines += 1;
    names.set(folded(name), counted);
  }
  return [...names.values()].filter(({ lines }) => lines >= least).map(({ name }) => name);
}

/**
 * Return the id of the voice with exactly this name, or undefined.
 *
 * @param {string} name
 * @param {{ id: string, name: string }[]} known
 */
export function voiceNamed(name, known) {
  const key = folded(name);
  return known.find((/** @type {{ id: string, name: string }} */ voice) => voice.id === key || folded(voice.name) === key)?.id;
}

const OTHER = { female: "male", male: "female" };

/**
 * Choose voices for names without one: of the name's usual gender, otherwise alternating between genders. Avoid the narrator's
 * voice and repeated voices if possible. Return [name, voice id] pairs.
 *
 * @param {string[]} names
 * @param {{ id: string, gender?: string }[]} voices in order of preference
 * @param {string[]} taken ids
 * @param {string} narrator the id of the narrator's voice, blank for none
 * @returns {[string, string][]}
 */
export function dealVoices(names, voices, taken, narrator) {
  const used = new Set(taken);
  let last = "";
  return names.map((name, i) => {
    const gender = genderOfName(name) || OTHER[/** @type {"female" | "male"} */ (last)] || "";
    const others = voices.filter(({ id }) => id !== narrator);
    const free = others.filter(({ id }) => !used.has(id));
    const ofGender = (/** @type {typeof voices} */ some) => some.filter((voice) => !gender || voice.gender === gender);
    const voice = ofGender(free)[0] ?? free[0] ?? ofGender(others)[0] ?? others[i % Math.max(1, others.length)] ?? voices[0];
    if (voice) used.add(voice.id);
    last = gender || voice?.gender || "";
    return /** @type {[string, string]} */ ([name, voice?.id ?? ""]);
  });
}

/** Normalize a name for comparison. */
export const folded = (/** @type {string} */ name) => name.toLowerCase().split(/\s+/).join(" ");
