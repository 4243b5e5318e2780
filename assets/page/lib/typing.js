// Typing: text put into a field as if it were typed, so that Ctrl+Z undoes it, and single keys for actions, which typing must not press.

/**
 * Replace the text between two characters of a visible text field; it has the focus afterwards, the caret behind the text.
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
  // Deprecated, but the only way into a field's own history; the browser reports it as typing.
  if (document.execCommand(text ? "insertText" : "delete", false, text)) return;
  area.setRangeText(text, start, end, "end");
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

const TYPED_INTO = "input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable], dialog, [role=menu]";

/**
 * Whether a key that is pressed may stand for an action: alone, and outside fields, dialogs and menus.
 *
 * @param {KeyboardEvent} event
 */
export function isSingleKey(event) {
  const isTyped = event.target instanceof Element && event.target.closest(TYPED_INTO);
  return !isTyped && !event.ctrlKey && !event.metaKey && !event.altKey;
}
