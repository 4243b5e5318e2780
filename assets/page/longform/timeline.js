// The order and pauses of a project's parts.

/**
 * The parts in their order, each with the silence after it, in seconds.
 *
 * @param {{ part: string, position: number, take: string, start_s: number, end_s: number }[]} parts as /v1/projects/{id}/timeline gives them
 */
export function inARow(parts) {
  return parts.map((part, i) => ({ ...part, pause: i + 1 < parts.length ? parts[i + 1].start_s - part.end_s : 0 }));
}
