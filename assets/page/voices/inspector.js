// The library's inspector: shows one voice in full, with its facts and actions.

import { colourOf, initialOf } from "./initial.js";
import { introduction } from "./introduction.js";
import { Refusal } from "../client/refusal.js";
import { seedOf } from "../client/requests.js";
import { changeVoice, deleteVoice, duplicate, exportAddress, getVoice, revisionsOf } from "../client/voices.js";
import { element, partsOf } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { once, onceMore } from "../lib/once.js";
import { Samples } from "./clips.js";
import { offerMenu } from "../lib/menu.js";
import { LOCALE, phrase } from "../lib/phrases.js";
import { askBeforeLeaving, focusAfterwards } from "../lib/typing.js";
import { sharingItems, sharingWords } from "../shell/sharing.js";
import { usualOf } from "./voice-defaults.js";

/**
 * Fires "shown" {voice}, "choose" {id}, "add" {voice}, "changed" and "refused" {message} (of a voice that is
 * no longer shown), "deleted" {voice, seconds} (how long it can be restored) and "closed" {id}.
 */
export class Inspector extends EventTarget {
  /** @type {any} */
  #voice = null;
  /** Id of the voice to show, also while it is being fetched. @type {string | null} */
  #target = null;
  #loads = new Latest();
  /** The last change to the voice, which may be in progress. @type {Promise<any>} */
  #changes = Promise.resolve();
  /** The fields' values when filled or saved; a field that differs has unsaved changes. @type {Map<HTMLInputElement, string>} */
  #filled = new Map();
  #colour = ""; // blank: derived from the name

