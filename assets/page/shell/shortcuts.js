// Keys of the whole page: Ctrl+Enter speaks, Esc stops, Space plays and pauses, X goes to the other of two takes.

/** Parts of the page: {tabs, speaking, nowPlaying, list, history}. */
export function listenForKeys({ tabs, speaking, nowPlaying, list, history }) {
  let isPlayKey = false;
  document.addEventListener("keydown", (event) => {
    const within = (selector) => event.target instanceof Element && event.target.closest(selector);
    const withControl = event.ctrlKey || event.metaKey;
    if (event.key === "Enter" && withControl && tabs.shown === "studio") {
      event.preventDefault();
      document.getElementById("speak")?.click();
    } else if (event.key === "Escape" && !within("dialog") && speaking.isUnderWay) {
      speaking.stop();
    } else if (event.key === " " && nowPlaying.current && (event.target === document.body || speaking.gaveFocusTo(event.target))) {
      event.preventDefault();
      isPlayKey = true;
      nowPlaying.playOrPause();
    } else if (event.key === "Enter" && event.repeat && within("#speak, #speak-four, #stop")) {
      event.preventDefault(); // one of them takes the place of the other under the finger
    } else if (event.key.toLowerCase() === "x" && !withControl && !within("input, textarea, select, [contenteditable]")) {
      (tabs.shown === "history" ? history : list).other(nowPlaying.current);
    }
  });
  document.addEventListener("keyup", (event) => {
    if (event.key === " " && isPlayKey) event.preventDefault(); // else it would press the button that has the focus
    isPlayKey = false;
  });
}
