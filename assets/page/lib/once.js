// Handles repeated clicks: while the first one's work is running, or after another button has replaced the clicked one.

/**
 * Return a function that does nothing while an earlier call is running, so that a double click has no second effect.
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
 * Return a function that, called while an earlier call is running, repeats the work once afterwards, so that a second
 * click counts, for example on a Save button after more was typed.
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
 * Whether a click is the second one of a double click: where Stop replaces Speak, it was not meant for Stop.
 *
 * @param {MouseEvent} press
 */
export const isSecond = (press) => press.detail > 1;
