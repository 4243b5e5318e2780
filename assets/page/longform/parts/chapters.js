// The chapter map of a project: each chapter's state, words and length, with buttons to go to its parts, rename it and generate it.

import { element, icon, Keyed, labelled, setChildren } from "../../lib/elements.js";
import { duration } from "../../lib/time.js";
import { phrase } from "../../lib/phrases.js";
import { askWhileTyping, focusAfterwards } from "../../lib/typing.js";

const SPEAK = '<path d="M5 10v4m3.500-7v10M12 4.500v15m3.500-12v9M19 10v4"/>';
const PENCIL = '<path d="m5 19 .8-3.800L15.500 5.500l3 3-9.700 9.700L5 19Zm8.500-11.500 3 3"/>';
const LONGEST = 200; // characters of a title
const WORD = 15; // average characters per word above which a text has no spaces between words

/** Return a chapter's state: that of parts in progress, else of parts that need attention, else of all its parts. */
function stateOf({ total, done, new: fresh, queued, speaking, failed, stale }) {
  if (speaking || queued) return speaking ? "speaking" : "queued";
  if (failed || stale) return failed ? "failed" : "stale";
  return done === total ? "done" : fresh === total ? "new" : "incomplete";
}

function factsOf({ words, characters, expected_s: seconds }) {
  const size = characters > WORD * words ? phrase("project.characters", { count: characters }) : phrase("project.words", { count: words });
  return [size, duration(seconds)].join(" · ");
}

/** Fires "go" and "speak" with {chapter}, and "rename" with {chapter, title, read}, the chapter as shown when its title began to be written. */
export class Chapters extends EventTarget {
  /** @type {any[]} */
  #chapters = [];
  #entries = new Keyed();
  #current = "";

  /** @param {import("../../lib/drafts.js").Drafts} drafts of the project @param {any} map @param {any} list @param {AbortSignal} signal */
  constructor(drafts, map, list, signal) {
    super();
    this.drafts = drafts;
    /** Titles that were being written when the project was left, and are to be shown again: {typed, was, sent}, by chapter. @type {Map<string, any>} */
    this.left = new Map(drafts.all("title"));
    askWhileTyping(list, signal);
    this.map = map;
    this.list = list;
    const wide = matchMedia("(min-width: 900px)");
    map.open = wide.matches; // always open next to the parts
    wide.onchange = () => (map.open = wide.matches);
  }

  get first() {
    return this.#chapters[0];
  }

  show(chapters) {
    this.#chapters = chapters;
    this.map.hidden = chapters.length < 2;
    setChildren(this.list, this.#entries.of(chapters, (chapter, before) => this.#entry(chapter, before)));
    this.#mark();
    for (const [id, draft] of this.left) if (this.write(id, draft.typed, false, draft)) this.left.delete(id);
  }

  /** Forget the draft of a title, which is saved. */
  forget(id, title) {
    if (this.drafts.get("title", id)?.typed === title) this.drafts.keep("title", id, null);
  }

  /** Mark the chapter at a part's position. */
  follow(position) {
    const chapter = this.#chapters.findLast((candidate) => candidate.position <= position);
    if (!chapter || chapter.id === this.#current) return;
    this.#current = chapter.id;
    this.#mark();
  }

  #mark() {
    for (const { id } of this.#chapters) {
      const entry = this.#entries.get(id);
      if (!entry) continue;
      const go = /** @type {HTMLElement} */ (entry.firstElementChild);
      if (id !== this.#current) go.removeAttribute("aria-current");
      else if (!go.hasAttribute("aria-current")) {
        go.setAttribute("aria-current", "true");
        const [at, frame] = [entry.offsetTop, this.list];
        if (frame.matches(":hover")) continue; // scrolling would move a click to another chapter
        if (at < frame.scrollTop || at + entry.offsetHeight > frame.scrollTop + frame.clientHeight) frame.scrollTop = at - frame.clientHeight / 2;
      }
    }
  }

  /** Update the existing entry: replacing it would lose a click in progress. */
  #entry(chapter, before) {
    const entry = before ?? this.#newEntry(chapter.id);
    const [go, rename, speak] = entry.children;
    const [title, state, facts] = go.children;
    const name = chapter.title || phrase("project.chapter.none");
    title.textContent = name;
    state.dataset.state = stateOf(chapter.parts);
    state.textContent = phrase(/** @type {import("../../lib/phrases.js").Key} */ (`${state.dataset.state === "incomplete" ? "longform.state" : "longform.part"}.${state.dataset.state}`));
    facts.textContent = factsOf(chapter);
    const { new: fresh, stale, failed } = chapter.parts;
    labelled(rename, phrase("project.chapter.rename", { title: name }));
    labelled(speak, phrase("project.chapter.speak", { title: name }));
    speak.disabled = !(fresh + stale + failed);
    return entry;
  }

  #newEntry(id) {
    const tell = (type) => this.#tell(type, id);
    const words = [element("span", { className: "chapter-title" }), element("span", { className: "long-word" }), element("span", { className: "quiet" })];
    const write = () => this.write(id)?.focus();
    const go = element("button", { type: "button", className: "chapter-go", onclick: () => tell("go") }, words);
    go.addEventListener("keydown", ({ key }) => key === "F2" && write());
    return element("li", {}, [
      go,
      element("button", { type: "button", className: "chapter-rename", onclick: write }, [icon(PENCIL)]),
      element("button", { type: "button", className: "chapter-speak", onclick: () => tell("speak") }, [icon(SPEAK)]),
    ]);
  }

