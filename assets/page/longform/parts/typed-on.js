// Keeps text that is typed into a part during a split or a merge: it becomes an edit of the new texts.

/** A text as the studio stores it. @param {string} text */
export const stored = (text) => text.normalize("NFC").trim();

/**
 * Divide an edited text where its earlier version was split. Text typed at that position belongs to the first half.
 *
 * @param {string} words the text that was split
 * @param {string} typed the text after further typing
 * @param {number} cursor the position in words
 */
export function halves(words, typed, cursor) {
  const [was, now, at] = [[...words], [...typed], [...words.slice(0, cursor)].length];
  const most = Math.min(was.length, now.length);
  let [same, tail] = [0, 0]; // characters that are the same at the beginning and at the end
  while (same < most && was[same] === now[same]) same += 1;
  while (tail < most - same && was[was.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  const rest = was.length - at;
  const isInSecond = same > at || (same === at && tail < rest);
  const cut = isInSecond ? at : now.length - Math.min(tail, rest);
  return [now.slice(0, cut).join(""), now.slice(cut).join("").trimStart()];
}

/**
 * Show the new texts of parts that were split or merged, and keep what has been typed into the first one since. divide(typed): returns the edited texts, or false if somebody else has changed them.
 *
 * @param {import("./part-list.js").PartList} list
 * @param {import("../unsaved.js").Unsaved} unsaved
 * @param {any[]} parts as they are in the studio
 * @param {string} words
 * @param {(typed: string) => string[] | false} divide
 */
export async function keepTyped(list, unsaved, parts, words, divide) {
  const [{ id }, second] = parts;
  const typedOn = () => unsaved.of(id)?.changes.text;
  if (second && typedOn() !== undefined) await list.look().catch(() => {}); // draws the second row, which may get the cursor; the next refresh reports a failure
  const [row, typed] = [list.row(id), typedOn()];
  if (typed === undefined) return row?.reword(words, parts[0]);
  const texts = divide(typed);
  if (!texts) return undefined;
  const cursor = (row?.cursor ?? -1) - (typed.length - (texts[1] ?? "").length);
  for (const [i, part] of parts.entries()) {
    const isSame = stored(texts[i]) === part.text;
    if (!i) row?.reword(typed, part, isSame ? part.text : texts[i]);
    if (isSame && !i) unsaved.note(id, { text: unsaved.of(id)?.before.text }); // nothing is changed there
    else if (!isSame && (!i || texts[i])) {
      unsaved.note(part.id, { text: texts[i] }, { text: part.text }, part.position);
      unsaved.overwrite(part.id, part.text).catch(() => {}); // shown with the part
    }
  }
  if (second && cursor > 0) (list.row(second.id) ?? list.showBelow(id, second)).enter(cursor);
}

/**
 * Turn text that was typed into the second of two parts while they were merged into an edit of the merged part.
 *
 * @param {import("./part-list.js").PartList} list
 * @param {import("../unsaved.js").Unsaved} unsaved
 * @param {any} merged as it is in the studio
 * @param {string} second
 */
export function takeOver(list, unsaved, merged, second) {
  const { changes: { text } = {}, before } = unsaved.of(second) ?? {};
  const now = unsaved.of(merged.id)?.changes.text ?? merged.text;
  if (text === undefined || !now.endsWith(before?.text)) return;
  const [row, other] = [list.row(merged.id), list.row(second)];
  const [all, cursor] = [now.slice(0, now.length - before?.text.length) + text, other?.cursor ?? -1];
  unsaved.forget(second);
  other?.reword(text, { text: before?.text });
  row?.reword(now, merged, all);
  unsaved.note(merged.id, { text: all }, { text: merged.text }, merged.position);
  unsaved.overwrite(merged.id, merged.text).catch(() => {}); // shown with the part
  if (cursor >= 0) row?.enter(all.length - text.length + cursor);
}
