// A table before its import: its first rows, with the role of each column; and the changes that a new version of it makes.

import { undoChange, updateFromTable } from "../client/projects.js";
import { closeByPressBeside } from "../lib/dialog.js";
import { element } from "../lib/elements.js";
import { numeral, phrase } from "../lib/phrases.js";
import { offerUndo } from "../trash/undo-toast.js";

const ROLES = /** @type {const} */ (["", "id", "character", "text", "voice", "direction", "chapter", "file", "gender", "pause", "scene", "continues"]);
const MOST = 200; // lines of an update that are shown

/**
 * Show the first rows of a table; without columns, nothing.
 *
 * @param {HTMLElement} place
 * @param {{ columns: { name: string, role: string, sample: string[] }[], rows: number }} table
 * @param {() => void} changed called when a column gets another role
 */
export function showSheet(place, { columns, rows }, changed) {
  place.hidden = !columns.length;
  if (place.hidden) return place.replaceChildren();
  const role = ({ name, role: chosen }) => {
    const options = ROLES.map((value) => element("option", { value, textContent: phrase(value ? `sheet.role.${value}` : "sheet.role.none"), selected: value === chosen }));
    const select = element("select", { name, onchange: () => only(select, changed) }, options);
    select.setAttribute("aria-label", phrase("sheet.role", { column: name }));
    return element("th", { scope: "col" }, [element("span", { textContent: name, dir: "auto" }), select]);
  };
  /** A role belongs to one column. */
  const only = (select, then) => {
    for (const other of place.querySelectorAll("select")) if (other !== select && other.value === select.value) other.value = "";
    then();
  };
  const count = Math.max(...columns.map(({ sample }) => sample.length));
  const lines = Array.from({ length: count }, (_, number) => element("tr", {}, columns.map(({ sample }) => element("td", { textContent: sample[number] ?? "", dir: "auto" }))));
  const table = element("table", {}, [element("thead", {}, [element("tr", {}, columns.map(role))]), element("tbody", {}, lines)]);
  const about = columns.some(({ role: chosen }) => chosen === "id") ? "sheet.about.id" : "sheet.about";
  place.replaceChildren(
    element("p", {}, [element("strong", { textContent: phrase("sheet.rows", { count: rows }) }), " ", element("span", { className: "quiet", textContent: phrase(about) })]),
    element("div", { className: "sheet-scroll", tabIndex: 0, role: "region", ariaLabel: phrase("sheet.table") }, [table]),
  );
}

/** The roles of the columns, as chosen, even if it is none; null: nothing is shown. @param {HTMLElement} place @returns {Record<string, string> | null} */
export function chosenRoles(place) {
  const selects = [...place.querySelectorAll("select")].filter(({ value }) => value);
  return place.hidden ? null : Object.fromEntries(selects.map(({ name, value }) => [name, value]));
}

/**
 * Ask for a new version of a project's table, show what it changes, and apply it if the user agrees.
 *
 * @param {string} id of the project
 * @param {(work: () => Promise<unknown>) => Promise<void>} run shows why the work failed
 * @param {(words: string) => void} tell
 */
export function updateFromFile(id, run, tell) {
  const field = element("input", { type: "file", accept: ".csv,.tsv" });
  field.addEventListener("change", () => run(async () => {
    const [file] = field.files;
    const plan = await updateFromTable(id, file, false);
    if (!plan.lines.length) return tell(phrase("sheet.same", { count: plan.same }));
    if (!(await agreed(plan, file.name))) return;
    const { replaced } = await updateFromTable(id, file, true);
    offerUndo(sumOf(plan), () => undoChange(id, replaced).finally(() => run(async () => {})), false);
  }));
  field.click();
}

const sumOf = ({ changed, added, gone, same }) => phrase("sheet.sum", { changed: numeral(changed), added: numeral(added), gone: numeral(gone), same: numeral(same) });

/** @returns {Promise<boolean>} */
function agreed(plan, name) {
  const wordOf = (/** @type {any} */ column) => (ROLES.includes(column) ? phrase(/** @type {import("../lib/phrases.js").Key} */ (`sheet.role.${column}`)) : column);
  const fromTo = (before, after) => [before && element("del", { textContent: before }), " ", after && element("ins", { textContent: after })].filter(Boolean);
  const row = ({ name: line, change, cells, before, after }) => element("tr", {}, [
    element("td", { textContent: line, dir: "auto" }),
    element("td", { textContent: phrase(/** @type {import("../lib/phrases.js").Key} */ (`sheet.${change}`)) }),
    element("td", {}, [
      ...(before === after ? [] : [element("div", { dir: "auto" }, fromTo(before, after))]),
      ...Object.entries(cells).filter(([column]) => column !== "text").map(([column, pair]) => element("div", {}, [element("span", { className: "quiet", textContent: `${wordOf(column)}: ` }), element("bdi", {}, fromTo(...pair))])),
    ]),
  ]);
  const heads = ["sheet.role.id", "sheet.change", "sheet.what"].map((key) => element("th", { scope: "col", textContent: phrase(/** @type {import("../lib/phrases.js").Key} */ (key)) }));
  const button = (value, words, className) => element("button", { value, textContent: words, className });
  const dialog = element("dialog", { className: "dialog sheet-update" }, [
    element("form", { method: "dialog" }, [
      element("h2", { textContent: phrase("sheet.update.title", { name }) }),
      element("p", { textContent: sumOf(plan) }),
      element("p", { className: "quiet", textContent: phrase("sheet.update.about") }),
      element("div", { className: "sheet-scroll", tabIndex: 0, role: "region", ariaLabel: phrase("sheet.table") }, [
        element("table", {}, [element("thead", {}, [element("tr", {}, heads)]), element("tbody", {}, plan.lines.slice(0, MOST).map(row))]),
      ]),
      element("div", { className: "long-bar" }, [button("yes", phrase("sheet.update.do"), "plain long-main"), button("", phrase("longform.cancel"), "plain")]),
    ]),
  ]);
  dialog.setAttribute("aria-label", phrase("sheet.update.title", { name }));
  closeByPressBeside(dialog);
  (document.querySelector("#area-longform") ?? document.body).append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
  });
}
