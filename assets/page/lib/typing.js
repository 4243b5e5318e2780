// Typing: inserts text into a field as if it were typed, so that Ctrl+Z undoes it; keeps typing from triggering single-key shortcuts; asks before typed text is lost.

/**
 * Replace text in a visible text field, then focus it with the caret after the text; do nothing if the text is the same.
 *
 * @param {HTMLTextAreaElement} area
 * @param {number} start
 * @param {number} end
 * @param {string} text
 */
export function typeInto(area, start, end, text) {
  if (area.value.slice(start, end) === text) return;
  area.focus({ preventScroll: true });
  area.setSelectionRange(start, end);
  // Deprecated, but the only way into a field's own undo history; the browser fires an input event itself.
  if (document.execCommand(text ? "insertText" : "delete", false, text)) return;
  area.setRangeText(text, start, end, "end");
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

/**
 * Ask the user before the page is left while something is unsaved.
 *
 * @param {() => boolean} isUnsaved
 * @param {AbortSignal} [signal]
 */
export function askBeforeLeaving(isUnsaved, signal) {
  addEventListener("beforeunload", (event) => isUnsaved() && event.preventDefault(), { signal });
}

/**
 * Ask before the page is left while a text field in root, which saves its text once it is left, is being typed in.
 *
 * @param {Element} root
 * @param {AbortSignal} [signal]
 */
export function askWhileTyping(root, signal) {
  /** @type {Element | null} */
  let typed = null;
  root.addEventListener("input", ({ target }) => (typed = target instanceof Element ? target : null), { signal });
  root.addEventListener("change", () => (typed = null), { signal });
  askBeforeLeaving(() => typed !== null && typed === document.activeElement, signal);
}

const TYPED_INTO = "input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable], dialog, [role=menu]";

/**
 * Whether a key press may trigger an action: without Ctrl, Meta or Alt, outside fields, dialogs and menus.
 *
 * @param {KeyboardEvent} event
 */
export function isSingleKey(event) {
  const isTyped = event.target instanceof Element && event.target.closest(TYPED_INTO);
  return !isTyped && !event.ctrlKey && !event.metaKey && !event.altKey;
}
