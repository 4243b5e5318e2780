// Combines a text and its word times into sentences, and compares texts. Shows nothing.

/** A piece of a text. at: its first character's index. @typedef {{ text: string, at: number, start?: number, end?: number }} Piece */

// What opens a sentence: a tag, a bracket, a quotation mark. “ ends German quotations, so that one counts only after a space.
const OPENING = /(?:(?<=\s)[\p{Pi}"'¿¡]|\p{Ps})[^\n]*$/u;

/**
 * Return the whole text in pieces: words with times, and the text between them without.
 *
 * @param {string} text
 * @param {{ text: string, start: number, end: number }[]} times in the order of the text
 * @returns {Piece[]}
 */
export function placed(text, times) {
  /** @type {Piece[]} */
  const pieces = [];
  let at = 0;
  for (const { text: word, start, end } of times) {
    const place = text.indexOf(word, at);
    if (place < 0) continue;
    if (place > at) pieces.push({ text: text.slice(at, place), at });
    pieces.push({ text: word, at: place, start, end });
    at = place + word.length;
  }
  if (times.length && at < text.length) pieces.push({ text: text.slice(at), at });
  return pieces;
}

/**
 * Return the pieces of each sentence: from the word at its start time, including the tag or quotation mark before that.
 *
 * @param {Piece[]} pieces
 * @param {{ start: number }[]} sentences in the order of the text
 * @returns {Piece[][]}
 */
export function bySentence(pieces, sentences) {
  /** @type {Piece[][]} */
  const groups = [];
  let now = 0; // the sentence that the last word was of
  for (const piece of pieces) {
    const { start } = piece;
    const before = now;
    if (start !== undefined) now = Math.max(now, sentences.findLastIndex((sentence) => sentence.start <= start));
    const group = (groups[now] ??= []);
    if (now > before) group.push(...opening(groups[before]));
    group.push(piece);
  }
  return groups.filter(Boolean);
}

/** Remove and return the end of a sentence that opens the next one. @param {Piece[] | undefined} pieces */
function opening(pieces) {
  const last = pieces?.at(-1);
  const match = last?.start === undefined ? last?.text.match(OPENING) : null;
  if (!pieces || !last || !match) return [];
  const { index = 0 } = match;
  pieces.splice(-1, 1, ...(index ? [{ text: last.text.slice(0, index), at: last.at }] : []));
  return [{ text: match[0], at: last.at + index }];
}

/**
 * Return the text of a sentence for editing, up to a line break or space after its last character.
 *
 * @param {Piece[]} pieces
 * @returns {{ at: number, text: string }}
 */
export function wordsOf(pieces) {
  const last = pieces.findLastIndex(({ start }) => start !== undefined);
  const text = pieces.map((piece, i) => (i > last ? piece.text.replace(/\n[^]*$/, "") : piece.text)).join("");
  return { at: pieces[0].at, text: text.trimEnd() };
}

/**
 * Return the change made by an edit: characters start to end of `before`, and their replacement. The span is never empty if
 * `before` is not: at the end of a sentence, an empty span could also belong to the next one.
 *
 * @param {string} before
 * @param {string} after
 * @returns {{ start: number, end: number, replacement: string }}
 */
export function replaced(before, after) {
  const [old, now] = [[...before], [...after]];
  const most = Math.min(old.length, now.length);
  let [start, tail] = [0, 0];
  while (start < most && old[start] === now[start]) start += 1;
  while (tail < most - start && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  if (start === old.length - tail && start > 0) start -= 1;
  else if (start === old.length - tail && tail > 0) tail -= 1;
  const joined = (/** @type {string[]} */ signs) => signs.join("");
  return { start: joined(old.slice(0, start)).length, end: joined(old.slice(0, old.length - tail)).length, replacement: joined(now.slice(start, now.length - tail)) };
}

/**
 * Return the second of one take with the same word as at a second of another; in proportion where their words differ.
 *
 * @param {{ text: string, start: number, end: number }[]} from
 * @param {{ text: string, start: number, end: number }[]} to
 * @param {number} seconds in the first take
 */
export function sameWordAt(from, to, seconds) {
  const at = from.findLastIndex(({ start }) => start <= seconds);
  if (at < 0 || !to.length) return Math.min(seconds, to[0]?.start ?? seconds);
  const most = Math.min(from.length, to.length);
  let [head, tail] = [0, 0];
  while (head < most && from[head].text === to[head].text) head += 1;
  while (tail < most - head && from[from.length - 1 - tail].text === to[to.length - 1 - tail].text) tail += 1;
  const after = from.length - tail; // the words are the same again from here
  const there = at < head ? at : at >= after ? at - from.length + to.length : Math.floor(head + ((at - head) * (to.length - tail - head)) / (after - head));
  const [here, other] = [from[at], to[Math.min(there, to.length - 1)]];
  const share = Math.min(1, (seconds - here.start) / Math.max(0.001, here.end - here.start));
  const beyond = Math.max(0, seconds - here.end);
  const next = to[there + 1]?.start ?? Infinity;
  return Math.min(other.start + share * (other.end - other.start) + beyond, next);
}

/**
 * Return a text with each of its line breaks, and the spaces and blank lines around it, written as `by`.
 *
 * @param {string} text
 * @param {string} by
 */
export const joined = (text, by) => text.replace(/\s+/g, (space) => (space.includes("\n") ? by : space));
