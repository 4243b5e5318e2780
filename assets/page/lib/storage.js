// What this browser keeps for the page, or for one tab of it, as JSON under a name each; what cannot be read was never kept.

/**
 * @param {string} name
 * @param {any} otherwise
 */
export function kept(name, otherwise) {
  return readFrom(localStorage, name, otherwise);
}

/**
 * @param {string} name
 * @param {unknown} value
 */
export function keep(name, value) {
  localStorage.setItem(name, JSON.stringify(value));
}

/**
 * What this tab kept; a tab that kept nothing yet begins with what any of them kept last.
 *
 * @param {string} name
 * @param {any} otherwise
 */
export function keptByTab(name, otherwise) {
  return readFrom(sessionStorage, name, null) ?? kept(name, otherwise);
}

/**
 * @param {string} name
 * @param {unknown} value
 */
export function keepByTab(name, value) {
  sessionStorage.setItem(name, JSON.stringify(value));
  keep(name, value);
}

/**
 * @param {Storage} storage
 * @param {string} name
 * @param {any} otherwise
 */
function readFrom(storage, name, otherwise) {
  try {
    return JSON.parse(storage.getItem(name) ?? "null") ?? otherwise;
  } catch (problem) {
    if (!(problem instanceof SyntaxError)) throw problem;
    return otherwise;
  }
}
