// Handles files dropped outside a file field: in the Studio they are used by type; elsewhere they are ignored.

import { phrase } from "../lib/phrases.js";
import { offerUndo } from "../trash/undo-toast.js";

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

/** The first of the files that were dropped, if any; says so if there are more. @param {Iterable<File>} files */
export function firstOf(files) {
  const [file, ...others] = files;
  if (others.length) offerUndo(phrase("drop.first", { name: file.name }), null, false);
  return file;
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
    const use = files.length ? useOf(files[0]) : "";
    if (use) take(files[0], use).then(() => use === "nothing" || firstOf(files)); // after what is said about the first
  });
}
