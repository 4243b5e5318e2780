// Dialogs over the page. Escape closes them by itself, and focus goes back to where it was.

/**
 * Have a press beside a dialog close it; not one that began inside, as when text is selected.
 *
 * @param {HTMLDialogElement} dialog
 */
export function closeByPressBeside(dialog) {
  let began = /** @type {EventTarget | null} */ (null);
  dialog.addEventListener("pointerdown", ({ target }) => (began = target));
  dialog.addEventListener("click", ({ target }) => target === dialog && began === dialog && dialog.close());
}
