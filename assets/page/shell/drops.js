// Files that are dropped beside what takes them: the browser would leave the page to show them.

const FILE_FIELD = "input[type=file]"; // takes them by itself

/** @param {DragEvent} event */
function isAstray({ defaultPrevented, dataTransfer, target }) {
  const isField = target instanceof Element && target.matches(FILE_FIELD);
  return !defaultPrevented && !isField && Boolean(dataTransfer?.types.includes("Files"));
}

/** Have the page stay, and say by the pointer that nothing is taken there. */
export function stayForDrops() {
  document.addEventListener("dragover", (event) => {
    if (!isAstray(event)) return;
    event.preventDefault();
    if (event.dataTransfer) event.dataTransfer.dropEffect = "none";
  });
  document.addEventListener("drop", (event) => isAstray(event) && event.preventDefault());
}
