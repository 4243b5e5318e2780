// The line on the page about how a script will be read.

import { phrase } from "../lib/phrases.js";

/**
 * Return the line's texts for a response of the studio; null if the script is read as written.
 *
 * @param {{ text: string, changed: boolean } | null} answer
 * @param {boolean} asWritten
 */
export function readingLine(answer, asWritten) {
  if (!answer?.changed) return null;
  if (asWritten) return { lead: phrase("speak.reading.asWritten"), words: "", other: phrase("speak.reading.asWords") };
  return { lead: phrase("speak.reading.lead"), words: answer.text, other: phrase("speak.reading.other") };
}
