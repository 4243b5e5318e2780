// Handles files dropped outside a file field: in the Studio they are used by type; elsewhere they are ignored.

import { phrase } from "../lib/phrases.js";
import { remark } from "../trash/undo-toast.js";

const FILE_FIELD = "input[type=file]"; // handles drops itself
const [TEXT, BOOK, SOUND] = [/\.(txt|text|md|markdown)$/i, /\.(epub|docx|pdf|srt|vtt|ass|ssa|csv|tsv)$/i, /\.(wav|flac|mp3|ogg|opus|m4a|aac|webm|aiff?|caf|wma|amr)$/i];

/**
 * The use of a file, by its name and type: as a script, a book, a voice, or nothing.
 *
 * @param {{ name: string, type: string }} file
 */
export function useOf({ name, type }) {
  if (TEXT.test(name)) return "script";
  if (BOOK.test(name)) return "book";
  return SOUND.test(name) || /^(audio|video)\//.test(type) ? "voice" : "nothing";
}

/** The characters of a text file; one that is not Unicode is taken for Windows'. @param {File} file */
export async function textOf(file) {
  const text = await file.text();
  return text.includes("\ufffd") ? new TextDecoder("windows-1252").decode(await file.arrayBuffer()) : text;
}

/** @param {DragEvent} event */
function isAstray({ defaultPrevented, dataTransfer, target }) {
  const isField = target instanceof Element && target.matches(FILE_FIELD);
  return !defaultPrevented && !isField && Boolean(dataTransfer?.types.includes("Files"));
}

/** Use the first of the files that were dropped, if any; says so if there are more, beside what its use says. @param {Iterable<File>} files @param {(file: File) => Promise<unknown>} use */
export async function useFirst(files, use) {
  const [file, ...others] = files;
  if (!file) return;
  await use(file);
  if (others.length) remark(phrase("drop.first", { name: file.name }));
}

const isInStudio = () => document.body.dataset.area === "studio";

/** Keep the browser from opening dropped files; call take(file, use), which returns a promise, for one dropped in the Studio. */
export function takeDrops(take) {
  document.addEventListener("dragover", (event) => {
    if (!isAstray(event)) return;
    event.preventDefault();
    if (event.dataTransfer) event.dataTransfer.dropEffect = isInStudio() ? "copy" : "none";
  });
  document.addEventListener("drop", (event) => {
    if (!isAstray(event)) return;
    event.preventDefault();
    const files = isInStudio() ? [...event.dataTransfer?.files ?? []] : [];
    const use = files.length ? useOf(files[0]) : "nothing";
    useFirst(use === "nothing" ? files.slice(0, 1) : files, (file) => take(file, use));
  });
}
