// Copying what is shown.

/**
 * Copy an element's words and say so on the button; without https a page may not, and leaves them selected.
 *
 * @param {Element} source
 * @param {Element} button
 */
export async function copyText(source, button) {
  try {
    await navigator.clipboard.writeText(source.textContent ?? "");
    button.textContent = "Copied";
  } catch (problem) {
    if (!(problem instanceof TypeError || problem instanceof DOMException)) throw problem;
    getSelection()?.selectAllChildren(source);
    button.textContent = "Press Ctrl C";
  }
}
