// Where dictionaries are shown: every <details data-dictionary> of the page opens one, of its data-voice or data-project.

import { isZeroGpu } from "../client/host.js";
import { hearWords } from "./hear-words.js";
import { PronunciationList } from "./pronunciation-list.js";

/** voice() is who speaks an entry that is everybody's or a project's. */
export function openDictionaries(voice, playButtons) {
  const hear = isZeroGpu ? null : hearWords(voice, playButtons);
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
    true, // it does not bubble
  );
}
