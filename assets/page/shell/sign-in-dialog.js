// Asks for a key on the page when the studio rejects this browser's, so that no unsaved text is lost.

import { connection } from "../client/refusal.js";
import { signIn } from "../client/system.js";
import { partsOf } from "../lib/elements.js";
import { once } from "../lib/once.js";
import { phrase } from "../lib/phrases.js";

/** signedIn: called once a key is accepted. */
export function askForKey(dialog, signedIn) {
  const part = partsOf(dialog);
  const say = (words) => (part("refusal").textContent = words);
  connection.addEventListener("signed-out", () => {
    if (dialog.open) return;
    say("");
    dialog.showModal();
  });
  const send = once(async () => {
    const status = await signIn(part("form").elements.key.value);
    if (status !== 200) return say(phrase(status === 429 ? "signIn.wait" : status === 0 ? "refusal.notConnected" : "signIn.wrong"));
    part("form").reset();
    dialog.close();
    signedIn();
  });
  part("form").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
}
