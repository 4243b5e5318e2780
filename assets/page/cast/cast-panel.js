// The cast of a project: its characters with their voices, and the lines whose speaker is uncertain.

import { addCharacter, changeCharacter, changeProject, deleteCharacter, mergeCharacter, readCast, recast, undoChange } from "../client/projects.js";
import { Refusal } from "../client/refusal.js";
import { restore } from "../client/trash.js";
import { element, redrawWhenLeft, setChildren } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { once, onceMore } from "../lib/once.js";
import { phrase } from "../lib/phrases.js";
import { askBeforeLeaving, askWhileTyping } from "../lib/typing.js";
import { offerUndo } from "../trash/undo-toast.js";
import { CastLines } from "./cast-lines.js";
import { CharacterRow } from "./character-row.js";
import { markOf, marksOf } from "./people.js";

const JUST = 1000; // ms after a look, within which several news are read at once

class CastPanel {
  #looks = new Latest();
  #lookedAt = 0;
  #timer = 0; // of the next look
  /** @type {Promise<void>} */
  #sending = Promise.resolve(); // the changes sent last
  /** @type {Map<string | null, CharacterRow>} */
  #rows = new Map();
  /** @type {{ characters: any[], assistant: string | null }} */
  #cast = { characters: [], assistant: null };
  /** Changes to be sent, by the character's id, blank for the narrator's; they stay in their fields until the studio answers. @type {Map<string, any>} */
  #due;

