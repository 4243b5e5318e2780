// Keys: inserts text as if it were typed, so that Ctrl+Z undoes it; keeps typing from triggering shortcuts, and keys from changing a closed list; asks before typed text is lost.

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
  const whole = area.value.slice(0, start) + text + area.value.slice(end);
  // Deprecated, but the only way into a field's own undo history; the browser fires an input event itself. Chromium inserts text
  // line by line, with an event for each, but HTML at once.
  const isHtml = text.includes("\n") && document.execCommand("insertHTML", false, text.replaceAll("&", "&amp;").replaceAll("<", "&lt;"));
  if (isHtml && area.value === whole) return area.setSelectionRange(start + text.length, start + text.length); // it is before a last line break
  if (!isHtml && document.execCommand(text ? "insertText" : "delete", false, text)) return;
  area.value = whole;
  area.setSelectionRange(start + text.length, start + text.length);
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

/** Whether somebody has changed one of these fields or boxes, and it is not saved. @param {Iterable<Element>} fields */
export const isWritten = (fields) =>
  [...fields].some((field) => field instanceof HTMLInputElement && (field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue));

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

/**
 * Let a key that would change a closed list open it instead, for lists whose change takes effect at once.
 *
 * @param {KeyboardEvent} event a keydown
 */
export function openBeforeChanging(event) {
  const { target, key } = event;
  const isChange = /^(Arrow|Page|Home$|End$)/.test(key) || (key.length === 1 && key !== " ");
  if (!(target instanceof HTMLSelectElement) || !isChange || event.ctrlKey || event.metaKey || event.altKey || target.matches(":open")) return;
  event.preventDefault();
  target.showPicker();
}

/**
 * Let Escape close what a button has opened, and return the focus to the button.
 *
 * @param {HTMLElement} button
 * @param {HTMLElement} opened
 * @param {AbortSignal} [signal]
 */
export function closeOnEscape(button, opened, signal) {
  for (const place of [button, opened]) {
    place.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.defaultPrevented || button.getAttribute("aria-expanded") !== "true") return;
      event.preventDefault();
      button.click();
      button.focus();
    }, { signal });
  }
}

/** Whether a control is a field for text. @param {Element} control */
export const isTypedInto = (control) => control.matches("textarea, input:not([type=checkbox], [type=radio], [type=range], [type=button], [type=file]), [contenteditable]");

/**
 * Move the focus when an answer has arrived, unless somebody types elsewhere by now: the next keys would go into another field or press a button.
 *
 * @param {HTMLElement | null | undefined} control
 * @param {FocusOptions} [options]
 */
export function focusAfterwards(control, options) {
  const { activeElement: typed } = document;
  if (!(typed && isTypedInto(typed) && typed.checkVisibility())) control?.focus(options);
}

/**
 * Whether somebody may be in the middle of typing in a field. A list or a checkbox has no such state: each choice is final.
 *
 * @param {Element | null} field
 */
export const isBeingTyped = (field) => field !== null && field === document.activeElement && !field.matches("select, [type=checkbox]");
