// Remembers the takes in this tab's list across reloads; the takes themselves are stored on the server.

import { keepByTab, keptByTab } from "../lib/by-tab.js";

const STORE = "takes-1";

/** [{id, number, voiceName}], oldest first. */
export function remembered() {
  const kept = keptByTab(STORE, []);
  return Array.isArray(kept) ? kept.filter((take) => typeof take?.id === "string" && Number.isInteger(take.number)) : [];
}

export function remember(takes) {
  const kept = takes.filter(({ id }) => id).map(({ id, number, voiceName }) => ({ id, number, voiceName }));
  keepByTab(STORE, kept.sort((a, b) => a.number - b.number));
}
