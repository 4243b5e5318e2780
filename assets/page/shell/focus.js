// Keeps the keyboard focus: when a control is hidden or redrawn, its replacement gets the focus, or else the nearest control.

import { isTypedInto } from "../lib/typing.js";

const CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex]";
const SHOWS = ["hidden", "disabled", "aria-selected", "data-speaking", "data-area", "data-shown", "data-captured"]; // may hide or show a control

const isSeen = (control) => control.isConnected && control.checkVisibility({ visibilityProperty: true });
const isUsable = (control) => isSeen(control) && !control.matches(":disabled") && control.tabIndex >= 0;
const isOfWords = ({ type, addedNodes, removedNodes }) =>
  type === "childList" && [...addedNodes, ...removedNodes].every((node) => !(node instanceof Element)); // hides no control: a running clock
const nameOf = (control) => `${control.tagName} ${control.dataset.key ?? control.getAttribute("aria-label") ?? control.textContent}`;

/** After pointer input only the replacement gets the focus: another control might open a phone's keyboard. */
export function keepFocus() {
  let [usesKeys, isTyping] = [false, false];
  /** The last focused control and its ancestors, which are unknown once it is removed. @type {any} */
  let last = null;
  let isLooking = false;

  document.addEventListener("keydown", ({ key }) => ([usesKeys, isTyping] = [true, !["Enter", "Escape"].includes(key)]), true); // these close a field
  document.addEventListener("pointerdown", () => ([usesKeys, last] = [false, null]), true); // given up outside all controls
  document.addEventListener("focusin", ({ target }) => {
    if (!(target instanceof Element)) return;
    /** @type {Element[]} */
    const holders = [];
    for (let holder = target.parentElement; holder && holder !== document.body; holder = holder.parentElement) {
      holders.push(holder);
      if (holder.matches(".area, #dock, dialog")) break;
    }
    last = { control: target, holders, order: [...(holders.at(-1)?.querySelectorAll(CONTROLS) ?? [])], isWaiting: false };
  });

  const look = () => {
    isLooking = false;
    const { activeElement } = document;
    if (!last || (activeElement !== document.body && activeElement !== last.control)) return;
    if (!isSeen(last.control)) heir(last, usesKeys, isTyping)?.focus();
    else if (last.control.matches(":disabled")) last.isWaiting = true;
    else if (last.isWaiting) last.control.focus();
  };
  new MutationObserver((changes) => {
    if (isLooking || changes.every(isOfWords)) return;
    isLooking = true;
    requestAnimationFrame(look);
  }).observe(document.body, { subtree: true, childList: true, attributeFilter: SHOWS });
}

/**
 * The control of the same name, else the nearest one before or after it, in the smallest ancestor that has one. A text field
 * that disappears while somebody types has none: the next keys would go into another field or press a button.
 */
function heir({ control, holders, order }, orNearest, isTyping) {
  if (isTyping && isTypedInto(control)) return orNearest ? document.querySelector("#areas [aria-current]") : null;
  const [at, name] = [order.indexOf(control), nameOf(control)];
  const near = orNearest ? [...order.slice(0, at).reverse(), ...order.slice(at + 1)] : [];
  for (const holder of holders.filter(isSeen)) {
    const alike = [...holder.querySelectorAll(CONTROLS)].find((other) => nameOf(other) === name && isUsable(other));
    const target = alike ?? near.find((other) => holder.contains(other) && isUsable(other));
    if (target) return target;
  }
  return orNearest ? document.querySelector("#areas [aria-current]") : null;
}
