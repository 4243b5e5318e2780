// Copying what is shown, and addresses.

import { phrase } from "./phrases.js";

const COPIED = phrase("shell.copied");
const TOLD = 1500; // ms that a button shows the result of a press

/**
 * Copy some words and say so on the button for a moment; without https a page may not, and asks to copy them by hand.
 *
 * @param {string} words
 * @param {Element} button
 */
export async function copyWords(words, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(words);
    if (before === COPIED) return; // a press before says so
    button.textContent = COPIED;
    setTimeout(() => (button.textContent = before), TOLD);
  } catch (problem) {
    if (!(problem instanceof TypeError || problem instanceof DOMException)) throw problem;
    window.prompt(phrase("shell.copyByHand"), words);
  }
}

/**
 * Copy an element's words and say so on the button; without https a page may not, and leaves them selected.
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
