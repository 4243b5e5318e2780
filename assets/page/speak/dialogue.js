// The speakers of a script: lines that begin with a name and a colon are turns, as the API reads them.

import { genderOfName } from "../lib/given-names.js";

const NAME = /^[ \t\u00ad\u200b-\u200f\u2060\ufeff]*(?:\*\*)?(\p{L}[\p{L}\p{M}\p{N}_ .'’\u00ad\u200b-\u200f\u2060\ufeff-]{0,39}?)(?:\*\*)?[ \t]*(?::(?:\*\*)?(?=\s|$)|：)/u;
const UNSEEN = /[\u00ad\u200b-\u200f\u2060\ufeff]/g;
const WORDS_IN_A_NAME = 4;

/**
 * The name that begins a line, or undefined.
 *
 * @param {string} line
 */
function nameIn(line) {
  const name = NAME.exec(line)?.[1].replace(UNSEEN, "");
  return name && name.split(/\s+/).length <= WORDS_IN_A_NAME ? name : undefined;
}

/**
 * Whether there is text before the first name, which the narrator reads.
 *
 * @param {string} script
 */
export function isTold(script) {
  const lines = script.split("\n");
  const first = lines.findIndex(nameIn);
  return lines.slice(0, first < 0 ? lines.length : first).join("").trim() !== "";
}

/**
 * The names that begin at least this many lines of a script, each once, as first written.
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
 * The id of the voice with exactly this name, or undefined.
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
 * Voices for names that have none yet: of the name's usual gender, else in turn of the other one than before; none twice and not
 * the narrator's, while there are others. Gives [name, voice id] pairs.
 *
 * @param {string[]} names
 * @param {{ id: string, gender?: string }[]} voices in the order in which they are dealt out
 * @param {string[]} taken ids
 * @param {string} narrator the id of the voice that tells the story, blank: none
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

/** A name as names are compared. */
export const folded = (/** @type {string} */ name) => name.toLowerCase().split(/\s+/).join(" ");
