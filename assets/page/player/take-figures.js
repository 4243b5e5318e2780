// What the player bar tells of a take in numbers.

const inMs = (value) => (value === null ? null : `${Math.round(value)} ms`);

/** [name, value] each, as the player bar shows them; none of a take that is blind. @returns {[string, any][]} */
export function figuresOf(take) {
  if (take.isBlind) return [];
  return [
    ["waited", take.queueMs >= 1 ? inMs(take.queueMs) : null],
    ["server", inMs(take.serverMs)],
    ["heard", inMs(take.heardMs)],
    ["rtf", take.rtf],
    ["gaps", take.heardMs === null ? null : String(take.underruns)],
    ["seed", take.seed],
  ];
}
