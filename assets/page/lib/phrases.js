// The page's texts by key, in the language of the document (English if it has none).

import catalogue from "../words/en.json" with { type: "json" };

/** @typedef {keyof typeof catalogue} Key */

export const LANGUAGE = globalThis.document?.documentElement?.lang || "en";

/** The user's own variety of that language, such as de-AT, for numbers and dates. */
export const LOCALE = globalThis.navigator?.languages?.find((tag) => tag.split("-")[0] === LANGUAGE.split("-")[0]) ?? LANGUAGE;

const FORMS = new Intl.PluralRules(LANGUAGE);
const NUMBER = new Intl.NumberFormat(LOCALE);
const LIST = new Intl.ListFormat(LANGUAGE);

/**
 * Return the text of a key. given: values for its {names}; numbers are formatted. given.count selects the plural form.
 *
 * @param {Key} key
 * @param {Record<string, string | number>} [given]
 * @returns {string}
 */
export function phrase(key, given = {}) {
  /** @type {string | Record<string, string>} */
  const entry = catalogue[key];
  const words = typeof entry === "string" ? entry : (entry[FORMS.select(Number(given.count))] ?? entry.other);
  return words.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = given[name] ?? whole;
    return typeof value === "number" ? NUMBER.format(value) : value;
  });
}

/**
 * Return the text of a key received from the server, or null if the page has none for it.
 *
 * @param {string} key
 * @param {Record<string, string | number>} [given]
 * @returns {string | null}
 */
export function phraseIfKnown(key, given = {}) {
  return Object.hasOwn(catalogue, key) ? phrase(/** @type {Key} */ (key), given) : null;
}

/**
 * Return a word of the bundled voices and models in the page's language; others stay as written.
 *
 * @param {string} word
 */
export const worded = (word) => phraseIfKnown(`word.${word}`) ?? word;

/**
 * Format a number in the user's locale, with this number of decimals.
 *
 * @param {number} value
 * @param {number} [decimals]
 */
export function numeral(value, decimals = 0) {
  return value.toLocaleString(LOCALE, { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

/**
 * Join words into a list, as in “a, b and c”.
 *
 * @param {Iterable<string>} words
 */
export function listed(words) {
  return LIST.format(words);
}
