// Files that are dropped beside what takes them: in the Studio each goes where it is of use; elsewhere the page just stays.

const FILE_FIELD = "input[type=file]"; // takes them by itself
const [TEXT, BOOK, SOUND] = [/\.(txt|text|md|markdown)$/i, /\.(epub|docx|pdf|srt|csv|tsv)$/i, /\.(wav|flac|mp3|ogg|opus|m4a|aac|webm|aiff?|caf|wma|amr)$/i];

/**
 * What a file is of use for, by its name and its type: a script, a book, a voice; else nothing.
 *
 * @param {{ name: string, type: string }} file
 */
export function useOf({ name, type }) {
  if (TEXT.test(name)) return "script";
  if (BOOK.test(name)) return "book";
  return SOUND.test(name) || /^(audio|video)\//.test(type) ? "voice" : "nothing";
}

/** @param {DragEvent} event */
function isAstray({ defaultPrevented, dataTransfer, target }) {
  const isField = target instanceof Element && target.matches(FILE_FIELD);
  return !defaultPrevented && !isField && Boolean(dataTransfer?.types.includes("Files"));
}

const isInStudio = () => document.body.dataset.area === "studio";

/** Have the page stay; take(file, use) is given what is dropped in the Studio. */
export function takeDrops(take) {
  document.addEventListener("dragover", (event) => {
    if (!isAstray(event)) return;
    event.preventDefault();
    if (event.dataTransfer) event.dataTransfer.dropEffect = isInStudio() ? "copy" : "none";
  });
  document.addEventListener("drop", (event) => {
    if (!isAstray(event)) return;
    event.preventDefault();
    const [file] = event.dataTransfer?.files ?? [];
    if (file && isInStudio()) take(file, useOf(file));
  });
}
