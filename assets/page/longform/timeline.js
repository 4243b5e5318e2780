// The order and pauses of a project's parts.

/**
 * Return the parts in order, each with the silence after it (pause, in seconds).
 *
 * @param {{ part: string, position: number, take: string, start_s: number, end_s: number }[]} parts as returned by /v1/projects/{id}/timeline
 */
export function inARow(parts) {
  return parts.map((part, i) => ({ ...part, pause: i + 1 < parts.length ? Math.max(0, parts[i + 1].start_s - part.end_s) : 0 }));
}
