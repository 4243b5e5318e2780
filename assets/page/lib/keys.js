// Keys that stand for an action by themselves, without Ctrl: they must not be taken from what is typed.

const TYPED_INTO = "input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable], dialog, [role=menu]";

/**
 * Whether a key that is pressed may be such a one: alone, and outside fields, dialogs and menus.
 *
 * @param {KeyboardEvent} event
 */
export function isSingleKey(event) {
  const isTyped = event.target instanceof Element && event.target.closest(TYPED_INTO);
  return !isTyped && !event.ctrlKey && !event.metaKey && !event.altKey;
}
