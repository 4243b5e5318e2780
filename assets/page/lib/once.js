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

/** Ignore the second click of a double click on another button than the first: one that has taken its place, such as Stop, or the next row's Delete. */
export function ignoreMisplacedClicks() {
  /** @type {Element | null} */
  let pressed = null;
  addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button") : null;
    if (event.detail < 2) pressed = button;
    else if (button && button !== pressed) event.stopImmediatePropagation();
  }, true);
}
