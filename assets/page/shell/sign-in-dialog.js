// Asks for a key without leaving the page when the studio rejects the browser's key, so that no unsaved text is lost.

import { askForKeysBy } from "../client/requests.js";
import { signIn } from "../client/system.js";
import { partsOf } from "../lib/elements.js";
import { once } from "../lib/once.js";
import { phrase } from "../lib/phrases.js";

const ACCEPTED = "accepted"; // the dialog's return value

/** signedIn: called after a key is accepted. */
export function askForKey(dialog, signedIn) {
  const part = partsOf(dialog);
  const say = (words) => (part("refusal").textContent = words);
  /** Whether a key was accepted; all requests refused until then wait for it. @type {Promise<boolean> | null} */
  let asked = null;
  let isDeclined = false;
  const ask = () =>
    new Promise((resolve) => {
      say("");
      dialog.returnValue = "";
      dialog.showModal();
      dialog.addEventListener("close", () => resolve(dialog.returnValue === ACCEPTED), { once: true });
    });
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
