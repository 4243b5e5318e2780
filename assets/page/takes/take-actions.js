// What can be done with the takes of a list: hear them, use their settings, make them anew, see them as a program.

import { fileOf } from "../client/sound.js";
import { requestSpeech } from "../client/speech.js";
import { mendTake, soundAddress, takeRecord } from "../client/takes.js";
import { Latest } from "../lib/latest.js";
import { Refusal } from "../client/refusal.js";
import { phrase } from "../lib/phrases.js";
import { Take } from "./take.js";

const LEAD = 1; // seconds that are heard before a sentence that was spoken again
const READ = 60_000; // ms that the browser may take to read a file after the press

function saveFile(href, name) {
  Object.assign(document.createElement("a"), { href, download: name }).click();
}

export class TakeActions {
  #uses = new Latest();

  constructor({ tabs, errorCard, scriptUndo, code, fields, list, preferences, speaking, nowPlaying, history }) {
    this.tabs = tabs;
    this.errorCard = errorCard;
    this.scriptUndo = scriptUndo;
    this.code = code;
    this.fields = fields;
    this.list = list;
    this.preferences = preferences;
    this.speaking = speaking;
    this.nowPlaying = nowPlaying;
    this.history = history;
  }

  /** Do what a list of takes asks for. */
  serve(list) {
    const on = (type, does) => list.addEventListener(type, ({ detail }) => this.errorCard.attempt(() => does(detail.take)));
    on("play", (take) => (this.#isHeard(take) ? this.nowPlaying.playOrPause() : this.play(take)));
    on("switch", (take) => this.play(take, this.nowPlaying.current?.file ? this.nowPlaying.position : 0));
    on("reuse", (take) => this.#reuse(take));
    on("keepSeed", (take) => this.fields.fill({ seed: Number(take.seed) }));
    on("again", (take) => this.#again(take));
    on("continue", (take) => this.#continue(take));
    on("convert", (take) => this.#convert(take));
    on("code", (take) => this.#showCode(take));
    list.addEventListener("fail", ({ detail }) => this.errorCard.tell(detail.problem));
    for (const type of ["show", "state"]) this.nowPlaying.addEventListener(type, ({ detail }) => list.select(detail.take, this.nowPlaying.isPlaying));
  }

  /** Whether the player holds it, whole, and is not over: a press pauses it, or has it go on. */
  #isHeard({ id }) {
    const { current, isOver } = this.nowPlaying;
    return current?.file && !isOver && current.id === id;
  }

  /** Do what the text of a take asks for, and say there what came of it. */
  mendFrom(text) {
    const on = (type, does) =>
      text.addEventListener(type, async ({ detail }) => {
        try {
          await does(detail, text.tools);
        } catch (problem) {
          if (!(problem instanceof Refusal)) throw problem;
          text.tools.say(problem.why, problem.isLost);
        }
      });
    on("mend", (detail, tools) => this.#mend(detail, tools));
    on("before", ({ take }, tools) => this.#playBefore(take, tools));
  }

  /** Have sentences of a take spoken again; the take that it makes is heard from a little before them. */
  async #mend({ take, start, end, from }, tools) {
    tools.isBusy = true;
    tools.say(phrase("player.mending"));
    try {
      const record = await mendTake(take.id, start, end);
      const made = Take.of(record, { number: (this.speaking.takes += 1), voiceName: take.voiceName });
      this.list.add(made);
      this.history.put(record);
      if (this.nowPlaying.current !== take) return; // something else is heard by now
      tools.say("");
      await this.play(made, Math.max(0, from - LEAD));
    } finally {
      tools.isBusy = false;
    }
  }

  /** Hear the take of which a sentence was spoken again, at the same place. */
  async #playBefore(take, tools) {
    const known = this.list.find(take.mends) ?? (await takeRecord(take.mends));
    if (!known) return tools.say(phrase("player.before.gone"));
    await this.play(known instanceof Take ? known : Take.of(known), this.nowPlaying.isOver ? 0 : this.nowPlaying.position);
  }

  play(take, from = 0) {
    this.speaking.stop();
    return this.nowPlaying.play(take, from);
  }

  /** Have all of a take; false if another one is to be used by then. */
  async #whole(take) {
    const isLatest = this.#uses.begin();
    await take.whole();
    return isLatest();
  }

  /** Put its script and settings back into the fields. */
  async #reuse(take) {
    if (await this.#whole(take)) await this.use(take);
  }

  /** As Reuse, of a take whose settings are here. Raises Refusal. */
  async use({ request, settings }) {
    this.tabs.show("studio");
    await this.scriptUndo.replace(request, settings);
  }

  async #again(take) {
    if (!(await this.#whole(take))) return;
    this.tabs.show("studio");
    await this.speaking.again(take);
  }

  async #continue(take) {
    if (!(await this.#whole(take))) return;
    this.tabs.show("studio");
    await this.speaking.rest(take);
  }

  /** The server converts what it keeps; else the same seed gives the same speech once more. */
  async #convert(take) {
    const { format } = this.preferences.values;
    const name = take.fileName.replace(/wav$/, format);
    if (this.list.keeps) return saveFile(soundAddress(take.id, format), name);
    const response = await requestSpeech({ ...take.repeat, response_format: format });
    const url = URL.createObjectURL(await fileOf(response));
    saveFile(url, name);
    setTimeout(() => URL.revokeObjectURL(url), READ);
  }

  async #showCode(take) {
    if (await this.#whole(take)) this.code.open(phrase("takes.code.of", { name: take.name }), take.repeat);
  }
}
