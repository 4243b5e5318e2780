// Modal dialogs. The browser closes them on Escape and restores the previous focus.

/**
 * Close a dialog on a click beside it, unless the press began inside, as when selecting text.
 *
 * @param {HTMLDialogElement} dialog
 */
export function closeByPressBeside(dialog) {
  let began = /** @type {EventTarget | null} */ (null);
  dialog.addEventListener("pointerdown", ({ target }) => (began = target));
  dialog.addEventListener("click", ({ target }) => target === dialog && began === dialog && dialog.close());
}
