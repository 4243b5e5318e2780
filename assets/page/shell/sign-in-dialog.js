// Asks for a key without leaving the page when the studio rejects the browser's key, so that no unsaved text is lost.

import { askForKeysBy } from "../client/requests.js";
import { signIn } from "../client/system.js";
import { partsOf } from "../lib/elements.js";
import { once } from "../lib/once.js";
import { phrase } from "../lib/phrases.js";
import { isTypedInto } from "../lib/typing.js";

const ACCEPTED = "accepted"; // the dialog's return value
const PAUSE = 2000; // ms without typing after which the dialog may take the focus from a text field
const LOOK = 100; // ms between two looks whether somebody types

const later = (wait) => new Promise((resolve) => {
  setTimeout(resolve, wait);
});

/** signedIn: called after a key is accepted. */
export function askForKey(dialog, signedIn) {
  const part = partsOf(dialog);
  const say = (words) => (part("refusal").textContent = words);
  /** Whether a key was accepted; all requests refused until then wait for it. @type {Promise<boolean> | null} */
  let asked = null;
  let isDeclined = false;
  let typedAt = -PAUSE;
  document.addEventListener("input", () => (typedAt = performance.now()), true);
  document.addEventListener("keydown", ({ ctrlKey, metaKey }) => (ctrlKey || metaKey) && (typedAt = -PAUSE), true); // a command, such as Speak: its answer is waited for
  /** Whether somebody is in the middle of typing: the next words would go into the key's field. */
  const isTyping = () => performance.now() - typedAt < PAUSE && document.activeElement !== null && isTypedInto(document.activeElement);
  const ask = async () => {
    while (isTyping()) await later(LOOK);
    say("");
    dialog.returnValue = "";
    dialog.showModal();
    await new Promise((resolve) => {
      dialog.addEventListener("close", resolve, { once: true });
    });
    return dialog.returnValue === ACCEPTED;
  };
  askForKeysBy(async (isRead) => {
    if (!asked && isDeclined && isRead) return false; // or polling would keep opening the dialog
    asked ??= ask().finally(() => (asked = null));
    isDeclined = !(await asked);
    return !isDeclined;
  });
  const send = once(async () => {
    const status = await signIn(part("form").elements.key.value);
    if (status !== 200) return say(phrase(status === 429 ? "signIn.wait" : status === 0 ? "refusal.notConnected" : "signIn.wrong"));
    part("form").reset();
    dialog.close(ACCEPTED);
    signedIn();
  });
  part("form").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
}
