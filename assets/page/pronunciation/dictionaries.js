// Opens dictionaries: every <details data-dictionary> shows its data-voice's or data-project's, or the shared one.

import { isThroughGradio } from "../client/host.js";
import { hearWords } from "./hear-words.js";
import { PronunciationList } from "./pronunciation-list.js";

/** voice() returns the voice that speaks entries of the shared dictionary or of a project's. */
export function openDictionaries(voice, playButtons) {
  const hear = isThroughGradio ? null : hearWords(voice, playButtons);
  const lists = new WeakMap();
  document.addEventListener(
    "toggle",
    ({ target }) => {
      if (!(target instanceof HTMLDetailsElement) || !target.matches("[data-dictionary]") || !target.open) return;
      const root = /** @type {HTMLElement} */ (target.querySelector("[data-part=dictionary-list]"));
      if (!lists.has(target)) lists.set(target, new PronunciationList(root, hear));
      const { voice: ofVoice, project } = target.dataset;
      lists.get(target).open(ofVoice ? { voice: ofVoice } : project ? { project } : {});
    },
    true, // the event does not bubble
  );
}
