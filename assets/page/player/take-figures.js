// The figures of a take in the player bar.

const inMs = (value) => (value === null ? null : `${Math.round(value)} ms`);

/** Return [name, value] pairs for the player bar; none for a blind take. @returns {[string, any][]} */
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
