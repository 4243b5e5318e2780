// The texts of the page by key, in the language of the document (English without one).

import catalogue from "../words/en.json" with { type: "json" };

/** @typedef {keyof typeof catalogue} Key */

export const LANGUAGE = globalThis.document?.documentElement?.lang || "en";

/** The reader's own variety of that language, such as de-AT, for numbers, dates and lists. */
export const LOCALE = globalThis.navigator?.languages?.find((tag) => tag.split("-")[0] === LANGUAGE.split("-")[0]) ?? LANGUAGE;

const FORMS = new Intl.PluralRules(LANGUAGE);
const NUMBER = new Intl.NumberFormat(LOCALE);
const LIST = new Intl.ListFormat(LANGUAGE);

/**
 * The text of a key. given: values for its {names}; numbers are formatted for the reader. given.count selects the plural form.
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
 * The text of a key from the server; null if the page has none for it.
 *
 * @param {string} key
 * @param {Record<string, string | number>} [given]
 * @returns {string | null}
 */
export function phraseIfKnown(key, given = {}) {
  return Object.hasOwn(catalogue, key) ? phrase(/** @type {Key} */ (key), given) : null;
}

/**
 * A number formatted for the reader, with this number of decimals.
 *
 * @param {number} value
 * @param {number} [decimals]
 */
export function numeral(value, decimals = 0) {
  return value.toLocaleString(LOCALE, { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

/**
 * A list of words, as in “a, b and c”.
 *
 * @param {Iterable<string>} words
 */
export function listed(words) {
  return LIST.format(words);
}
