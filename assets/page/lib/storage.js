// What this browser keeps for the page, as JSON under a name each; what cannot be read counts as never kept.

/**
 * @param {string} name
 * @param {any} otherwise
 */
export function kept(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(name) ?? "null") ?? otherwise;
  } catch (problem) {
    if (!(problem instanceof SyntaxError)) throw problem;
    return otherwise;
  }
}

/**
 * @param {string} name
 * @param {unknown} value
 */
export function keep(name, value) {
  localStorage.setItem(name, JSON.stringify(value));
}