  /** was: the chapter when its title began to be written; its first part, which has its id, may have been deleted since. @param {string} type @param {string} id */
  #tell(type, id, more = {}, was = /** @type {any} */ (null)) {
    const isIt = (chapter) => chapter.position === was?.position && chapter.title === was.title;
    const chapter = this.#chapters.find((one) => one.id === id) ?? this.#chapters.find(isIt) ?? was;
    this.dispatchEvent(new CustomEvent(type, { detail: { chapter, ...more } }));
  }

  /** Show a field for a new title in the entry, and return it: Enter or leaving it renames the chapter, Escape cancels. typed: a title that could not be saved; isTold: because somebody else has changed it, which typing or Enter replaces; was, sent: the title that it replaces, and one whose answer was lost, if it was typed before the project was left. */
  write(id, typed = "", isTold = false, { was, sent = typed } = /** @type {{ was?: string, sent?: string }} */ ({})) {
    const entry = this.#entries.get(id);
    const shown = this.#chapters.find((candidate) => candidate.id === id);
    const chapter = { ...shown, title: was ?? shown?.title };
    if (!entry || !shown || entry.closest("[data-right=read]") || entry.querySelector("input")) return null;
    const field = element("input", { value: typed || chapter.title, maxLength: LONGEST, dir: "auto", autocomplete: "off" });
    field.setAttribute("aria-label", phrase("project.chapter.rename", { title: shown.title || phrase("project.chapter.none") }));
    let isOpen = true;
    const draft = (words = field.value) => this.drafts.keep("title", id, words && { typed: words, was: isTold ? "" : chapter.title, sent });
    const close = () => {
      isOpen = false;
      draft("");
      field.remove();
    };
    /** Send the title if it has changed; return false if it is blank. */
    const send = () => {
      const title = field.value.trim().replace(/\s+/g, " ");
      if (!title) return false;
      close();
      const now = this.#chapters.find((candidate) => candidate.id === id);
      const read = typed && [typed, sent].includes(now?.title) ? now : chapter; // it was saved, though the answer was lost
      if (!isTold && title === read.title) return true;
      draft(title); // until it is saved
      this.#tell("rename", id, { title, read: isTold ? null : read }, chapter);
      return true;
    };
    field.addEventListener("input", () => {
      field.setCustomValidity("");
      draft();
    });
    field.addEventListener("blur", () => isOpen && !(isTold && field.value === typed) && (send() || close()));
    field.addEventListener("keydown", (event) => {
      if (!["Enter", "Escape"].includes(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
      if (event.key === "Escape") close();
      else if (!send()) {
        field.setCustomValidity(phrase("project.chapter.blank"));
        return field.reportValidity();
      }
      /** @type {HTMLElement} */ (entry.firstElementChild).focus();
    });
    entry.append(field);
    if (typed) draft();
    else field.select();
    if (was === undefined) focusAfterwards(field);
    return field;
  }
}
