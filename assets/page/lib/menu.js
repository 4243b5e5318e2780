// A menu opened by a button: download formats, and actions that are rarely used or cannot be undone.

import { element } from "./elements.js";

/** @typedef {{ words: string, note?: string, run: () => unknown, isGrave?: boolean, isDisabled?: boolean, isChecked?: boolean, group?: string }} Item isChecked: for choices, whether it is chosen; group: the heading above it and its like */

const GAP = 4; // px between button and menu

/** The button that opened the menu last. @type {HTMLElement | null} */
let opener = null;
/** @type {HTMLElement | null} */
let menu = null;

/** Return the page's only menu element, which all menus share. */
function menuElement() {
  if (menu) return menu;
  /** @type {HTMLElement} */
  const box = element("div", { id: "menu", popover: "auto" });
  box.setAttribute("role", "menu");
  box.addEventListener("keydown", onKey);
  box.addEventListener("toggle", (event) => /** @type {ToggleEvent} */ (event).newState === "closed" && opener?.setAttribute("aria-expanded", "false"));
  (document.querySelector(".gradio-container main") ?? document.body).append(box);
  return (menu = box);
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  const entries = /** @type {HTMLElement[]} */ ([...(menu?.querySelectorAll("button:not(:disabled)") ?? [])]);
  const at = entries.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  if (event.key === "Tab") menu?.hidePopover();
  /** @type {Record<string, number>} */
  const places = { Home: 0, End: -1, ArrowDown: (at + 1) % entries.length, ArrowUp: at - 1 };
  const to = places[event.key];
  if (to === undefined) return;
  event.preventDefault();
  entries.at(to)?.focus();
}

/**
 * Let a button open a menu of the items that `items` returns on the click.
 *
 * @template {HTMLElement} T
 * @param {T} button
 * @param {() => Item[]} items
 * @param {AbortSignal} [signal]
 */
export function offerMenu(button, items, signal) {
  button.setAttribute("aria-haspopup", "menu");
  button.setAttribute("aria-expanded", "false");
  button.addEventListener("click", () => open(button, items()), { signal });
  return button;
}

/**
 * Return where an item of a group goes: below the group's heading, which is created for its first item.
 *
 * @param {HTMLElement} box
 * @param {string} group
 */
function holderOf(box, group) {
  const last = /** @type {HTMLElement | null} */ (box.lastElementChild);
  if (!group) return box;
  if (last?.getAttribute("aria-label") === group) return last;
  const holder = element("div", {}, [element("strong", { textContent: group, ariaHidden: "true" })]);
  holder.setAttribute("role", "group");
  holder.setAttribute("aria-label", group);
  box.append(holder);
  return holder;
}

/**
 * @param {HTMLElement} button
 * @param {Item[]} items
 */
function open(button, items) {
  const box = menuElement();
  if (box.matches(":popover-open")) box.hidePopover();
  opener = button;
  box.setAttribute("aria-label", button.getAttribute("aria-label") ?? button.textContent ?? "");
  box.replaceChildren();
  items.forEach(({ words, note = "", run, isGrave = false, isDisabled = false, isChecked, group = "" }) => {
    const entry = element("button", { type: "button", textContent: words, disabled: isDisabled, className: isGrave ? "grave" : "" });
    entry.setAttribute("role", isChecked === undefined ? "menuitem" : "menuitemradio");
    if (note) entry.append(" ", element("small", { textContent: note }));
    if (isChecked !== undefined) entry.setAttribute("aria-checked", String(isChecked));
    entry.addEventListener("click", () => {
      box.hidePopover();
      run();
    });
    holderOf(box, group).append(entry);
  });
  box.showPopover();
  button.setAttribute("aria-expanded", "true");
  const [at, size] = [button.getBoundingClientRect(), box.getBoundingClientRect()];
  const below = at.bottom + GAP + size.height <= innerHeight;
  box.style.top = `${below ? at.bottom + GAP : Math.max(GAP, at.top - GAP - size.height)}px`;
  box.style.left = `${Math.max(GAP, Math.min(at.left, innerWidth - size.width - GAP))}px`;
  /** @type {HTMLElement | null} */ (box.querySelector("[aria-checked=true]:not(:disabled)") ?? box.querySelector("button:not(:disabled)"))?.focus();
}
