// The area of all stored takes: finds, plays, stars, reuses, compares, saves and deletes them.

import { linkTo } from "../client/address.js";
import { Refusal } from "../client/refusal.js";
import { voices } from "../client/voices.js";
import { HistoryRow, shortened, when } from "./history-row.js";
import { addShare, deleteTakes, findTakes, removeShare, sharesOf, starTake, MAX_ZIP, zipAddress } from "../client/takes.js";
import { restore } from "../client/trash.js";
import { AbComparison } from "../takes/ab-comparison.js";
import { copyWords } from "../lib/copy.js";
import { element, partsOf } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { LookAgain } from "../lib/look-again.js";
import { FORMATS, offerFormats } from "../player/download.js";
import { once } from "../lib/once.js";
import { Take } from "../takes/take.js";
import { offerUndo } from "../trash/undo-toast.js";
import { ShareDialog } from "../shell/share-dialog.js";
import { repeatsExactly } from "./verify.js";
import { numeral, phrase } from "../lib/phrases.js";

const PAGE = 25;
const SETTLED = 250; // ms without typing before a search

/** The start of a day in the browser's time zone, in Unix time; null if no day is given. later: days to add. */
function dayStart(day, later = 0) {
  if (!day) return null;
  const [year, month, date] = day.split("-").map(Number);
  return new Date(year, month - 1, date + later).getTime() / 1000;
}

/**
 * Fires "play", "switch", "reuse", "again", "continue", "code" and "starred" (or unstarred), each with {take}, "save" with
 * {take, format}, "deleted" and "restored" with {ids}, and "about" with {item, title} when it shows a single take, or all again.
 */
export class History extends EventTarget {
  #rows = [];
  #chosen = new Set();
  #last = null; // the id after which the next page starts
  #searches = new Latest();
  #plays = new Latest();
  #isOpen = false;
  #timer = 0;
  #again = new LookAgain();
  #current = null;
  #isPlaying = false;
  #only = ""; // the id of the single take shown
  #shareDays = 0; // the longest validity of a share link; 0: links are off

