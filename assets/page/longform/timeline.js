// Where each part of a project stands in the sound of the whole.

/**
 * The part that is heard at a second of the whole, undefined before the first; a pause belongs to the part before it.
 *
 * @param {{ parts: { start_s: number, position: number, part: string }[] }} timeline as /v1/projects/{id}/timeline gives it
 * @param {number} seconds
 */
export function partAt({ parts }, seconds) {
  return parts.findLast((each) => each.start_s <= seconds);
}
