// Actions for the takes of a list: play them, reuse their settings, regenerate them, show them as code.

import { fileOf } from "../client/sound.js";
import { requestSpeech } from "../client/speech.js";
import { mendTake, soundAddress, takeRecord } from "../client/takes.js";
import { Latest } from "../lib/latest.js";
import { Refusal } from "../client/refusal.js";
import { phrase } from "../lib/phrases.js";
import { Take } from "./take.js";

const LEAD = 1; // seconds played before a regenerated sentence
const READ = 60_000; // ms that the browser may take to read a file after the press

function saveFile(href, name) {
  Object.assign(document.createElement("a"), { href, download: name }).click();
}

export class TakeActions {
  #uses = new Latest();

  constructor({ areas, errorCard, scriptUndo, code, fields, list, speaking, nowPlaying, history }) {
    this.areas = areas;
    this.errorCard = errorCard;
    this.scriptUndo = scriptUndo;
    this.code = code;
    this.fields = fields;
    this.list = list;
    this.speaking = speaking;
    this.nowPlaying = nowPlaying;
    this.history = history;
    nowPlaying.addEventListener("save", ({ detail }) => errorCard.attempt(() => this.#save(detail.take, detail.format)));
  }

  /** Handle the events of a list of takes. */
  serve(list) {
    const on = (type, does) => list.addEventListener(type, ({ detail }) => this.errorCard.attempt(() => does(detail.take, detail.format)));
    on("play", (take) => (this.#isHeard(take) ? this.nowPlaying.playOrPause() : this.play(take)));
    on("switch", (take) => this.play(take, this.nowPlaying.current?.file ? this.nowPlaying.position : 0));
    on("reuse", (take) => this.#reuse(take));
    on("keepSeed", (take) => this.fields.fill({ seed: Number(take.seed) }));
    on("again", (take) => this.#again(take));
    on("continue", (take) => this.#continue(take));
    on("save", (take, format) => this.#save(take, format));
    on("code", (take) => this.#showCode(take));
    list.addEventListener("fail", ({ detail }) => this.errorCard.tell(detail.problem));
    for (const type of ["show", "state"]) this.nowPlaying.addEventListener(type, ({ detail }) => list.select(detail.take, this.nowPlaying.isPlaying));
  }

  /** Whether the player holds the complete take and has not ended: a press pauses or resumes it. */
  #isHeard({ id }) {
    const { current, isOver } = this.nowPlaying;
    return current?.file && !isOver && current.id === id;
  }

  /** Handle the events of a take's text, and show the result there. */
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

  /** Regenerate sentences of a take, then play the new take from a little before them. */
  async #mend({ take, start, end, from }, tools) {
    tools.isBusy = true;
    tools.say(phrase("player.mending"));
    try {
      const record = await mendTake(take.id, start, end);
      const mended = Take.of(record, { number: (this.speaking.takes += 1), voiceName: take.voiceName });
      this.list.add(mended);
      this.history.put(record);
      if (this.nowPlaying.current !== take) return; // something else is playing by now
      tools.say("");
      await this.play(mended, Math.max(0, from - LEAD));
    } finally {
      tools.isBusy = false;
    }
  }

  /** Play the previous version at the same position. */
  async #playBefore(take, tools) {
    const known = this.list.find(take.mends) ?? (await takeRecord(take.mends));
    if (!known) return tools.say(phrase("player.before.gone"));
    await this.play(known instanceof Take ? known : Take.of(known), this.nowPlaying.isOver ? 0 : this.nowPlaying.position);
  }

  play(take, from = 0) {
    this.speaking.stop();
    return this.nowPlaying.play(take, from);
  }

  /** Load the complete take; false if another one was chosen meanwhile. */
  async #whole(take) {
    const isLatest = this.#uses.begin();
    await take.whole();
    return isLatest();
  }

  /** Put its script and settings back into the fields. */
  async #reuse(take) {
    if (await this.#whole(take)) await this.use(take);
  }

  /** Reuse a take whose settings are loaded. Raises Refusal. */
  async use({ request, settings }) {
    this.areas.show("studio");
    await this.scriptUndo.replace(request, settings);
  }

  async #again(take) {
    if (!(await this.#whole(take))) return;
    this.areas.show("studio");
    await this.speaking.again(take);
  }

  async #continue(take) {
    if (!(await this.#whole(take))) return;
    this.areas.show("studio");
    await this.speaking.rest(take);
  }

  /** The server converts stored takes; otherwise the same seed generates the same speech again. */
  async #save(take, format) {
    const name = take.fileName.replace(/wav$/, format);
    if (format === "wav") return saveFile(take.url ?? soundAddress(take.id), name);
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
