// The voice library's area: finds, plays, stars and chooses voices; the inspector shows one in full.

import { Refusal } from "../client/refusal.js";
import { initialOf } from "./initial.js";
import { Inspector } from "./inspector.js";
import { PackImport } from "./pack-import.js";
import { VoiceFilter } from "./voice-filter.js";
import { changeVoice, descriptionOf, findVoices, genderOf, previewAddress, traitsOf } from "../client/voices.js";
import { restore } from "../client/trash.js";
import { Recorded } from "../player/track.js";
import { element, icon, Keyed, labelled, partsOf, setChildren } from "../lib/elements.js";
import { STAR } from "../lib/icons.js";
import { Latest } from "../lib/latest.js";
import { LookAgain } from "../lib/look-again.js";
import { once } from "../lib/once.js";
import { phrase, worded } from "../lib/phrases.js";
import { sharingWords } from "../shell/sharing.js";
import { offerUndo } from "../trash/undo-toast.js";

const VIEWS = { all: { order: "favourites" }, favourites: { favourite: true }, recent: { order: "recent" } };
const SETTLED = 150; // ms without typing before a search
const PLAY = '<path class="icon-play" d="M8 5.4v13.2a.8.8 0 0 0 1.2.7l10.4-6.6a.8.8 0 0 0 0-1.4L9.2 4.7A.8.8 0 0 0 8 5.4Z"/><rect class="icon-stop" x="6.500" y="6.500" width="11" height="11" rx="1.500"/>';

/**
 * Fires "choose" with {id}, "add" with {voice} (to add a clip), "changed" when the library has changed, and "about" with
 * {item, title, isSame} when another voice or none is inspected (item: its id, for the address).
 */
export class Voices extends EventTarget {
  #lists = new Latest();
  #isOpen = false;
  #timer = 0;
  #again = new LookAgain();
  #view = "all";
  #last = null; // id of the last listed voice
  #cards = new Keyed();
  #listed = []; // the listed voices
  #shown = new WeakMap(); // each card's content
  #isSame = false; // whether the inspected voice was already inspected when the area was left

