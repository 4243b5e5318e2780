// While a demo model is loaded, shows a notice that leads to the models that clone voices.

import { knownCard } from "../client/host.js";
import { mayChooseModel } from "../client/system.js";
import { copyText } from "../lib/copy.js";
import { closeByPressBeside } from "../lib/dialog.js";
import { partsOf } from "../lib/elements.js";
import { demoLine, modelWords } from "./demo-words.js";
import { phrase } from "../lib/phrases.js";

/** Show elements with the class demo-only while the model is a demo; without an engine, leave them as they are. */
export function markDemo(health) {
  const mark = (card) => document.body.toggleAttribute("data-demo", card.demo);
  if (knownCard) mark(knownCard);
  health.watch(({ engine }) => engine && mark(engine.card));
}

/**
 * Fill in the line under the header. Buttons with data-opens="better-model" open the models dialog for visitors who may choose a
 * model, and the dialog about running one's own studio for all others.
 *
 * @param {HTMLElement} line
 * @param {HTMLDialogElement} ownStudio
 * @param {import("../models/models-dialog.js").ModelsDialog} models
 */
export function explainDemo(line, ownStudio, models, health) {
  const words = partsOf(line)("words");
  const say = (card) => (words.textContent = demoLine(card.languages));
  if (knownCard) say(knownCard);
  health.watch(({ engine }) => {
    if (!engine) return;
    say(engine.card);
    partsOf(ownStudio)("own").textContent = modelWords(engine.model, engine.parameters);
  });
  const copies = ownStudio.querySelectorAll(".dialog-copy");
  for (const copy of copies) copy.addEventListener("click", () => copyText(/** @type {Element} */ (copy.previousElementSibling), copy));
  closeByPressBeside(ownStudio);
  document.addEventListener("click", async ({ target }) => {
    const button = target instanceof Element && /** @type {HTMLElement | null} */ (target.closest("[data-opens=better-model]"));
    if (!button) return;
    if (await mayChooseModel()) return models.open(button.dataset.wanted);
    for (const copy of copies) copy.textContent = phrase("shell.copy");
    ownStudio.showModal();
  });
}
