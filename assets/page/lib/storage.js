// Named JSON values, stored in this browser for the page or for one tab of it (see by-tab.js); unreadable entries count as absent.

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

const FAMILY = "voice-studio-";
const PREFIX = FAMILY + (globalThis.location?.pathname ?? "").replace(/\/?$/, "/:"); // of every entry; studios under several paths share a browser's storage
const LEFT = `${PREFIX}left`; // written when a person signs out, for the page's other tabs
const OWNER = "owner"; // whose entries these are
let hasLeft = false; // nothing is written any more: the page is about to reload
let isOpen = false; // whether what an owner left may be on the page
let isFull = false;

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
 * Return what outlives a reload of this tab, not its end.
 *
 * @param {string} name
 * @param {any} otherwise
 */
export function keptInTab(name, otherwise) {
  return readFrom(ofTab, name, otherwise);
}

/**
 * @param {string} name
 * @param {unknown} value
 */
export function keepInTab(name, value) {
  writeTo(ofTab, name, value);
}

/** Remove what this person left in the browser and in all tabs: drafts, takes, projects, voices, votes, preferences. */
export function forget() {
  clear();
  if (!(ofBrowser instanceof Memory)) ofBrowser.setItem(LEFT, String(Date.now()));
}

function clear() {
  hasLeft = true;
  for (const storage of [ofTab, ofBrowser]) remove(storage);
}

/** @param {Storage | Memory} storage */
function remove(storage) {
  if (storage instanceof Memory) return;
  for (const name of Object.keys(storage)) if (name.startsWith(PREFIX)) storage.removeItem(name);
}

/** Take over what was stored before entries had the studio's path, unless it is another owner's: perhaps of another studio. @param {Storage | Memory} storage */
function adopt(storage) {
  if (storage instanceof Memory || hasLeft) return;
  const owner = signedIn();
  if (readFrom(storage, OWNER, owner, FAMILY) !== owner) return;
  const isOld = (/** @type {string} */ key) => key.startsWith(FAMILY) && key[FAMILY.length] !== "/";
  for (const name of Object.keys(storage).filter(isOld).map((key) => key.slice(FAMILY.length))) {
    const value = readFrom(storage, name, null, FAMILY);
    storage.removeItem(FAMILY + name); // first: the storage may be full
    if (entryOf(name) !== LEFT && readFrom(storage, name, null) === null) writeTo(storage, name, value);
  }
}

/** Remove what another owner of a key, who did not sign out, left here. Returns whether there was any: then the page must be reloaded. */
export function forgetOthers() {
  for (const storage of [ofTab, ofBrowser]) adopt(storage);
  const owner = signedIn();
  if (!owner) return false;
  const others = [ofTab, ofBrowser].filter((storage) => readFrom(storage, OWNER, owner) !== owner);
  for (const storage of others) remove(storage);
  for (const storage of [ofTab, ofBrowser]) writeTo(storage, OWNER, owner);
  hasLeft ||= isOpen && others.length > 0;
  return others.length > 0;
}

/** The owner whose key this browser has, as the studio's cookie says; undefined without keys. */
function signedIn() {
  const port = globalThis.location?.port; // cookies belong to all ports of a host, so their names have it
  const cookie = new RegExp(`(?:^|; )studio_owner${port ? `_${port}` : ""}=([0-9a-f]+)`);
  return cookie.exec(globalThis.document?.cookie ?? "")?.[1];
}

const openedBy = signedIn();
forgetOthers();
isOpen = true;

globalThis.addEventListener?.("storage", ({ key, newValue }) => {
  const isOthers = key === entryOf(OWNER) && newValue !== null && openedBy && newValue !== JSON.stringify(openedBy);
  if (hasLeft || !(key === LEFT || isOthers)) return;
  if (isOthers) hasLeft = true; // the other owner's entries stay
  else clear();
  location.reload();
});

// Firefox keeps a page that was left for Back: it hears nothing meanwhile, nor may it store what the one who left it had on it.
globalThis.addEventListener?.("pageshow", ({ persisted }) => {
  if (!persisted || signedIn() === openedBy) return;
  hasLeft = true;
  location.reload();
});

/**
 * @param {Storage | Memory} storage
 * @param {string} name
 * @param {any} otherwise
 * @param {string} [prefix]
 */
function readFrom(storage, name, otherwise, prefix = PREFIX) {
  try {
    return JSON.parse(storage.getItem(prefix + name) ?? "null") ?? otherwise;
  } catch (problem) {
    if (!(problem instanceof SyntaxError)) throw problem;
    return otherwise;
  }
}

/**
 * If the storage is full, it stays unchanged and the page continues without the new value; "storagefull" is fired until a listener has told it (preventDefault).
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
    isFull ||= globalThis.dispatchEvent?.(new Event("storagefull", { cancelable: true })) === false;
  }
}