  constructor(root, playButtons) {
    super();
    this.part = partsOf(root);
    this.playButtons = playButtons;
    this.inspector = new Inspector(root, playButtons);
    this.#listenToInspector();
    this.part("search").addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#do(() => this.#list()), SETTLED);
    });
    this.filter = new VoiceFilter(this.part);
    this.filter.addEventListener("change", () => this.#do(() => this.#list()));
    for (const button of this.part("views").children) button.addEventListener("click", () => this.#show(button.dataset.view));
    this.part("more").addEventListener("click", once(() => this.#do(() => this.#more())));
    this.packs = new PackImport(root, (work) => this.#do(work));
    this.packs.addEventListener("begun", () => this.#say(""));
    this.packs.addEventListener("imported", ({ detail }) => {
      this.inspector.refresh(detail.id === this.inspector.shown);
      this.#do(() => this.#changed(detail.message));
    });
    this.part("list").addEventListener("keydown", (event) => this.#arrow(event));
  }

  /** id: the voice to inspect. */
  open(id = "") {
    this.#isOpen = true;
    this.#say("");
    this.#do(() => this.#list());
    this.#isSame = !id;
    if (id) this.#inspect(id);
    else this.inspector.refresh();
  }

  /** Refresh the list after an outage; unsaved text in the inspector is kept. */
  back() {
    this.#say("");
    return this.#do(() => this.#list());
  }

  /** Inspect the voice in the address, or none. */
  go(id) {
    if (id) this.#inspect(id);
    else this.inspector.leave();
  }

  close() {
    this.#isOpen = false;
    this.#again.end();
    this.packs.close();
  }

  #listenToInspector() {
    const { inspector } = this;
    inspector.addEventListener("choose", ({ detail }) => this.dispatchEvent(new CustomEvent("choose", { detail })));
    inspector.addEventListener("add", ({ detail }) => this.dispatchEvent(new CustomEvent("add", { detail })));
    inspector.addEventListener("changed", ({ detail }) => this.#do(() => this.#changed(detail.message)));
    inspector.addEventListener("refused", ({ detail }) => this.#say(detail.message));
    inspector.addEventListener("shown", ({ detail }) => this.#about({ item: detail.voice.id, title: detail.voice.name, isSame: this.#isSame }));
    inspector.addEventListener("closed", ({ detail }) => {
      this.#about({ item: "" });
      this.#mark(null);
      /** @type {HTMLElement | null | undefined} */ (this.#cards.get(detail.id)?.querySelector(".card-open"))?.focus();
    });
    inspector.addEventListener("deleted", ({ detail }) => {
      const { voice, seconds } = detail;
      this.#say("");
      offerUndo(phrase("trash.deleted", { title: voice.name }), seconds ? () => this.#restore(voice) : null);
      this.#do(() => this.#changed());
    });
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
      if (problem.isLost && this.#isOpen) this.#again.after(problem, () => this.#do(async () => {
        await this.#list();
        if (this.part("said").textContent === problem.why) this.#say("");
      }));
    }
  }

  async #changed(message) {
    if (message) this.#say(message);
    this.dispatchEvent(new CustomEvent("changed"));
    await this.#list();
  }

  #show(view) {
    this.#view = view;
    for (const button of this.part("views").children) button.setAttribute("aria-pressed", String(button.dataset.view === view));
    this.#do(() => this.#list());
  }

  #find(after) {
    return findVoices({ q: this.part("search").value, ...this.filter.wishes, after, ...VIEWS[this.#view] });
  }

  async #list() {
    const isLatest = this.#lists.begin();
    const page = await this.#find();
    if (!isLatest()) return;
    this.#listed = [];
    this.#append(page);
    this.filter.offer(page);
    const isNarrowed = this.part("search").value.trim() || this.filter.isOn;
    this.part("empty").hidden = page.data.length > 0;
    this.part("empty").textContent = phrase(isNarrowed ? "voices.none" : this.#view === "favourites" ? "voices.noFavourites" : "voices.empty");
  }

  async #more() {
    const isOfList = this.#lists.join();
    const page = await this.#find(this.#last);
    if (isOfList()) this.#append(page);
  }

  #append({ data, has_more: hasMore, last_id: last }) {
    this.#listed = [...this.#listed, ...data];
    setChildren(this.part("list"), this.#cards.of(this.#listed, (voice, before) => this.#sameCard(voice, before)));
    this.#last = last;
    this.part("more").hidden = !hasMore;
    this.#mark(this.inspector.shown);
  }

  #mark(id) {
    for (const card of this.part("list").children) card.toggleAttribute("data-chosen", card.dataset.id === id);
  }

  #arrow(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const card = event.target.closest(".card");
    if (!by || !card) return;
    event.preventDefault();
    const next = by > 0 ? card.nextElementSibling : card.previousElementSibling;
    next?.querySelector(".card-open").focus();
  }

  async #restore(voice) {
    await restore("voice", [voice.id]);
    await this.#changed();
  }

  /** Reuse the existing card if its content is unchanged. */
  #sameCard(voice, before) {
    const content = JSON.stringify(voice);
    if (this.#shown.get(before) === content) return before;
    const card = this.#card(voice);
    this.#shown.set(card, content);
    return card;
  }

  #card(voice) {
    const facts = [genderOf(voice), worded(voice.accent) || voice.language, traitsOf(voice) || voice.description, sharingWords(voice)].filter(Boolean).join(" · ");
    const open = element("button", { type: "button", className: "card-open", onclick: () => this.#inspect(voice.id) }, [
      element("strong", { textContent: voice.name }), " ",
      element("span", { className: "quiet", textContent: facts, title: descriptionOf(voice) || facts }),
    ]);
    const listen = element("button", { type: "button", className: "card-listen" }, [initialOf(voice), icon(PLAY)]);
    listen.onclick = () => this.#do(() => this.playButtons.press(listen, new Recorded({ name: phrase("speak.voice.recording", { name: voice.name }), source: previewAddress(voice.id) })));
    const star = element("button", { type: "button", className: "card-star" }, [icon(STAR)]);
    star.setAttribute("aria-pressed", String(voice.favourite));
    star.onclick = () => this.#do(() => this.#favour(voice));
    const use = element("button", { type: "button", className: "card-use", textContent: phrase("voices.use") });
    use.onclick = () => this.dispatchEvent(new CustomEvent("choose", { detail: { id: voice.slug } }));
    use.setAttribute("aria-label", phrase("voices.use.label", { name: voice.name }));
    const card = element("li", { className: "card" }, [
      labelled(listen, phrase("voices.listen", { name: voice.name })),
      open,
      labelled(star, phrase("voices.favourite", { name: voice.name })),
      use,
    ]);
    card.dataset.id = voice.id;
    return card;
  }

  async #favour(voice) {
    await changeVoice(voice.id, { favourite: !voice.favourite });
    await this.#changed();
  }

  async #inspect(id) {
    this.#isSame = false;
    await this.#do(() => this.inspector.show(id));
    this.#mark(this.inspector.shown);
  }

  #about(detail) {
    this.dispatchEvent(new CustomEvent("about", { detail }));
  }
}
