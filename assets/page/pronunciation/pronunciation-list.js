// Shows and edits a pronunciation dictionary: the shared one, a voice's or a project's.

import {
  addPronunciation, changePronunciation, deletePronunciation, exportedPronunciations, importPronunciations, listPronunciations,
} from "../client/pronunciations.js";
import { Refusal } from "../client/refusal.js";
import { element, icon, Keyed, labelled, setChildren } from "../lib/elements.js";
import { BIN, PLAY } from "../lib/icons.js";
import { Latest } from "../lib/latest.js";
import { onceMore } from "../lib/once.js";
import { phrase } from "../lib/phrases.js";
import { askBeforeLeaving, isWritten } from "../lib/typing.js";

const MOST_SHOWN = 100;
const MANY = 12; // entries from which on there is a search field

export class PronunciationList {
  #entries = [];
  #rows = new Keyed();
  #shelf = {};
  /** Other dictionaries with text that could not be saved, by their shelves as JSON. @type {Map<string, { entries: any[], rows: Keyed, fields: Element[] }>} */
  #left = new Map();
  #looks = new Latest();

  /**
   * hear(button, words, shelf) plays words; null where that is impossible.
   *
   * @param {HTMLElement} root
   * @param {((button: HTMLButtonElement, words: string, shelf: import("../client/pronunciations.js").Shelf) => Promise<void>) | null} hear
   */
  constructor(root, hear) {
    this.hear = hear;
    const field = (name, placeholder) =>
      labelled(element("input", { type: "text", name, placeholder, autocomplete: "off", spellcheck: false, dir: "auto" }), placeholder);
    this.search = element("input", { type: "search", placeholder: phrase("dictionary.find"), oninput: () => this.#show() });
    this.search.setAttribute("aria-label", phrase("dictionary.find.label"));
    this.rows = element("ul", { className: "pron-rows" });
    this.more = element("p", { className: "quiet" });
    this.phrase = field("phrase", phrase("dictionary.phrase"));
    this.said = field("said", phrase("dictionary.said"));
    this.form = element("form", { className: "pron-row" }, [this.phrase, this.said, element("button", { type: "submit", className: "plain", textContent: phrase("dictionary.add") })]);
    const add = onceMore(() => this.#do(() => this.#add()));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      add();
    });
    this.file = element("input", { type: "file", accept: ".csv,.tsv,text/csv", onchange: () => this.#do(() => this.#import()) });
    this.file.setAttribute("aria-label", phrase("dictionary.import.label"));
    this.saved = element("a", { download: "pronunciations.csv", textContent: phrase("dictionary.export") });
    this.status = element("p", { className: "quiet pron-said" });
    this.status.setAttribute("role", "status");
    const ways = element("p", { className: "pron-ways" }, [element("label", { className: "pron-file" }, [phrase("dictionary.import"), this.file]), this.saved]);
    root.classList.add("pron");
    askBeforeLeaving(() => isWritten([...root.querySelectorAll("[type=text]"), ...[...this.#left.values()].flatMap(({ fields }) => fields)]));
    root.replaceChildren(this.search, this.rows, this.more, this.form, ways, this.status);
  }

  /** @param {import("../client/pronunciations.js").Shelf} shelf */
  open(shelf) {
    const [before, now] = [this.#shelf, shelf].map((one) => JSON.stringify(one));
    if (now !== before) {
      this.#left.set(before, { entries: this.#entries, rows: this.#rows, fields: [...this.rows.querySelectorAll("[type=text]")] });
      for (const [key, { fields }] of this.#left) if (!isWritten(fields)) this.#left.delete(key);
      ({ entries: this.#entries, rows: this.#rows } = this.#left.get(now) ?? { entries: [], rows: new Keyed() });
      this.#left.delete(now);
    }
    this.#shelf = shelf;
    this.search.value = "";
    this.saved.href = exportedPronunciations(shelf);
    this.#show();
    return this.#do(async () => {});
  }

  /** Run work, then show the updated dictionary and the message that work returned, or the error message. */
  async #do(work) {
    const isLatest = this.#looks.begin();
    this.#say("");
    try {
      const words = await work();
      const entries = await listPronunciations(this.#shelf);
      if (!isLatest()) return;
      this.#entries = entries;
      this.#show();
      this.#say(words ?? "");
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.#say(problem.why, true);
    }
  }

  #say(words, isBad = false) {
    this.status.textContent = words;
    this.status.toggleAttribute("data-bad", isBad);
  }

  async #add() {
    const fields = [this.phrase, this.said];
    const [word, said] = fields.map(({ value }) => value);
    if (!word.trim() && !said.trim()) return this.phrase.focus(); // also after a second click on Add
    await addPronunciation(this.#shelf, { phrase: word, said });
    if (this.phrase.value !== word || this.said.value !== said) return; // the next entry is being typed
    this.form.reset();
    if (this.form.contains(document.activeElement)) this.phrase.focus(); // and not while another entry is being edited by now
  }

  async #import() {
    const [file] = this.file.files;
    try {
      if (!file) return "";
      const { imported } = await importPronunciations(this.#shelf, file);
      return phrase("dictionary.imported", { count: imported });
    } finally {
      this.file.value = "";
    }
  }

  #show() {
    const wanted = this.search.value.trim().toLowerCase();
    const isUnsaved = ({ id }) => isWritten(this.#rows.get(id)?.querySelectorAll("[type=text]") ?? []);
    const matches = this.#entries.filter((entry) => `${entry.phrase} ${entry.said}`.toLowerCase().includes(wanted) || isUnsaved(entry));
    this.search.hidden = this.#entries.length < MANY;
    setChildren(this.rows, this.#rows.of(matches.slice(0, MOST_SHOWN), (entry, before) => this.#row(entry, before)));
    const left = matches.length - MOST_SHOWN;
    this.more.textContent = left > 0 ? phrase("dictionary.more", { count: left }) : this.#entries.length && !matches.length ? phrase("dictionary.none") : "";
    this.more.hidden = !this.more.textContent;
    this.saved.hidden = !this.#entries.length;
  }

  /** A row in which someone types stays as it is. */
  #row({ id, phrase: word, said, match_case: matchCase }, before) {
    if (before && (before.contains(document.activeElement) || isWritten(before.querySelectorAll("[type=text]")))) return before;
    const field = (name, defaultValue, label) => {
      const input = element("input", { type: "text", defaultValue, autocomplete: "off", spellcheck: false, dir: "auto" });
      let isTold = false; // of another's change, which typing again replaces
      const save = async (value) => {
        try {
          await changePronunciation(id, { [name]: value, before: isTold ? {} : { [name]: input.defaultValue } });
          [input.defaultValue, isTold] = [value, false];
        } catch (problem) {
          isTold = problem.isOutdated;
          throw problem;
        }
      };
      input.onchange = () => this.#do(() => save(input.value));
      return labelled(input, label);
    };
    const words = field("said", said, phrase("dictionary.how", { phrase: word }));
    const box = element("input", { type: "checkbox", checked: matchCase });
    box.onchange = () => this.#do(() => changePronunciation(id, { match_case: box.checked }).then(() => {}, (problem) => {
      box.checked = !box.checked;
      throw problem;
    }));
    const play = element("button", { type: "button" }, [icon(PLAY)]);
    play.onclick = () => this.#hear(play, words.value);
    labelled(play, phrase("dictionary.hear", { phrase: word })).hidden = !this.hear;
    const bin = element("button", { type: "button", onclick: () => this.#do(async () => void (await deletePronunciation(id))) }, [icon(BIN)]);
    labelled(bin, phrase("dictionary.delete", { phrase: word }));
    const exact = element("label", { className: "pron-case", title: phrase("dictionary.case.title") }, [box, phrase("dictionary.case")]);
    return element("li", { className: "pron-row" }, [field("phrase", word, phrase("dictionary.word", { phrase: word })), words, exact, element("span", { className: "pron-do" }, [play, bin])]);
  }

  async #hear(button, words) {
    this.#say("");
    try {
      await this.hear?.(button, words, this.#shelf);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.#say(problem.why, true);
    }
  }
}
