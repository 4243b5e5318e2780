// A press that is made again while what it began is under way, as by a double click, is none.

/**
 * Gives work as a function that does nothing while an earlier call of it is under way.
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
