// What the page says, by key, in the language of its document; in a tool that has no document, in English.

import catalogue from "../words/en.json" with { type: "json" };

/** @typedef {keyof typeof catalogue} Key */

export const LANGUAGE = globalThis.document?.documentElement?.lang || "en";

/** The reader's own variety of that language, such as de-AT, for numbers, dates and lists. */
export const LOCALE = globalThis.navigator?.languages?.find((tag) => tag.split("-")[0] === LANGUAGE.split("-")[0]) ?? LANGUAGE;

const FORMS = new Intl.PluralRules(LANGUAGE);
const NUMBER = new Intl.NumberFormat(LOCALE);
const LIST = new Intl.ListFormat(LANGUAGE);

/**
 * The words of a key. given: what stands for its {names}; numbers are written as the reader writes them. Where the words
 * depend on a count, that is given.count.
 *
 * @param {Key} key
 * @param {Record<string, string | number>} [given]
 * @returns {string}
 */
export function phrase(key, given = {}) {
  /** @type {string | Record<string, string>} */
  const found = catalogue[key];
  const words = typeof found === "string" ? found : (found[FORMS.select(Number(given.count))] ?? found.other);
  return words.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = given[name] ?? whole;
    return typeof value === "number" ? NUMBER.format(value) : value;
  });
}

/**
 * The same of a key that comes from the server; null for one that the page has no words for.
 *
 * @param {string} key
 * @param {Record<string, string | number>} [given]
 * @returns {string | null}
 */
export function phraseIfKnown(key, given = {}) {
  return Object.hasOwn(catalogue, key) ? phrase(/** @type {Key} */ (key), given) : null;
}

/**
 * A number as the reader writes it, with so many decimals.
 *
 * @param {number} value
 * @param {number} [decimals]
 */
export function numeral(value, decimals = 0) {
  return value.toLocaleString(LOCALE, { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

/**
 * Words one after the other, as in “a, b and c”.
 *
 * @param {Iterable<string>} words
 */
export function listed(words) {
  return LIST.format(words);
}