  constructor(container, project) {
    this.project = project;
    this.#due = new Map(project.drafts.all("cast"));
    this.list = element("ul", { className: "cast-list" });
    this.list.setAttribute("aria-label", phrase("cast.title"));
    this.note = element("p", { className: "quiet" });
    this.note.setAttribute("role", "status");
    this.lines = new CastLines(project.id, (work) => this.#do(work));
    this.lines.addEventListener("decided", () => this.#changed());
    const button = (words, work) => element("button", { type: "button", className: "plain", textContent: words, onclick: once(() => this.#do(work)) });
    this.unsure = button("", () => this.lines.open({ unsure: true }, phrase("cast.unsure.title"), this.#cast));
    this.recast = button(phrase("cast.recast"), () => this.#recast());
    this.name = element("input", { placeholder: phrase("cast.add.name"), dir: "auto", maxLength: 200, value: project.drafts.get("cast-name", "") ?? "", oninput: () => this.#keepName() });
    this.name.setAttribute("aria-label", phrase("cast.add.name"));
    const addNamed = onceMore(() => this.#do(() => this.#add()));
    const add = element("form", { className: "cast-add" }, [this.name, element("button", { type: "submit", className: "plain", textContent: phrase("cast.add") })]);
    add.addEventListener("submit", (event) => {
      event.preventDefault();
      addNamed();
    });
    askWhileTyping(container, project.signal);
    askBeforeLeaving(() => this.name.value.trim() !== "" || this.#due.size > 0 || this.list.querySelector("[aria-invalid]") !== null, project.signal);
    this.refresh = redrawWhenLeft(this.list, () => this.#refresh(), project.signal);
    container.classList.add("cast-panel");
    container.append(element("div", { className: "cast-bar" }, [this.unsure, this.recast, add]), this.note, this.list, this.lines.element);
  }

  open() {
    return this.#do(() => this.#look());
  }

  close() {
    this.#looks.end();
    this.lines.close();
  }

  async #do(work) {
    this.note.textContent = "";
    try {
      await work();
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      if (!this.project.signal.aborted) this.note.textContent = problem.why;
    }
  }

  /** Reload the cast, as somebody else may have changed it; the project reports a failure. */
  async #refresh() {
    clearTimeout(this.#timer);
    const wait = this.#lookedAt + JUST - performance.now();
    if (wait > 0) return void (this.#timer = setTimeout(() => this.project.signal.aborted || this.refresh(), wait));
    try {
      await this.#look();
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
    }
  }

  async #look() {
    this.#lookedAt = performance.now();
    const refused = await this.#send().catch((problem) => problem);
    const isLatest = this.#looks.begin();
    const { narrator, data, unsure, assistant } = await readCast(this.project.id);
    if (!isLatest() || this.project.signal.aborted) return;
    this.#cast = { characters: data, assistant };
    this.lines.follow(data);
    const [members, marks] = [[narrator, ...data], marksOf(data)];
    this.#rows = new Map(members.map((member) => [member.id, this.#rows.get(member.id) ?? this.#row()]));
    for (const member of members) this.#rows.get(member.id)?.show(member, data.filter(({ id }) => id !== member.id), markOf(marks, member.id));
    setChildren(this.list, [...this.#rows.values()].map((row) => row.element));
    this.unsure.textContent = phrase("cast.unsure", { count: unsure });
    this.unsure.hidden = !unsure;
    this.recast.hidden = !data.length;
    if (!data.length) this.note.textContent = phrase("cast.none");
    if (refused) throw refused;
  }

  #row() {
    const row = new CharacterRow(this.project.voices);
    const on = (type, work) => row.addEventListener(type, ({ detail }) => this.#do(() => work(row.member, detail)));
    on("change", (member, changes) => this.#change(member, changes, row.shown));
    on("hear", (member) => this.#hear(member));
    on("lines", (member) => this.lines.open({ character: member.id ?? "" }, phrase("cast.of", { name: member.name || phrase("cast.narrator") }), this.#cast));
    on("merge", async (member, { into }) => this.#undoable(member, await mergeCharacter(this.project.id, member.id, into), "cast.merged"));
    on("delete", async (member) => this.#undoable(member, await deleteCharacter(this.project.id, member.id), "cast.deleted"));
    return row;
  }

  async #change(member, changes, shown) {
    const [key, read] = [member.id ?? "", Object.entries(shown).filter(([name]) => name in changes)];
    const due = this.#due.get(key);
    this.#due.set(key, { ...due, ...changes, before: { ...Object.fromEntries(read), ...due?.before } });
    try {
      await this.#send();
    } finally {
      await this.#changed();
    }
  }

  /** Send what is due. Throws Refusal; what the studio could not take is sent again before the cast is next read. */
  #send() {
    this.#sending = this.#sending.catch(() => {}).then(() => this.#sendAll()); // its failure was told
    return this.#sending;
  }

  async #sendAll() {
    for (const [id, changes] of [...this.#due]) {
      const row = this.#rows.get(id || null);
      this.#due.delete(id);
      try {
        const saved = await this.#save(id, { ...row?.member, ...changes.before }, changes);
        for (const read of [row?.shown ?? {}, this.#due.get(id)?.before ?? {}]) { // a later change replaces what was just saved
          for (const name of Object.keys(changes)) if (name in read) read[name] = saved[name];
        }
      } catch (problem) {
        if (problem.isOutdated) row?.hold(changes);
        const due = this.#due.get(id);
        if (!problem.isOfRequest) this.#due.set(id, { ...changes, ...due, before: { ...due?.before, ...changes.before } });
        throw problem;
      } finally {
        this.project.drafts.keep("cast", id, this.#due.get(id)); // for when the project or the page is left
      }
    }
  }

  /** Save changes and offer to undo them; was: the values before. Returns the saved ones. Throws Refusal. */
  async #save(id, was, changes) {
    const at = this.project.id;
    if (!id) {
      const { settings, replaced } = await changeProject(at, changes);
      this.#offer(phrase("project.changed"), () => undoChange(at, replaced));
      return settings;
    }
    const saved = await changeCharacter(at, id, changes);
    const names = Object.keys(changes).filter((name) => name in was && JSON.stringify(was[name]) !== JSON.stringify(saved[name]));
    if (!names.length) return saved; // such as a space behind the name
    const { voice, ...others } = Object.fromEntries(names.map((name) => [name, was[name]]));
    const before = Object.fromEntries(Object.keys(others).map((name) => [name, saved[name]]));
    const former = "narrator" in others ? was.voice : voice;
    this.#offer(phrase("cast.changed", { name: saved.name }), async () => {
      if (Object.keys(others).length) await changeCharacter(at, id, { ...others, before });
      const { characters } = saved.replaced; // empty if this was sent again after its answer was lost
      return former === undefined ? undefined : undoChange(at, { characters: characters.length ? characters : [{ id, before: former, after: saved.voice }] });
    });
    return saved;
  }

  /** Offer to undo a step; the cast is shown then. */
  #offer(words, undo) {
    const all = async () => {
      const done = await undo();
      await this.#changed();
      return done;
    };
    offerUndo(words, all, false);
  }

  #keepName() {
    this.project.drafts.keep("cast-name", "", this.name.value);
  }

  async #undoable({ id, name }, { undo_seconds: seconds }, words) {
    this.lines.close();
    await this.#changed();
    const undo = async () => {
      await restore("character", [id]);
      await this.#changed();
    };
    offerUndo(phrase(words, { name }), seconds ? undo : null);
  }

  /** Play the sample line if it has audio, else the voice's recording. */
  #hear({ sample, voice }) {
    if (sample?.take) return this.project.playback.play(this.project.project(), { id: sample.part, position: sample.position, chosen: sample.take });
    const wanted = voice ?? this.project.project()?.settings.voice;
    const own = this.project.voices.find(({ id, name, isFirstChoice }) => (wanted ? [id, name.toLowerCase()].includes(wanted.toLowerCase()) : isFirstChoice));
    return own && this.project.playback.sample(own);
  }

  async #recast() {
    const { replaced } = await recast(this.project.id, false);
    await this.#changed();
    if (replaced.characters.length) this.#offer(phrase("cast.recast.done", { count: replaced.characters.length }), () => undoChange(this.project.id, replaced));
  }

  async #add() {
    const name = this.name.value;
    if (!name.trim()) return this.name.focus();
    await addCharacter(this.project.id, name);
    if (this.name.value === name) this.name.value = ""; // else the next one is being typed
    this.#keepName();
    await this.#changed();
  }

  async #changed() {
    await this.#look();
    await this.project.changed();
  }
}

/**
 * Mount the panel of a project's cast.
 *
 * @param {HTMLElement} container empty
 * @param {any} project as passed by longform/panels.js
 */
export const mountCast = (container, project) => new CastPanel(container, project);
