// Keyboard shortcuts of the page: Ctrl+Enter speaks, Esc stops, Space and K play and pause, J and L go back and forward, X switches to the next compared take, ? lists them all.

import { closeByPressBeside } from "../lib/dialog.js";

const FIELDS = "input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable]";
const AREAS = ["studio", "longform", "voices", "history"]; // Alt+1 to Alt+4

/** Parts of the page: {areas, speaking, nowPlaying, list, history, longform}; dialog: the list of shortcuts. */
export function listenForKeys({ areas, speaking, nowPlaying, list, history, longform }, dialog) {
  let isPlayKey = false;
  closeByPressBeside(dialog);
  // An input method's Enter and Escape end a conversion, not what the page would end. With the last one Safari no longer says isComposing, but 229.
  document.documentElement.addEventListener("keydown", (event) => (event.isComposing || event.keyCode === 229) && event.stopPropagation(), true);
  document.addEventListener("click", ({ target }) => target instanceof Element && target.closest("[data-opens=shortcuts]") && dialog.showModal());
  document.addEventListener("keydown", (event) => {
    const within = (selector) => event.target instanceof Element && event.target.closest(selector);
    const withControl = event.ctrlKey || event.metaKey;
    const view = event.altKey && !withControl ? AREAS[Number(event.code.match(/^Digit([1-4])$/)?.[1]) - 1] : undefined;
    if (view && areas.views.includes(view) && !within("dialog")) {
      event.preventDefault();
      areas.show(view);
    } else if (event.key === "Enter" && withControl && areas.shown === "studio") {
      event.preventDefault();
      document.getElementById("speak")?.click();
    } else if (event.key === "Escape" && !within("dialog") && speaking.isUnderWay) {
      speaking.stop();
    } else if (event.key === " " && nowPlaying.current && (event.target === document.body || speaking.gaveFocusTo(event.target))) {
      event.preventDefault();
      isPlayKey = true;
      nowPlaying.playOrPause();
    } else if (event.key === "Enter" && event.repeat && within("#speak, #speak-four, #stop")) {
      event.preventDefault(); // Speak and Stop replace each other while the key is held
    } else if (event.key.toLowerCase() === "x" && !withControl && !within(FIELDS)) {
      ({ history, longform }[areas.shown] ?? list).other(nowPlaying.current);
    } else if ("jkl".includes(event.key.toLowerCase()) && !withControl && !event.altKey && !event.defaultPrevented && !within(FIELDS) && !within("dialog") && nowPlaying.current) {
      event.preventDefault();
      if (event.key.toLowerCase() === "k") nowPlaying.playOrPause();
      else nowPlaying.skip(event.key.toLowerCase() === "l" ? 10 : -10);
    } else if (event.key === "?" && !withControl && !within(FIELDS) && !document.querySelector("dialog[open]")) {
      dialog.showModal();
    }
  });
  document.addEventListener("keyup", (event) => {
    if (event.key === " " && isPlayKey) event.preventDefault(); // or it would press the focused button
    isPlayKey = false;
  });
}
