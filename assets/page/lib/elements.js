// DOM helpers shared by the areas.

/**
 * Create an element with these properties and children.
 *
 * @param {string} kind
 * @param {(Node | string)[]} children
 * @returns {any}
 */
export function element(kind, more = {}, children = []) {
  const created = Object.assign(document.createElement(kind), more);
  created.append(...children);
  return created;
}

/**
 * Create a list box that has only its chosen option until somebody enters it: hundreds of boxes with all voices take seconds.
 * Its value is set by choose().
 *
 * @param {string[][]} options values and their words
 * @returns {HTMLSelectElement & { choose: (value: string) => void }}
 */
export function listBox(options, more = {}) {
  const select = element("select", more);
  const show = (/** @type {typeof options} */ some) => select.replaceChildren(...some.map(([value, textContent]) => element("option", { value, textContent })));
  const choose = (/** @type {string} */ value) => {
    if (select.length < options.length) show(options.filter(([one]) => one === value));
    select.value = value;
  };
  const fill = () => {
    const { value } = select;
    if (select.length < options.length) show(options);
    select.value = value;
  };
  for (const type of ["pointerdown", "focus"]) select.addEventListener(type, fill);
  return Object.assign(select, { choose });
}

/**
 * Create a 24 by 24 icon; `path` is our own markup, never a user's.
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
 * Label a button that shows no text.
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
 * Show on a row's play button whether it is playing; label: the action of a click.
 *
 * @param {HTMLElement} button
 * @param {boolean} isPlaying
 * @param {string} label
 */
export function showPlaying(button, isPlaying, label) {
  if (isPlaying) button.dataset.playing = "yes";
  else delete button.dataset.playing;
  if (button.title !== label) labelled(button, label);
}

/**
 * Keep a CSS variable of the page equal to an element's height until the signal aborts.
 *
 * @param {HTMLElement} measured
 * @param {string} variable
 * @param {AbortSignal} signal
 */
export function publishHeight(measured, variable, signal) {
  const { style } = document.documentElement;
  const observer = new ResizeObserver(() => style.setProperty(variable, `${measured.offsetHeight}px`));
  observer.observe(measured);
  signal.addEventListener("abort", () => {
    observer.disconnect();
    style.removeProperty(variable);
  });
}

/**
 * Set a parent's children. Existing ones stay in place, so that presses and focus on them survive.
 *
 * @param {Element} parent
 * @param {Element[]} children
 */
export function setChildren(parent, children) {
  const kept = new Set(children);
  const focused = /** @type {HTMLElement | null} */ (document.activeElement);
  for (const child of [...parent.children]) if (!kept.has(child)) child.remove();
  for (const [i, child] of children.entries()) if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] ?? null);
  if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true }); // it was moved
}

/**
 * Return a function that redraws a list after a change that was not made here; while the pointer is over the list or its text is
 * being typed in, once that ends.
 *
 * @param {HTMLElement} list
 * @param {() => unknown} redraw
 * @param {AbortSignal} signal
 */
export function redrawWhenLeft(list, redraw, signal) {
  let isDue = false;
  const attempt = () => {
    isDue = list.matches(":hover") || (list.contains(document.activeElement) && Boolean(document.activeElement?.matches("input:not([type=checkbox]), textarea")));
    if (!isDue) redraw();
  };
  list.addEventListener("pointerleave", () => isDue && attempt(), { signal });
  list.addEventListener("focusout", ({ relatedTarget }) => isDue && !(relatedTarget instanceof Node && list.contains(relatedTarget)) && attempt(), { signal });
  return attempt;
}

/** A list's elements by the ids of their items. An item keeps its element while listed, so that no press on it is lost. */
export class Keyed {
  /** @type {Map<string, HTMLElement>} */
  #known = new Map();

  /**
   * Return one element per item. `draw(item, before)` returns it: the previous one, updated, or a new one.
   *
   * @template {{ id: string }} T
   * @param {T[]} items
   * @param {(item: T, before?: HTMLElement) => HTMLElement} draw
   */
  of(items, draw) {
    this.#known = new Map(items.map((item) => [item.id, draw(item, this.#known.get(item.id))]));
    return [...this.#known.values()];
  }

  /** @param {string} id */
  get(id) {
    return this.#known.get(id);
  }
}

/**
 * Return a function that finds an element within root by its data-part, a name from our own markup.
 *
 * @param {ParentNode} root
 * @returns {(name: string) => any}
 */
export function partsOf(root) {
  return (name) => root.querySelector(`[data-part=${name}]`);
}
