// The cast of a dialogue: its speakers and their voices.

import { isThroughGradio } from "../client/host.js";
import { Refusal } from "../client/refusal.js";
import { element, labelled, listBox, partsOf } from "../lib/elements.js";
import { keepByTab, keptByTab } from "../lib/by-tab.js";
import { plainVoice } from "../takes/take.js";
import { dealVoices, folded, speakers, voiceNamed } from "./dialogue.js";
import { phrase } from "../lib/phrases.js";

const STORE = "cast-1";
const RANDOM = "random"; // a different voice for each take

/** Fires "change" when the mode or a voice changes. */
export class Cast extends EventTarget {
  /** The id of the narrator's voice, for lines without a name. */
  narrator = "";
  #chosen = {}; // folded name: voice id
  #instead = {}; // likewise, while the chosen voice is gone: it may come back
  #isOn = false;
  #voices = [];
  #shown = "";
  #text = "";

  constructor(root, script) {
    super();
    this.part = partsOf(root);
    root.hidden = isThroughGradio; // such a host supports one voice per take
    this.#text = script.value;
    this.part("switch").addEventListener("click", () => this.#turn(!this.#isOn));
    script.addEventListener("input", () => this.read(script.value));
    this.#restore();
  }

  /** The library's voices. */
  set voices(listed) {
    this.#voices = listed;
    this.#shown = "";
    this.show();
  }

  /** Update the roles from the script. */
  read(text) {
    this.#text = text;
    this.show();
  }

  /** Whether the script is a dialogue. */
  get isOn() {
    return this.#isOn;
  }

  /** Return the request, with a cast if the script is a dialogue. Throws Refusal while no voices are available. */
  dress(request) {
    if (!this.#isOn) return request;
    const names = speakers(request.input);
    this.#deal(names);
    if (!names.every((name) => this.#voiceOf(name))) {
      throw new Refusal({
        what: phrase("speak.cast.none"),
        why: phrase("speak.cast.none.why"),
        advice: phrase("speak.cast.none.advice"),
      });
    }
    return { ...request, cast: Object.fromEntries(names.map((name) => [name, this.#voiceOf(name)])) };
  }

  /** Adopt the cast from an earlier take's request. */
  take({ cast }) {
    for (const [name, voice] of Object.entries(cast ?? {})) this.#chosen[folded(name)] = plainVoice(voice);
    this.#turn(cast !== undefined);
  }

  /** Whether the script is a dialogue, and the voices by name. */
  get state() {
    return { isOn: this.#isOn, chosen: { ...this.#chosen } };
  }

  set state({ isOn, chosen }) {
    this.#chosen = { ...chosen };
    this.#turn(isOn);
  }

  show() {
    const names = this.#isOn ? speakers(this.#text) : [];
    this.#deal(names);
    const look = JSON.stringify([names, this.#chosen, this.#isOn]);
    if (look === this.#shown) return;
    this.#shown = look;
    this.part("switch").setAttribute("aria-checked", String(this.#isOn));
    this.part("roles").hidden = names.length === 0;
    this.part("roles").replaceChildren(...names.map((name) => this.#role(name)));
    this.dispatchEvent(new CustomEvent("change"));
  }

  #turn(isOn) {
    this.#isOn = isOn;
    this.#keep();
    this.show();
  }

  /** Assign a voice to every name without one. */
  #deal(names) {
    const taken = names.map((name) => this.#voiceOf(name)).filter(Boolean);
    const lacking = names.filter((name) => !this.#voiceOf(name));
    if (!lacking.length) return;
    const dealt = dealVoices(lacking, this.#voices.filter(({ id }) => id !== RANDOM), taken, this.narrator);
    for (const [name, id] of dealt) if (id) (folded(name) in this.#chosen ? this.#instead : this.#chosen)[folded(name)] = id;
    this.#keep();
  }

  #voiceOf(name) {
    const key = folded(name);
    const known = [this.#chosen[key], this.#instead[key]].find((wanted) => this.#voices.some(({ id }) => id === wanted));
    return known ?? voiceNamed(name, this.#voices);
  }

  #role(name) {
    const select = labelled(listBox(this.#voices.map(({ id, name: words }) => [id, words])), phrase("speak.cast.voice", { name }));
    select.choose(this.#voiceOf(name));
    select.addEventListener("change", () => {
      this.#chosen[folded(name)] = select.value;
      this.#keep();
      this.show();
      [...this.part("roles").querySelectorAll("label")].find((label) => label.dataset.name === name)?.querySelector("select").focus();
    });
    const label = element("label", {}, [element("span", { textContent: name, title: name }), select]);
    label.dataset.name = name;
    return label;
  }

  #keep() {
    keepByTab(STORE, { isOn: this.#isOn, chosen: this.#chosen });
  }

  #restore() {
    const kept = keptByTab(STORE, {});
    this.#chosen = { ...kept.chosen };
    this.#isOn = kept.isOn === true && !isThroughGradio;
  }
}
