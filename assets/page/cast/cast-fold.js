// The panel of the cast as a fold of an open project: drawn anew for each project, read when it is opened.

import { element } from "../lib/elements.js";
import { mountCast } from "./cast-panel.js";

/**
 * @param {HTMLDetailsElement} fold
 * @param {Parameters<typeof mountCast>[1]} project
 */
export function foldCast(fold, project) {
  const container = element("div");
  fold.open = false;
  fold.append(container);
  const panel = mountCast(container, project);
  fold.addEventListener("toggle", () => (fold.open ? panel.open() : panel.close()), { signal: project.signal });
  project.signal.addEventListener("abort", () => container.remove());
}
