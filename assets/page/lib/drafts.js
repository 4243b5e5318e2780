// What is typed into a project's fields and not sent yet, kept in this browser for when the project or the page is left.

import { keep, kept } from "./storage.js";

const STORE = "drafts-1"; // by project and field

/** The drafts of a project, by field. @param {string} project @returns {Record<string, any>} */
export const draftsOf = (project) => kept(STORE, {})[project] ?? {};

/** @param {string} project @param {string} field @param {unknown} [draft] blank: none any more */
export function keepDraft(project, field, draft) {
  const { [field]: _, ...fields } = draftsOf(project);
  if (draft) fields[field] = draft;
  const { [project]: __, ...others } = kept(STORE, {});
  keep(STORE, Object.keys(fields).length ? { ...others, [project]: fields } : others);
}
