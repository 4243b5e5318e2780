// Scrolls, if needed, to elements that a click opens or creates, so that the player does not cover them.

/** The element to keep in view until the next input. @type {Element | null} */
let shown = null;

const SCROLLED = 5000; // ms
const SCROLLS = ["PageUp", "PageDown", "Home", "End", "ArrowUp", "ArrowDown"];
let scrolledAt = -SCROLLED;

/** Whether a person has scrolled in the last seconds, to look at something else. */
export const isScrolling = () => performance.now() - scrolledAt < SCROLLED;

/** Scroll an element into view, and again when the player grows. @param {Element | null} element */
export function show(element) {
  shown = element;
  shown?.scrollIntoView({ block: "nearest" });
}

/** Whether all of it is in view. @param {Element | null} control */
export function isInView(control) {
  if (!control?.checkVisibility()) return false;
  const { top, bottom } = control.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
}

/** Show expanded content in any area: details, and elements controlled by a button with aria-expanded. */
export function showOpened(dock) {
  for (const type of ["wheel", "touchstart", "pointerdown", "keydown"]) addEventListener(type, () => (shown = null), { capture: true, passive: true });
  for (const type of ["wheel", "touchmove", "keydown", "pointerdown"]) addEventListener(type, (event) => {
    const isScroll = event instanceof KeyboardEvent ? SCROLLS.includes(event.key) : type !== "pointerdown" || event.target === document.documentElement; // a scroll bar
    if (isScroll) scrolledAt = performance.now();
  }, { capture: true, passive: true });
  new ResizeObserver(() => shown && show(shown)).observe(dock);
  document.addEventListener("toggle", ({ target }) => target instanceof HTMLDetailsElement && target.open && show(target), true);
  document.addEventListener("click", ({ target }) => {
    const toggle = target instanceof Element ? target.closest("[aria-expanded][aria-controls]") : null;
    if (!toggle) return;
    setTimeout(() => { // after the page has handled the click
      if (toggle.getAttribute("aria-expanded") !== "true") return;
      show(document.getElementById(toggle.getAttribute("aria-controls") ?? ""));
      toggle.scrollIntoView({ block: "nearest" }); // which matters more than the end of what it opened
    });
  });
}
