// Lines of a project and their speakers, assigned with single keys: 1 to 9 for the people of the scene, 0 the narrator, Enter accepts, U undoes.

import { addCharacter, changeParts, proposeSpeakers, readLines, undoChange } from "../client/projects.js";
import { element } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { once } from "../lib/once.js";
import { phrase } from "../lib/phrases.js";
import { offerUndo, withdrawUndo } from "../trash/undo-toast.js";

const PAGE = 50;
const AT_ONCE = 200; // lines per request when all are read, the most that the server sends: each request costs it as much as all lines
const LIKELY = 0.6; // below it, about every second guess is wrong
const KEYS = 9; // characters with their own key
const KEYED = /^(?:[0-9]|u|Enter|ArrowUp|ArrowDown)$/i;

/** Fires "decided" after each change. */
export class CastLines extends EventTarget {
  #looks = new Latest();
  #which = {};
  /** @type {string | null} */
  #assistant = null;
  #priced = ""; // the lines whose cost the button shows
  #characters = [];
  #lines = [];
  #at = 0;
  /** Ends with the work of the keys pressed so far. @type {Promise<unknown>} */
  #pressed = Promise.resolve();
  /** Lines with their values before each change, latest last. @type {any[]} */
  #done = [];

  /** run: runs work and shows why it failed. */
  constructor(id, run) {
    super();
    this.id = id;
    this.run = run;
    this.title = element("h2");
    this.hint = element("p", { className: "quiet", textContent: phrase("cast.keys") });
    this.list = element("ol", { className: "cast-lines" });
    this.more = element("button", { type: "button", className: "plain", textContent: phrase("cast.next"), onclick: () => run(() => this.#loadMore()) });
    this.ask = element("button", { type: "button", className: "plain", onclick: once(() => run(() => this.#propose())) });
    this.likely = element("button", { type: "button", className: "plain", textContent: phrase("cast.likely", { percent: String(100 * LIKELY) }), onclick: once(() => run(() => this.#acceptLikely())) });
    this.element = element("section", { hidden: true }, [this.title, this.hint, element("div", { className: "cast-bar" }, [this.likely, this.ask]), this.list, this.more]);
    this.list.addEventListener("keydown", (event) => this.#press(event));
  }

  /** which: {unsure: true} or {character: id}; assistant: the model that can propose speakers, or null. */
  async open(which, title, { characters, assistant }) {
    this.#which = which;
    this.#assistant = assistant;
    this.ask.hidden = !assistant;
    this.likely.hidden = !("unsure" in which);
    this.ask.textContent = phrase("cast.ask", { model: assistant ?? "" });
    [this.#done, this.#priced, this.#at] = [[], "", 0];
    this.title.textContent = title;
    this.#characters = characters;
    await this.#load(0);
    this.#go(0); // so that the keys work at once
  }

  /** Show the cast as it is by now. @param {any[]} characters */
  follow(characters) {
    const names = (people) => JSON.stringify(people.map(({ id, name }) => [id, name]));
    const isOther = names(characters) !== names(this.#characters);
    this.#characters = characters;
    if (isOther) for (const line of this.#lines) this.#redraw(line);
  }

  close() {
    this.#looks.end();
    this.element.hidden = true;
  }

  async #load(offset) {
    const isLatest = this.#looks.begin();
    // The server omits decided lines; they stay here so that they can be undone.
    const gone = this.#lines.filter((line) => (line.confirmed || line.settled) && offset).length;
    const { data, has_more: hasMore } = await readLines(this.id, this.#which, "unsure" in this.#which ? offset - gone : offset, PAGE);
    if (!isLatest()) return;
    this.#lines = offset ? [...this.#lines, ...data] : data;
    this.more.hidden = !hasMore;
    this.element.hidden = !this.#lines.length;
    this.#draw();
  }

  /** Add the next lines and go to the first of them. */
  async #loadMore() {
    const at = this.#lines.length;
    await this.#load(at);
    this.#go(at);
  }

  #draw() {
    this.list.replaceChildren(...this.#lines.map((line, number) => this.#row(line, number)));
  }

  #row(line, number) {
    const isHere = number === this.#at;
    const name = this.#nameOf(line.character);
    const guess = line.confidence === null ? name : phrase(line.followed ? "cast.followed" : "cast.guess", { name, percent: String(Math.round(100 * line.confidence)) });
    const state = line.confirmed ? phrase("cast.decided", { name }) : line.proposal ? this.#proposed(line.proposal) : guess;
    const beside = (textContent) => element("span", { className: "quiet", textContent });
    const row = element("li", { tabIndex: isHere ? 0 : -1, onfocus: () => this.#go(number, false) }, [
      element("p", { dir: "auto" }, [beside(line.before), element("strong", { textContent: line.text }), beside(line.after)]),
      element("p", { className: "cast-state", textContent: state }),
    ]);
    row.toggleAttribute("data-decided", line.confirmed);
    if (isHere) row.setAttribute("aria-current", "true");
    if (isHere) row.append(this.#choices(line));
    return row;
  }

  /** Accept all unsure lines of the project whose speaker is likely. Throws Refusal. */
  async #acceptLikely() {
    const ids = [];
    for (let offset = 0, isMore = true; isMore; offset += AT_ONCE) {
      const { data, has_more: hasMore } = await readLines(this.id, { unsure: true }, offset, AT_ONCE);
      ids.push(...data.filter(({ confidence }) => confidence >= LIKELY).map(({ id }) => id));
      isMore = hasMore;
    }
    const words = phrase("cast.likely.done", { count: ids.length });
    if (!ids.length) return void offerUndo(words, null);
    const { replaced } = await changeParts(this.id, ids, { confirmed: true });
    await this.#again();
    offerUndo(words, () => undoChange(this.id, replaced).then((done) => this.#again().then(() => done)));
  }

  /** Show the lines as they are by now, from the first. */
  async #again() {
    [this.#done, this.#at] = [[], 0];
    await this.#load(0);
    this.dispatchEvent(new CustomEvent("decided"));
  }

  /** Return the characters in the order of their keys: those of a small cast keep theirs; else first those who speak near the line. */
  #ordered({ people }) {
    if (this.#characters.length <= KEYS) return this.#characters;
    const near = people.map((id) => this.#characters.find((one) => one.id === id)).filter(Boolean);
    return [...near, ...this.#characters.filter((one) => !near.includes(one))];
  }

  #choices(line) {
    const choice = (key, words, work) => element("button", { type: "button", className: "plain", onclick: () => this.run(work) }, [element("kbd", { textContent: key }), words]);
    const named = this.#ordered(line).slice(0, KEYS).map(({ id, name }, i) => choice(String(i + 1), name, () => this.#decide(line, { character: id })));
    return element("div", { className: "cast-choices" }, [
      ...named, ...this.#others(line), choice("0", phrase("cast.narrator"), () => this.#decide(line, { character: "" })),
      choice("⏎", phrase("cast.accept"), () => this.#accept(line)),
      ...(this.#done.length ? [choice("U", phrase("takes.undo"), () => this.#undo())] : []),
    ]);
  }

  /** Return a select box for the characters without a key. */
  #others(line) {
    const others = this.#ordered(line).slice(KEYS);
    if (!others.length) return [];
    const options = others.map(({ id, name }) => element("option", { value: id, textContent: name }));
    const none = element("option", { value: "", textContent: phrase("cast.merge.choose") });
    const select = element("select", { onchange: () => select.value && this.run(() => this.#decide(line, { character: select.value })) }, [none, ...options]);
    select.setAttribute("aria-label", phrase("cast.character"));
    return [select];
  }

  #nameOf(character) {
    return this.#characters.find(({ id }) => id === character)?.name ?? phrase("cast.narrator");
  }

  #press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLSelectElement || !KEYED.test(event.key)) return;
    if (event.key === "Enter" && event.target instanceof HTMLButtonElement) return;
    event.preventDefault();
    event.stopPropagation();
    const work = () => this.#work(event.key.toLowerCase());
    this.#pressed = this.#pressed.then(work, work); // a key is for the line that those before it lead to
  }

  /** Do what a key says for the current line. @param {string} key */
  #work(key) {
    const line = this.#lines[this.#at];
    /** @type {Record<string, () => unknown>} */
    const keys = {
      arrowdown: () => this.#go(this.#at + 1), arrowup: () => this.#go(this.#at - 1), enter: () => this.run(() => this.#accept(line)),
      u: () => this.run(() => this.#undo()), 0: () => this.run(() => this.#decide(line, { character: "" })),
    };
    for (const [i, one] of this.#ordered(line).slice(0, KEYS).entries()) keys[i + 1] = () => this.run(() => this.#decide(line, { character: one.id }));
    return keys[key]?.();
  }

  #go(number, hasFocus = true) {
    if (number < 0 || number >= this.#lines.length) return;
    if (number !== this.#at) {
      const [before, now] = [this.#at, number];
      this.#at = number;
      for (const at of [before, now]) this.list.children[at].replaceWith(this.#row(this.#lines[at], at));
    } else if (!hasFocus) return;
    const row = /** @type {HTMLElement} */ (this.list.children[number]);
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }

  #proposed({ name, tags }) {
    const words = [name || phrase("cast.narrator"), ...tags.map((tag) => `[${tag}]`)].join(" ");
    return phrase("cast.proposal", { model: this.#assistant ?? "", name: words });
  }

  /** Show what asking costs; pressed again, ask. */
  async #propose() {
    const open = this.#lines.filter((line) => !line.confirmed && !line.proposal).slice(0, PAGE);
    const ids = open.map(({ id }) => id);
    if (!ids.length) return;
    const model = this.#assistant ?? "";
    if (this.#priced !== ids.join()) {
      const { questions, tokens } = await proposeSpeakers(this.id, ids, true);
      this.#priced = ids.join();
      this.ask.textContent = phrase("cast.ask.cost", { model, count: questions, tokens: String(tokens) });
      return;
    }
    this.ask.textContent = phrase("cast.asking", { model });
    try {
      const { data } = await proposeSpeakers(this.id, ids);
      for (const proposal of data) open.find(({ id }) => id === proposal.part).proposal = proposal;
    } finally {
      this.#priced = "";
      this.ask.textContent = phrase("cast.ask", { model });
    }
    this.#draw();
    this.#go(this.#at);
  }

  /** Accept the proposal, or else the current speaker; add a proposed name that is not in the cast. */
  async #accept(line) {
    if (!line.proposal || line.confirmed) return this.#decide(line, { confirmed: true });
    const { name, tags } = line.proposal;
    let { character } = line.proposal;
    if (name && !character) {
      const known = this.#characters.find((one) => one.name.toLowerCase() === name.toLowerCase()) ?? (await addCharacter(this.id, name));
      if (!this.#characters.includes(known)) this.#characters.push(known);
      character = known.id;
    }
    await this.#decide(line, { character: character ?? "", ...(tags.length ? { tags } : {}) });
  }

  async #decide(line, changes) {
    const { followed, replaced } = await changeParts(this.id, [line.id], changes);
    const { character, confirmed } = line;
    const decision = { line, character, confirmed, replaced, shown: this.#follow(followed), step: /** @type {any} */ (null) };
    Object.assign(line, { confirmed: true }, "character" in changes ? { character: changes.character || null } : {});
    decision.step = offerUndo(`${phrase("cast.decided", { name: this.#nameOf(line.character) })}.`, () => this.#takeBack(decision), false);
    this.#done.push(decision);
    this.#redraw(line);
    const at = this.#lines.indexOf(line) + 1;
    const open = this.#lines.findIndex((one, number) => number >= at && !one.settled);
    if (open < 0 && !this.more.hidden) await this.#loadMore();
    else this.#go(open < 0 ? at : open);
    this.dispatchEvent(new CustomEvent("decided"));
  }

  /** Show the lines that changed with a decision; returns what each of those shown was like before. */
  #follow(followed) {
    const before = [];
    for (const { part, character, confidence, unsure } of followed) {
      const line = this.#lines.find(({ id }) => id === part);
      if (!line) continue;
      before.push([line, { character: line.character, confidence: line.confidence, settled: line.settled, followed: line.followed }]);
      Object.assign(line, { character, confidence, settled: !unsure, followed: line.followed || line.character !== character });
      this.#redraw(line);
    }
    return before;
  }

  async #undo() {
    const last = this.#done.at(-1);
    if (!last) return;
    const { left } = await this.#takeBack(last);
    withdrawUndo(last.step);
    if (left.includes(last.line.id)) offerUndo(phrase("undo.outdated", { what: last.step.words }), null, false);
  }

  /** Take a decision back, perhaps after other lines were opened; returns what was undone. Throws Refusal. */
  async #takeBack(decision) {
    const { line, character, confirmed, replaced, shown } = decision;
    this.#done = this.#done.filter((other) => other !== decision);
    const answer = await undoChange(this.id, replaced).catch((problem) => {
      if (!problem.isOfRequest) this.#done.push(decision); // the studio could not take it just now
      throw problem;
    });
    if (answer.left.includes(line.id)) return answer;
    for (const [one, before] of [...shown.filter(([follower]) => !answer.left.includes(follower.id)), [line, { character, confirmed }]]) this.#redraw(Object.assign(one, before));
    this.#go(this.#lines.indexOf(line));
    this.dispatchEvent(new CustomEvent("decided"));
    return answer;
  }

  #redraw(line) {
    const number = this.#lines.indexOf(line);
    if (number < 0) return; // others are shown by now
    const hadFocus = this.list.children[number].contains(document.activeElement);
    const row = this.#row(line, number);
    this.list.children[number].replaceWith(row);
    if (hadFocus) row.focus({ preventScroll: true });
  }
}
