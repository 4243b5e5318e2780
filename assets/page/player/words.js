// Combines a text and its word times into sentences. It shows nothing.

/** A piece of a text. at: from which character on. @typedef {{ text: string, at: number, start?: number, end?: number }} Piece */

/**
 * The whole text in pieces: words with their times, and what stands between them without.
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
    const found = text.indexOf(word, at);
    if (found < 0) continue;
    if (found > at) pieces.push({ text: text.slice(at, found), at });
    pieces.push({ text: word, at: found, start, end });
    at = found + word.length;
  }
  if (times.length && at < text.length) pieces.push({ text: text.slice(at), at });
  return pieces;
}

/**
 * The pieces of each sentence: one begins with the word that is heard when it begins.
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
    if (start !== undefined) now = Math.max(now, sentences.findLastIndex((sentence) => sentence.start <= start));
    (groups[now] ??= []).push(piece);
  }
  return groups.filter(Boolean);
}
