// Moves parts that are dragged by their handles to another place in the list. A handle with the focus also responds to arrow keys.

const KIND = "application/x-studio-part";

/**
 * @param {HTMLElement} box the list of parts
 * @param {AbortSignal} signal
 * @param {(id: string) => any} partOf returns the part of a row in the page
 * @param {(moved: any, target: any, isAfter: boolean) => void} drop called with the dragged part and the part next to the drop
 */
export function takePartDrops(box, signal, partOf, drop) {
  /** The dragged part; its row may leave the page before the drop. @type {any} */
  let moved = null;
  /** @type {HTMLElement | null} */
  let marked = null;
  const mark = (row, side = "") => {
    if (marked && marked !== row) delete marked.dataset.drop;
    marked = row;
    if (row) row.dataset.drop = side;
  };
  /** @returns {HTMLElement | null} */
  const rowOf = ({ target }) => (target instanceof Element ? target.closest("[data-part^=part_]") : null);
  const side = (row, { clientY }) => {
    const { top, height } = row.getBoundingClientRect();
    return clientY > top + height / 2 ? "after" : "before";
  };
  box.addEventListener("dragstart", (event) => {
    const row = event.target instanceof Element && event.target.matches(".long-handle") ? rowOf(event) : null;
    if (!row || !event.dataTransfer) return;
    moved = partOf(row.dataset.part ?? "");
    event.dataTransfer.setData(KIND, row.dataset.part ?? "");
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setDragImage(row, 20, 20);
  }, { signal });
  box.addEventListener("dragover", (event) => {
    const row = rowOf(event);
    if (!row || !event.dataTransfer?.types.includes(KIND)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "move";
    mark(row, side(row, event));
  }, { signal });
  box.addEventListener("dragleave", (event) => box.contains(/** @type {Node | null} */ (event.relatedTarget)) || mark(null), { signal });
  box.addEventListener("dragend", () => mark(null), { signal });
  box.addEventListener("drop", (event) => {
    const row = rowOf(event);
    const from = event.dataTransfer?.getData(KIND);
    mark(null);
    const target = partOf(row?.dataset.part ?? "");
    if (!row || !target || from !== moved?.id || target.id === moved?.id) return;
    event.preventDefault();
    drop(partOf(moved.id) ?? moved, target, side(row, event) === "after"); // others may have arrived above it meanwhile
  }, { signal });
}
