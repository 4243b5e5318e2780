// The line on the page about how a script will be read.

import { phrase } from "../lib/phrases.js";

const WORDS = /\s*(?:[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]+)/g; // with the space before them; Chinese and Japanese signs one by one
const REACH = 60; // words of both texts within which they are the same again
const SHORT = 40; // words of a reading that is shown as a whole
const AROUND = 6; // words shown before and after a change in a longer one

/** @typedef {{ text: string, isNew: boolean }} Piece */

/**
 * Return the pieces of a reading: those that differ from the script, and what is around them.
 *
 * @param {string} script
 * @param {string} reading
 * @returns {Piece[]}
 */
export function piecesOf(script, reading) {
  const words = reading.match(WORDS) ?? [];
  const isNew = differing(script.match(WORDS) ?? [], words);
  const isShown = (/** @type {number} */ at) => words.length <= SHORT || isNew.slice(Math.max(0, at - AROUND), at + AROUND + 1).includes(true);
  /** @type {Piece[]} */
  const pieces = [];
  for (const [at, word] of words.entries()) {
    const last = pieces.at(-1);
    const text = isShown(at) ? word : last?.text.endsWith(" …") ? "" : " …";
    if (last?.isNew === isNew[at]) last.text += text;
    else pieces.push({ text, isNew: isNew[at] });
  }
  return pieces;
}

/**
 * Return for each word of a reading whether it differs from the script.
 *
 * @param {string[]} before
 * @param {string[]} after
 */
function differing(before, after) {
  const isSame = (/** @type {number} */ i, /** @type {number} */ j) => i < before.length && j < after.length && before[i].trim() === after[j].trim();
  const isNew = after.map(() => false);
  for (let [i, j] = [0, 0]; j < after.length; i += 1, j += 1) {
    if (isSame(i, j)) continue;
    const [left, added] = step((skipped, more) => isSame(i + skipped, j + more)) ?? [before.length - i, after.length - j];
    isNew.fill(true, j, j + Math.max(1, added)); // at least the word after those left out
    [i, j] = [i + left, j + added];
  }
  return isNew;
}

/**
 * Return the fewest words to skip in two texts until they are the same again, if they soon are.
 *
 * @param {(skipped: number, more: number) => boolean} isSame
 */
function step(isSame) {
  for (let both = 1; both <= REACH; both += 1) {
    for (let more = 0; more <= both; more += 1) if (isSame(both - more, more)) return [both - more, more];
  }
  return null;
}

/**
 * Return the line's texts for a response of the studio; null if the script is read as written.
 *
 * @param {string} script
 * @param {{ text: string, changed: boolean } | null} answer
 * @param {boolean} asWritten
 */
export function readingLine(script, answer, asWritten) {
  if (!answer?.changed) return null;
  if (asWritten) return { lead: phrase("speak.reading.asWritten"), pieces: [], other: phrase("speak.reading.asWords") };
  return { lead: phrase("speak.reading.lead"), pieces: piecesOf(script, answer.text), other: phrase("speak.reading.other") };
}
