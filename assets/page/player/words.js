// A text and when its words are heard, put together. It shows nothing.

/**
 * The whole text in pieces: words with their times, and what stands between them without.
 *
 * @param {string} text
 * @param {{ text: string, start: number, end: number }[]} times in the order of the text
 * @returns {{ text: string, start?: number, end?: number }[]}
 */
export function placed(text, times) {
  const pieces = [];
  let at = 0;
  for (const { text: word, start, end } of times) {
    const found = text.indexOf(word, at);
    if (found < 0) continue;
    if (found > at) pieces.push({ text: text.slice(at, found) });
    pieces.push({ text: word, start, end });
    at = found + word.length;
  }
  if (times.length && at < text.length) pieces.push({ text: text.slice(at) });
  return pieces;
}
