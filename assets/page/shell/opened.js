// What a press opens or makes is seen: the page scrolls, if it must, so that it is not behind the player.

/** What is to be seen, until somebody does something else. @type {Element | null} */
let shown = null;

/** Scroll an element into view, and again when the player grows. @param {Element | null} element */
export function show(element) {
  shown = element;
  shown?.scrollIntoView({ block: "nearest" });
}

/** Whether somebody sees it now, whole. @param {Element | null} control */
export function isInView(control) {
  if (!control?.checkVisibility()) return false;
  const { top, bottom } = control.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
}

/** Of what folds open in any area: details, and what a button with aria-expanded controls. */
export function showOpened(dock) {
  for (const type of ["wheel", "touchstart", "pointerdown", "keydown"]) addEventListener(type, () => (shown = null), { capture: true, passive: true });
  new ResizeObserver(() => shown && show(shown)).observe(dock);
  document.addEventListener("toggle", ({ target }) => target instanceof HTMLDetailsElement && target.open && show(target), true);
  document.addEventListener("click", ({ target }) => {
    const toggle = target instanceof Element ? target.closest("[aria-expanded][aria-controls]") : null;
    if (!toggle) return;
    setTimeout(() => { // once the page has heard of the press
      if (toggle.getAttribute("aria-expanded") === "true") show(document.getElementById(toggle.getAttribute("aria-controls") ?? ""));
    });
  });
}
