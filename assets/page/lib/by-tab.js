// What each tab keeps for itself: it outlives reloads of the tab, and a new tab takes over what closed ones have left.

import { Drafts } from "./drafts.js";
import { keep, keepInTab, kept, keptInTab } from "./storage.js";

const NAME = "tab-1"; // of this tab's drafts
const KIND = "tab";

/** @type {Drafts | null} */
let drafts = null;

/** Find what this tab keeps or, in a new one, what closed tabs have left: the newest of each thing. Resolves with the drafts. */
export async function openTab() {
  const name = keptInTab(NAME, "");
  drafts = name ? new Drafts(KIND, name) : await Drafts.of(KIND);
  keepInTab(NAME, drafts.name);
  return drafts;
}

/**
 * Return this tab's value; a tab without one starts with the value that an open tab stored last.
 *
 * @param {string} name
 * @param {any} otherwise
 */
export function keptByTab(name, otherwise) {
  return keptInTab(name, null) ?? drafts?.get(KIND, name) ?? drafts?.latest(KIND, name) ?? kept(name, otherwise); // the last: of older pages
}

/**
 * @param {string} name
 * @param {unknown} value blank: nothing for another tab to take over
 */
export function keepByTab(name, value) {
  keepInTab(name, value);
  if (kept(name, null) !== null) keep(name, null); // of older pages, which kept one value for all tabs
  if (!drafts) return;
  drafts.keep(KIND, name, value);
  keepInTab(NAME, drafts.name);
}
