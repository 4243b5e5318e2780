// Copies text and addresses to the clipboard.

import { phrase } from "./phrases.js";

const COPIED = phrase("shell.copied");
const TOLD = 1500; // ms for which a button shows the result of a click

/**
 * Copy text and confirm it on the button for a moment; without https, which copying requires, ask to copy it by hand.
 *
 * @param {string} words
 * @param {Element} button
 */
export async function copyWords(words, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(words);
    if (before === COPIED) return; // still shown from an earlier click
    button.textContent = COPIED;
    setTimeout(() => (button.textContent = before), TOLD);
  } catch (problem) {
    if (!(problem instanceof TypeError || problem instanceof DOMException)) throw problem;
    window.prompt(phrase("shell.copyByHand"), words);
  }
}

/**
 * Copy an element's text and confirm it on the button; without https, which copying requires, select it instead.
 *
 * @param {Element} source
 * @param {Element} button
 */
export async function copyText(source, button) {
  try {
    await navigator.clipboard.writeText(source.textContent ?? "");
    button.textContent = COPIED;
  } catch (problem) {
    if (!(problem instanceof TypeError || problem instanceof DOMException)) throw problem;
    getSelection()?.selectAllChildren(source);
    button.textContent = phrase("shell.pressCtrlC");
  }
}
