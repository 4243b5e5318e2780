// Keys of the whole page: Ctrl+Enter speaks, Esc stops, Space plays and pauses, X goes to the other of two takes.

/** Parts of the page: {areas, speaking, stage, list, history}. */
export function listenForKeys({ areas, speaking, stage, list, history }) {
  document.addEventListener("keydown", (event) => {
    const withControl = event.ctrlKey || event.metaKey;
    if (event.key === "Enter" && withControl && areas.shown === "studio") {
      event.preventDefault();
      document.querySelector("#speak").click();
    } else if (event.key === "Escape" && !event.target.closest("dialog") && speaking.isUnderWay) {
      speaking.stop();
    } else if (event.key === " " && event.target === document.body && stage.current) {
      event.preventDefault();
      stage.playOrPause();
    } else if (event.key.toLowerCase() === "x" && !withControl && !event.target.closest("input, textarea, select, [contenteditable]")) {
      (areas.shown === "history" ? history : list).other(stage.current);
    }
  });
}
