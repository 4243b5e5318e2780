// Dialogs over the page. Escape closes them by itself, and focus goes back to where it was.

/**
 * Have a press beside a dialog close it.
 *
 * @param {HTMLDialogElement} dialog
 */
export function closeByPressBeside(dialog) {
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
}
