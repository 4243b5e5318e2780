// The contents of a document that the import left out, listed below the project's state.

import { element } from "../lib/elements.js";
import { phrase } from "../lib/phrases.js";

/** Show a project's list, if not empty; only once, because it never changes. */
export function showLeftOut(part, { id, skipped }) {
  const box = part("skipped");
  box.hidden = !skipped.length;
  if (box.dataset.of === id) return;
  box.dataset.of = id;
  box.open = false;
  part("skipped-count").textContent = phrase("project.skipped", { count: skipped.length });
  part("skipped-list").replaceChildren(...skipped.map((sentence) => element("li", { textContent: sentence })));
}
