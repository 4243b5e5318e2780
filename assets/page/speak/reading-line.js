// What the page says of how a script will be read.

/**
 * What the line says of an answer of the studio; null where the script is read as it is written.
 *
 * @param {{ text: string, changed: boolean } | null} answer
 * @param {boolean} asWritten
 */
export function readingLine(answer, asWritten) {
  if (!answer?.changed) return null;
  if (asWritten) return { lead: "Numbers, abbreviations and words of the dictionary are spoken as they are written.", words: "", other: "Read them as words" };
  return { lead: "Will be read as:", words: answer.text, other: "Speak as written" };
}
