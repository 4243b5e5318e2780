// Ownership and sharing of a voice or project: a line that describes them, and the owner's choices.

import { needsKey } from "../client/host.js";
import { phrase } from "../lib/phrases.js";

/** @typedef {{ owner: string | null, sharing: string, right: string, bundled?: boolean }} Shared */

/** The API's names for the rights of other keys. @type {[string, import("../lib/phrases.js").Key][]} */
const CHOICES = [["private", "sharing.private"], ["read", "sharing.read"], ["edit", "sharing.edit"]];

/**
 * "Shared by Anna"; blank for private and bundled items, and where no keys are set.
 *
 * @param {Shared} item
 */
export function sharingWords({ owner, sharing, right, bundled = false }) {
  if (!needsKey || bundled || sharing === "private") return "";
  if (right === "own") return phrase("sharing.mine");
  return owner ? phrase("sharing.by", { name: owner }) : phrase("sharing.byAnother");
}

/**
 * The choices as menu items; only the owner has any.
 *
 * @param {Shared} item
 * @param {(sharing: string) => unknown} choose
 * @returns {import("../lib/menu.js").Item[]}
 */
export function sharingItems({ sharing, right }, choose) {
  if (!needsKey || right !== "own") return [];
  return CHOICES.map(([value, key]) => ({ words: phrase(key), isChecked: value === sharing, group: phrase("sharing.do"), run: () => choose(value) }));
}
