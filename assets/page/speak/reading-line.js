// What the page says of how a script will be read.

import { phrase } from "../lib/phrases.js";

/**
 * What the line says of an answer of the studio; null where the script is read as it is written.
 *
 * @param {{ text: string, changed: boolean } | null} answer
 * @param {boolean} asWritten
 */
export function readingLine(answer, asWritten) {
  if (!answer?.changed) return null;
  if (asWritten) return { lead: phrase("speak.reading.asWritten"), words: "", other: phrase("speak.reading.asWords") };
  return { lead: phrase("speak.reading.lead"), words: answer.text, other: phrase("speak.reading.other") };
}
