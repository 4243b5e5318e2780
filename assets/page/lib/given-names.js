// The gender that a name or a title usually implies, for a first guess at a voice.

import names from "./given-names.json" with { type: "json" };

const WOMEN = "lady madam madame miss mother mrs ms queen princess duchess aunt grandmother girl woman nurse señora frau";
const MEN = "mr sir lord king prince duke father uncle grandfather boy man monsieur señor herr";
const GENDERS = /** @type {const} */ ([
  ["female", new Set([...names.female, ...WOMEN.split(" ")])],
  ["male", new Set([...names.male, ...MEN.split(" ")])],
]);

/**
 * Return the gender that a character's name usually implies: "female", "male", or "" if unknown.
 *
 * @param {string} name
 */
export function genderOfName(name) {
  for (const word of name.toLowerCase().split(/[\s.'’-]+/)) {
    const known = GENDERS.find(([, words]) => words.has(word));
    if (known) return known[0];
  }
  return "";
}
