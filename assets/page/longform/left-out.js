// What of a project's document was left out, as the studio lists it: folded below the project's state.

import { element } from "../lib/elements.js";
import { phrase } from "../lib/phrases.js";

/** Show the sentences of a project, once: they never change. Hidden where there are none. */
export function showLeftOut(part, { id, skipped }) {
  const box = part("skipped");
  box.hidden = !skipped.length;
  if (box.dataset.of === id) return;
  box.dataset.of = id;
  box.open = false;
  part("skipped-count").textContent = phrase("project.skipped", { count: skipped.length });
  part("skipped-list").replaceChildren(...skipped.map((sentence) => element("li", { textContent: sentence })));
}
