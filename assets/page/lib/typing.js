// Text put into a field as if it were typed: Ctrl+Z undoes it, and earlier typing too.

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