  constructor(area, playButtons) {
    super();
    this.playButtons = playButtons;
    this.root = area.querySelector("#inspector");
    this.part = partsOf(this.root);
    this.samples = new Samples(this.part, playButtons, {
      run: (work) => this.#do(work),
      change: (work) => this.#change(async (voice, isSame) => this.#saved(voice, isSame, await work(voice))),
    });
    this.part("close").addEventListener("click", () => this.close());
    this.part("add").addEventListener("click", () => this.#tell("add", { voice: this.#voice }));
    const save = onceMore(() => this.#change((voice, isSame) => isSame() && this.#save(voice, isSame))); // else its fields have been closed
    this.part("facts").addEventListener("submit", (event) => {
      event.preventDefault();
      save();
    });
    this.part("colour").addEventListener("input", ({ target }) => (this.#colour = target.value));
    this.part("colour-drawn").addEventListener("click", () => this.#showColour(""));
    askBeforeLeaving(() => this.#isWritten);
    this.root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation(); // or it would also stop the Studio's take
      this.leave();
    });
  }

  /** The shown voice's id; null: none. */
  get shown() {
    return this.#voice?.id ?? null;
  }

  /** id: the voice's id or another name of it; another voice is not shown over unsaved changes. Throws Refusal. */
  async show(id) {
    if (this.#isWritten && this.#voice && ![this.#voice.id, this.#voice.slug].includes(id)) return this.leave();
    this.#target = id;
    this.#say("");
    if (!(await this.#load(id))) return;
    this.root.hidden = false;
    focusAfterwards(this.root, { preventScroll: true });
  }

  /** Fetch the voice again, as it may have changed elsewhere: not with unsaved text, whose saving reports the conflict, unless isOwn, as this page made the change. */
  refresh(isOwn = false) {
    if (this.#voice && this.#target === this.shown && (isOwn || !this.#isWritten)) this.#do(({ id }) => this.#load(id));
  }

  /** Close it, but not over unsaved changes: they are pointed out, and their voice is in the address again. */
  leave() {
    if (!this.#isWritten) return this.close();
    this.#say(phrase("inspector.unsaved"));
    this.#tell("shown", { voice: this.#voice });
  }

  close() {
    this.#target = null;
    this.#loads.end();
    const id = this.shown;
    if (!id) return;
    this.#voice = null;
    this.#forgetWritten();
    this.root.hidden = true;
    this.#tell("closed", { id });
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  /** Run work(voice, isSame) with a voice as it is now, by default the shown one, if any; isSame() returns whether it is still shown. */
  async #do(work, voice = this.#voice) {
    this.#say("");
    if (!voice) return;
    const isSame = () => this.#target === voice.id;
    try {
      await work(voice.id === this.shown ? this.#voice : await getVoice(voice.id), isSame);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      if (!isSame()) return this.#tell("refused", { message: `${voice.name}: ${problem.why}` });
      if (problem.status === 404 && !this.#isWritten) return this.close(); // deleted elsewhere
      if (problem.code === "voice_not_found") return this.#say(phrase("inspector.deleted"));
      if (!problem.isOutdated) return this.#say(problem.why);
      await this.#do(async () => {
        const before = new Map(this.#filled);
        if (!(await this.#load(voice.id))) return;
        const others = this.#fields.filter((field) => this.#differs(field) && before.get(field) !== this.#filled.get(field));
        this.#say([phrase("inspector.changed"), ...others.map((field) => `${field.labels?.[0].firstChild?.textContent?.trim()}: “${this.#filled.get(field)}”`)].join(" "));
      });
    }
  }

  /** Like #do, for changes to the voice: each waits for the one before; another voice may be shown by then. */
  #change(work) {
    const voice = this.#voice;
    const made = this.#changes.then(() => this.#do(work, voice));
    this.#changes = made.catch(() => {}); // handled by its caller
    return made;
  }

  #say(words, isBad = true) {
    this.part("inspector-said").textContent = words;
    this.part("inspector-said").toggleAttribute("data-bad", isBad);
  }

  /** Fetch and show a voice, keeping unsaved text; return false if another one was requested in the meantime. Throws Refusal. */
  async #load(id) {
    const isLatest = this.#loads.begin();
    try {
      const voice = await getVoice(id);
      const revisions = await revisionsOf(voice.id);
      if (isLatest()) this.#show(voice, revisions);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      if (!isLatest()) return false;
      this.#target = this.shown;
      throw problem;
    }
    return isLatest();
  }

  #show(voice, revisions) {
    if (voice.id !== this.shown) this.#forgetWritten();
    this.#voice = voice;
    this.#target = voice.id;
    this.samples.show(voice, revisions);
    if (this.part("dictionary").dataset.voice !== voice.id) this.part("dictionary").open = false;
    this.part("dictionary").dataset.voice = voice.id;
    this.part("title").replaceChildren(initialOf(voice), voice.name);
    if (!this.#differs(this.part("colour"))) {
      this.#showColour(voice.colour);
      this.#filled.set(this.part("colour"), this.part("colour").value);
    }
    this.part("address").textContent = voice.address;
    const since = phrase(voice.consent ? "inspector.since.consent" : "inspector.since", { date: new Date(voice.created_at * 1000).toLocaleDateString(LOCALE) });
    this.part("made").textContent = [since, sharingWords(voice)].filter(Boolean).join(" · ");
    for (const field of this.#fields) {
      const { fact, preset } = field.dataset;
      const value = fact ? voice[fact] : voice.defaults[preset ?? ""];
      if (preset) field.placeholder = usualOf(preset) || field.placeholder;
      const words = Array.isArray(value) ? value.join(", ") : String(value ?? "");
      const isMine = this.#differs(field);
      if (!isMine) field.value = words;
      this.#filled.set(field, isMine ? words : field.value); // as the field takes it, such as without line breaks
    }
    const isFixed = voice.right === "read";
    for (const field of this.part("facts").elements) field.disabled = isFixed;
    this.part("save").hidden = this.part("add").hidden = this.part("dictionary").hidden = isFixed;
    this.#offer(voice);
    this.#tell("shown", { voice });
  }

  /** The fields of the voice's facts, then those of its presets. @returns {HTMLInputElement[]} */
  get #fields() {
    return [...this.root.querySelectorAll("[data-fact], [data-preset]")];
  }

  #differs(field) {
    return this.#filled.has(field) && field.value !== this.#filled.get(field);
  }

  /** Whether there are unsaved changes. */
  get #isWritten() {
    return this.samples.isWritten || [...this.#filled.keys()].some((field) => this.#differs(field));
  }

  #forgetWritten() {
    this.#filled.clear();
    this.samples.forgetWritten();
  }

  #showColour(colour) {
    this.#colour = colour;
    this.part("colour").value = colourOf({ name: this.#voice.name, colour });
  }

  #offer(voice) {
    const { name } = voice;
    const button = (textContent, label, onclick, className = "plain") => {
      const control = element("button", { type: "button", className, textContent, onclick });
      control.setAttribute("aria-label", label);
      return control;
    };
    const changes = (textContent, label, work) => button(textContent, label, once(() => this.#change(work)));
    const hear = button(phrase("inspector.hear"), phrase("inspector.hear.label", { name }), () => this.#do((_, isSame) => this.#introduce(voice, isSame, hear)));
    const pack = element("a", { href: exportAddress(voice.id), download: "", className: "plain", textContent: phrase("inspector.export") });
    pack.setAttribute("aria-label", phrase("inspector.export.label", { name }));
    const sharing = sharingItems(voice, (wanted) => this.#change((latest, isSame) => this.#share(latest, wanted, isSame)));
    this.part("actions").replaceChildren(
      button(phrase("inspector.use"), phrase("inspector.use.label", { name }), () => this.#tell("choose", { id: voice.slug }), "primary"),
      hear,
      changes(phrase("inspector.duplicate"), phrase("inspector.duplicate.label", { name }), (_, isSame) => this.#duplicate(voice, isSame)),
      pack,
      ...(sharing.length ? [offerMenu(button(phrase("sharing.do"), phrase("sharing.label", { name }), null), () => sharing)] : []),
      ...(voice.right === "own" ? [changes(phrase("inspector.delete"), phrase("inspector.delete.label", { name }), (_, isSame) => this.#delete(voice, isSame))] : []),
    );
  }

  async #introduce(voice, isSame, button) {
    if (!button.dataset.playing) this.#say(phrase("inspector.loading"), false);
    await this.playButtons.press(button, introduction(voice));
    if (isSame()) this.#say("");
  }

  async #saved({ id }, isSame, message) {
    if (isSame()) await this.#load(id);
    const isSeen = isSame();
    if (isSeen) this.#say(message, false);
    this.#tell("changed", isSeen ? {} : { message });
  }

  async #save(voice, isSame) {
    const fields = this.#fields;
    const saved = new Map([...fields, this.part("colour")].map((field) => [field, field.value]));
    const changed = fields.filter((field) => this.#differs(field)); // others may hold more than a field can show
    const wrong = changed.find(({ validity }) => !validity.valid && !validity.stepMismatch); // the step is only that of the arrows
    if (wrong) {
      wrong.focus();
      return this.#say(`${wrong.labels?.[0].textContent.trim()}: ${wrong.validationMessage}`);
    }
    const changes = Object.fromEntries(changed.flatMap(({ dataset, value }) => (dataset.fact ? [[dataset.fact, dataset.fact === "tags" ? value.split(",") : value]] : [])));
    if (this.#colour !== voice.colour) changes.colour = this.#colour;
    const presets = changed.filter(({ dataset }) => dataset.preset);
    if (presets.length) changes.defaults = { ...voice.defaults, ...Object.fromEntries(presets.map((field) => [field.dataset.preset, field.value === "" ? undefined : seedOf(field.value)])) };
    await changeVoice(voice.id, changes, voice.etag);
    if (isSame()) this.#filled = saved;
    await this.#saved(voice, isSame, phrase("inspector.saved", { name: String(changes.name ?? voice.name).trim() }));
  }

  async #share(voice, sharing, isSame) {
    await changeVoice(voice.id, { sharing }, voice.etag);
    await this.#saved(voice, isSame, phrase(sharing === "private" ? "sharing.now.private" : sharing === "read" ? "sharing.now.read" : "sharing.now.edit", { name: voice.name }));
  }

  async #duplicate({ id, name }, isSame) {
    const copy = await this.#copyOf(id, name);
    this.#tell("changed", { message: phrase("inspector.savedAs", { name: copy.name }) });
    if (isSame()) await this.show(copy.id);
  }

  /** Duplicate the voice under the first free name of "NAME copy", "NAME copy 2" … */
  async #copyOf(id, name) {
    for (let number = 1; ; number += 1) {
      try {
        return await duplicate(id, number === 1 ? `${name} copy` : `${name} copy ${number}`);
      } catch (problem) {
        if (problem.status !== 409) throw problem;
      }
    }
  }

  async #delete(voice, isSame) {
    if (isSame() && this.#isWritten) return this.leave();
    const { undo_seconds: seconds } = await deleteVoice(voice.id);
    if (isSame()) this.close();
    this.#tell("deleted", { voice, seconds });
  }
}
