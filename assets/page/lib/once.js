// Repeated presses: while the first one's work is under way, or after another button has taken its place.

/**
 * Ignore a second press, as by a double click: returns a function that does nothing while an earlier call is under way.
 *
 * @template {any[]} T
 * @param {(...given: T) => unknown} work
 * @returns {(...given: T) => Promise<void>}
 */
export function once(work) {
  let isUnderWay = false;
  return async (...given) => {
    if (isUnderWay) return;
    isUnderWay = true;
    try {
      await work(...given);
    } finally {
      isUnderWay = false;
    }
  };
}

/**
 * A second press counts, as that of a Save button does after more was written: gives work as a function that, called while
 * an earlier call is under way, has it done once more afterwards.
 *
 * @param {() => unknown} work
 * @returns {() => Promise<void>}
 */
export function onceMore(work) {
  let isWanted = false;
  const untilDone = once(async () => {
    while (isWanted) {
      isWanted = false;
      await work();
    }
  });
  return () => {
    isWanted = true;
    return untilDone();
  };
}

/**
 * Whether a press is the second one of a double click: where Stop takes the place of Speak, it was not meant for Stop.
 *
 * @param {MouseEvent} press
 */
export const isSecond = (press) => press.detail > 1;
