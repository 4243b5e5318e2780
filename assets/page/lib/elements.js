// Small parts that several areas are made of.

/**
 * An element with these properties and children.
 *
 * @param {string} kind
 * @param {(Node | string)[]} children
 * @returns {any}
 */
export function element(kind, more = {}, children = []) {
  const made = Object.assign(document.createElement(kind), more);
  made.append(...children);
  return made;
}

/**
 * A picture of 24 by 24; `path` is markup of ours, never a user's.
 *
 * @param {string} path
 * @returns {ChildNode}
 */
export function icon(path) {
  const holder = document.createElement("template");
  holder.innerHTML = `<svg viewBox="0 0 24 24" aria-hidden="true">${path}</svg>`;
  return /** @type {ChildNode} */ (holder.content.firstChild);
}

/**
 * Name a button that shows no words.
 *
 * @template {HTMLElement} T
 * @param {T} button
 * @param {string} label
 */
export function labelled(button, label) {
  button.setAttribute("aria-label", label);
  button.title = label;
  return button;
}

/**
 * Give a parent these children; where it has them already, nothing is touched: presses and focus on them stay.
 *
 * @param {Element} parent
 * @param {(Node | string)[]} children
 */
export function setChildren(parent, children) {
  const present = [...parent.children];
  if (children.length !== present.length || children.some((child, i) => child !== present[i])) parent.replaceChildren(...children);
}

/**
 * Finds the elements of a part of the page by their data-part, which our own markup has.
 *
 * @param {ParentNode} root
 * @returns {(name: string) => any}
 */
export function partsOf(root) {
  return (name) => root.querySelector(`[data-part=${name}]`);
}