  constructor(root) {
    super();
    this.root = root;
    this.shareDialog = new ShareDialog(root.querySelector("#share"), { list: sharesOf, add: addShare, remove: removeShare });
    this.part = partsOf(root);
    offerFormats(this.part("zip"), () => FORMATS, (format) => element("a", { href: zipAddress([...this.#chosen], format), download: "" }).click());
    this.comparison = new AbComparison(this.part("compare"));
    this.comparison.addEventListener("switch", ({ detail }) => this.#hear("switch", detail.take));
    this.comparison.addEventListener("change", () => this.#showChosen());
    const on = (name, type, does) => this.part(name).addEventListener(type, () => this.#do(does));
    const onPress = (name, does) => this.part(name).addEventListener("click", once(() => this.#do(does)));
    this.part("question").addEventListener("submit", (event) => event.preventDefault());
    this.part("query").addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#do(() => this.#find()), SETTLED);
    });
    for (const name of ["voice", "since", "until", "starred"]) on(name, "change", () => this.#find());
    onPress("more", () => this.#find(this.#last));
    onPress("delete", () => this.#delete([...this.#chosen]));
    onPress("all", () => this.#choose(this.#rows.map(({ take }) => take.id)));
    onPress("none", () => this.#choose([]));
    this.part("everything").addEventListener("click", () => this.go(""));
  }

  /** id: the single take to show; isAgain: an earlier answer was lost, which is still said. */
  open(id = "", isAgain = false) {
    this.#isOpen = true;
    this.#do(() => this.#offerVoices());
    this.#do(() => this.#show(id, isAgain));
  }

  /** Show the single take in the address, or all takes. */
  go(id) {
    this.#do(() => this.#show(id));
  }

  async #show(id, isAgain = false) {
    this.#only = id;
    this.part("question").hidden = Boolean(id);
    this.part("only").hidden = !id;
    if (!(await this.#find(null, isAgain))) return;
    if (id && !this.#rows.length) this.#say(phrase("history.gone"));
    this.#tell("about", { item: id, title: id ? (this.#rows[0]?.take.record.excerpt ?? "") : "" });
  }

  /** After an outage: look again, but keep ticked takes. */
  back(isAgain = false) {
    if (!this.#chosen.size) this.open(this.#only, isAgain);
    else if (!isAgain) this.#say("");
  }

  close() {
    this.#isOpen = false;
    this.#again.end();
    clearTimeout(this.#timer);
  }

  /** Add a new take at the top. */
  put(record) {
    if (!this.#rows.length || this.#only) return;
    if (Object.values(this.#question).some(Boolean)) this.#do(() => this.#find()); // it might not match the filter
    else this.#add([record], true);
  }

  /** Remove deleted takes. */
  lose(ids) {
    for (const row of this.#rows.filter(({ take }) => ids.includes(take.id))) {
      this.comparison.drop(row.take);
      row.element.remove();
    }
    this.#rows = this.#rows.filter(({ take }) => !ids.includes(take.id));
  }

  /** Mark the player's current take, and whether it is playing. */
  select(take, isPlaying = this.#isPlaying) {
    [this.#current, this.#isPlaying] = [take, isPlaying];
    const isTold = take && !take.isBlind; // a blind take's row would reveal its voice
    for (const row of this.#rows) {
      const isHeard = Boolean(isTold && row.take.id === take.id);
      row.element.toggleAttribute("aria-current", isHeard);
      row.isPlaying = isHeard && isPlaying;
    }
    this.comparison.mark(take);
  }

  /** Switch to the other of two compared takes. */
  other(take) {
    this.comparison.other(this.#rows.map((row) => row.take).find(({ id }) => id === take?.id));
  }

  get #question() {
    if (this.#only) return { ids: this.#only };
    return {
      q: this.part("query").value.trim(),
      voice: this.part("voice").value,
      starred: this.part("starred").checked,
      since: dayStart(this.part("since").value),
      until: dayStart(this.part("until").value, 1),
    };
  }

  #say(words) {
    this.part("said").textContent = words;
  }

  async #do(work) {
    try {
      await work();
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.#say(problem.why);
      if (problem.isLost && this.#isOpen) this.#again.after(problem, () => this.back(true));
    }
  }

  async #offerVoices() {
    const listed = await voices();
    const chosen = this.part("voice").value;
    const choices = [["", phrase("history.voice.every")], ...listed.map(({ id, name }) => [id, name]), ["clip", phrase("history.voice.clip")]];
    this.part("voice").replaceChildren(...choices.map(([value, textContent]) => element("option", { value, textContent })));
    this.part("voice").value = choices.some(([value]) => value === chosen) ? chosen : "";
  }

  /** Show the first page of matches, or the page after a take; return false if a newer search has begun. */
  async #find(after = null, isAgain = false) {
    clearTimeout(this.#timer); // this search includes what was just typed
    const isLatest = this.#searches.begin();
    this.part("list").setAttribute("aria-busy", "true");
    if (!after && !isAgain) this.#say(phrase("history.looking"));
    const question = this.#question;
    let answer;
    try {
      answer = await findTakes({ ...question, limit: PAGE, after });
    } finally {
      if (isLatest()) this.part("list").setAttribute("aria-busy", "false");
    }
    if (!isLatest()) return false;
    if (!after) this.#clear();
    this.#shareDays = answer.share_days;
    this.#add(answer.data.filter(({ stored }) => stored));
    this.#last = answer.last_id;
    this.part("more").hidden = !answer.has_more;
    this.#tellRetention(answer.retention);
    const isAsked = Object.values(question).some(Boolean);
    if (!after) this.#say(this.#rows.length ? "" : isAsked ? phrase("history.none") : answer.retention ? phrase("history.empty") : "");
    return true;
  }

  #clear() {
    for (const { take } of this.#rows) take.drop();
    this.#rows = [];
    this.part("list").replaceChildren();
    for (const take of [...this.comparison.takes]) this.comparison.drop(take);
    this.#choose([]);
  }

  #add(records, areNewest = false) {
    const added = records.map((record) => new HistoryRow(Take.of(record), this.#deeds, this.#shareDays > 0));
    this.#rows = areNewest ? [...added, ...this.#rows] : [...this.#rows, ...added];
    this.part("list")[areNewest ? "prepend" : "append"](...added.map((row) => row.element));
    this.select(this.#current);
    this.#showChosen();
  }

  /** The actions of a row. */
  get #deeds() {
    return {
      play: (take) => this.#hear("play", take),
      reuse: (take) => this.#tell("reuse", { take }),
      again: (take) => this.#tell("again", { take }),
      continue: (take) => this.#tell("continue", { take }),
      code: (take) => this.#tell("code", { take }),
      compare: (take) => this.comparison.toggle(take),
      verify: (take) => this.#do(() => this.#verify(take)),
      save: (take, format) => this.#tell("save", { take, format }),
      star: (take) => this.#do(() => this.#star(take)),
      delete: (take) => this.#do(() => this.#delete([take.id])),
      share: (take) => this.shareDialog.open(take.id, this.#shareDays),
      link: (take, button) => copyWords(linkTo("history", take.id), button),
      choose: (take, isChosen) => this.#choose(isChosen ? [...this.#chosen, take.id] : [...this.#chosen].filter((id) => id !== take.id)),
    };
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  #hear(type, take) {
    const isLatest = this.#plays.begin();
    this.#do(async () => {
      await take.load();
      if (isLatest()) this.#tell(type, { take });
    });
  }

  #tellRetention(kept) {
    const size = kept && (kept.bytes >= 2 ** 30 ? `${numeral(kept.bytes / 2 ** 30, kept.bytes % 2 ** 30 ? 1 : 0)} GB` : `${numeral(kept.bytes / 2 ** 20)} MB`);
    const lost = (kept?.lost ?? 0) + (kept?.soundless ?? 0);
    const next = (kept?.removes_next ?? []).map(({ excerpt, created }) => phrase("history.removedTake", { words: shortened(excerpt), date: when(created) }));
    this.part("retention").textContent = [
      ...(kept ? [phrase("history.keeps", { count: kept.takes, size }), phrase("history.keepsApart")] : [phrase("history.keepsNone")]),
      ...(next.length ? [phrase("history.removesNext", { takes: next.join(", ") })] : []),
      ...(lost ? [phrase("history.lost", { count: lost })] : []),
    ].join(" ");
  }

  #choose(ids) {
    this.#chosen = new Set(ids);
    this.#showChosen();
  }

  #showChosen() {
    const ids = [...this.#chosen];
    this.part("chosen").hidden = !ids.length;
    const silent = this.#rows.filter(({ take }) => this.#chosen.has(take.id) && !take.hasSound).length;
    const counts = [phrase("history.count", { count: ids.length }), ...(silent ? [phrase("history.silent", { count: silent })] : []), ...(ids.length > MAX_ZIP ? [phrase("history.zip.most", { count: MAX_ZIP })] : [])];
    this.part("zip").disabled = ids.length > MAX_ZIP;
    this.part("count").textContent = counts.join("; ");
    for (const row of this.#rows) row.show({ isChosen: this.#chosen.has(row.take.id), isCompared: this.comparison.has(row.take) });
  }

  async #star(take) {
    const isStarred = !take.isStarred;
    await starTake(take.id, isStarred);
    take.isStarred = isStarred;
    this.#tell("starred", { take });
    this.#showChosen();
  }

  async #delete(ids) {
    const { ids: deleted, undo_seconds: seconds, left, problem } = await deleteTakes(ids);
    this.#tell("deleted", { ids: deleted });
    if (!deleted.length && !this.#rows.some(({ take }) => ids.includes(take.id))) return; // a second click: the first one has shown the message
    this.lose(deleted);
    this.#choose(left);
    offerUndo(phrase("history.deleted", { count: deleted.length }), deleted.length && seconds ? () => this.#restore(deleted) : null);
    if (problem) this.#say(phrase("history.notDeleted", { count: left.length, why: problem.why }));
  }

  async #restore(ids) {
    await restore("take", ids);
    this.#tell("restored", { ids });
    await this.#find();
  }

  async #verify(take) {
    this.#say(phrase("history.verifying"));
    const same = await repeatsExactly(take);
    this.#say(phrase(same ? "history.verified" : "history.notIdentical"));
  }
}
