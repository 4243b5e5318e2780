// Named JSON values, stored in this browser for the page or for one tab of it; unreadable entries count as absent.

/** Replaces storage where the browser denies it, such as in another site's frame; lasts as long as the page. */
class Memory {
  /** @type {Map<string, string>} */
  #kept = new Map();

  /** @param {string} name */
  getItem(name) {
    return this.#kept.get(name) ?? null;
  }

  /**
   * @param {string} name
   * @param {string} value
   */
  setItem(name, value) {
    this.#kept.set(name, value);
  }
}

const PREFIX = "voice-studio-"; // of every entry, so that none outlives a sign-out
const LEFT = `${PREFIX}left`; // written when a person signs out, for the page's other tabs
let hasLeft = false; // nothing is written any more: the page is about to reload

const ofBrowser = opened("localStorage");
const ofTab = opened("sessionStorage");

/**
 * @param {"localStorage" | "sessionStorage"} name
 * @returns {Storage | Memory}
 */
function opened(name) {
  try {
    return globalThis[name] ?? new Memory();
  } catch (problem) {
    if (problem.name !== "SecurityError") throw problem;
    return new Memory();
  }
}

/** The key of an entry in the browser's storage. @param {string} name */
export const entryOf = (name) => PREFIX + name;

/**
 * @param {string} name
 * @param {any} otherwise
 */
export function kept(name, otherwise) {
  return readFrom(ofBrowser, name, otherwise);
}

/**
 * @param {string} name
 * @param {unknown} value
 */
export function keep(name, value) {
  writeTo(ofBrowser, name, value);
}

/**
 * Return this tab's value; a tab without one starts with the value that any tab stored last.
 *
 * @param {string} name
 * @param {any} otherwise
 */
export function keptByTab(name, otherwise) {
  return readFrom(ofTab, name, null) ?? kept(name, otherwise);
}

/**
 * @param {string} name
 * @param {unknown} value
 */
export function keepByTab(name, value) {
  writeTo(ofTab, name, value);
  keep(name, value);
}

/** Remove what this person left in the browser and in all tabs: drafts, takes, projects, voices, votes, preferences. */
export function forget() {
  clear();
  if (!(ofBrowser instanceof Memory)) ofBrowser.setItem(LEFT, String(Date.now()));
}

function clear() {
  hasLeft = true;
  for (const storage of [ofTab, ofBrowser]) {
    if (storage instanceof Memory) continue;
    for (const name of Object.keys(storage)) if (name.startsWith(PREFIX)) storage.removeItem(name);
  }
}

globalThis.addEventListener?.("storage", ({ key }) => {
  if (key !== LEFT || hasLeft) return;
  clear();
  location.reload();
});

/**
 * @param {Storage | Memory} storage
 * @param {string} name
 * @param {any} otherwise
 */
function readFrom(storage, name, otherwise) {
  try {
    return JSON.parse(storage.getItem(entryOf(name)) ?? "null") ?? otherwise;
  } catch (problem) {
    if (!(problem instanceof SyntaxError)) throw problem;
    return otherwise;
  }
}

/**
 * If the storage is full, it stays unchanged and the page continues without the new value.
 *
 * @param {Storage | Memory} storage
 * @param {string} name
 * @param {unknown} value
 */
function writeTo(storage, name, value) {
  if (hasLeft) return;
  try {
    storage.setItem(entryOf(name), JSON.stringify(value));
  } catch (problem) {
    if (problem.name !== "QuotaExceededError") throw problem;
  }
}
