// While a demo model is loaded the page says so: what is meant for that is shown, and the dialog tells how to get S2 Pro.

import { isZeroGpu, knownCard } from "../client/host.js";
import { mayChooseModel } from "../client/system.js";
import { copyText } from "../lib/copy.js";
import { closeByPressBeside } from "../lib/dialog.js";
import { partsOf } from "../lib/elements.js";
import { demoLine, gpuWords, modelWords } from "./demo-words.js";
import { phrase } from "../lib/phrases.js";

/** What has the class demo-only is seen while the model says that it is a demo; what the last look cannot say stays. */
export function markDemo(health) {
  const mark = (card) => document.body.toggleAttribute("data-demo", card.demo);
  if (knownCard) mark(knownCard);
  health.watch(({ engine }) => engine && mark(engine.card));
}

/** The line under the header, and the dialog that every button with data-opens="get-s2-pro" opens. */
export function explainDemo(line, dialog, health) {
  const part = partsOf(dialog);
  const words = partsOf(line)("words");
  const say = (card) => (words.textContent = demoLine(card.languages));
  if (knownCard) say(knownCard);
  health.watch(({ engine }) => {
    if (!engine) return;
    say(engine.card);
    part("now").textContent = modelWords(engine.model, engine.parameters);
    part("machine").textContent = gpuWords(engine.gpu, isZeroGpu);
  });
  part("copy").addEventListener("click", () => copyText(part("command"), part("copy")));
  closeByPressBeside(dialog);
  document.addEventListener("click", async ({ target }) => {
    if (!(target instanceof Element) || !target.closest("[data-opens=get-s2-pro]")) return;
    part("copy").textContent = phrase("shell.copy");
    dialog.showModal();
    part("choose").hidden = !(await mayChooseModel());
  });
}
