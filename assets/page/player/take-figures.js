// What the player bar tells of a take in numbers.

const inMs = (value) => (value === null ? null : `${Math.round(value)} ms`);

/** [label, value, explanation] each, as the player bar shows them; none of a take that is blind. @returns {[string, any, string][]} */
export function figuresOf(take) {
  if (take.isBlind) return [];
  return [
    ["Waited", take.queueMs >= 1 ? inMs(take.queueMs) : null, "Time in the queue before the engine took it, by the server's clock"],
    ["Server", inMs(take.serverMs), "From the request to the first sound, by the server's clock"],
    ["Heard", inMs(take.heardMs), "From your press to the first sample played, by this browser's clock"],
    ["RTF", take.rtf, "Seconds of work for one second of sound; below 1 is faster than speech"],
    ["Gaps", take.heardMs === null ? null : String(take.underruns), "Times the player ran out of sound and had to wait"],
    ["Seed", take.seed, "The number that repeats this take"],
  ];
}
