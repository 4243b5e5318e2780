// Actions for listed takes: play, save, continue and regenerate them, reuse their settings, show them as code.

import { seedOf } from "../client/requests.js";
import { fileOf } from "../client/sound.js";
import { requestSpeech } from "../client/speech.js";
import { soundAddress, wholeTake } from "../client/takes.js";
import { Latest } from "../lib/latest.js";
import { phrase } from "../lib/phrases.js";

const READ = 60_000; // ms for the browser to read a file after the click

function saveFile(href, name) {
  Object.assign(document.createElement("a"), { href, download: name }).click();
}

export class TakeActions {
  #uses = new Latest();

  constructor({ areas, errorCard, scriptReplacement, code, fields, list, speaking, nowPlaying }) {
    this.areas = areas;
    this.errorCard = errorCard;
    this.scriptReplacement = scriptReplacement;
    this.code = code;
    this.fields = fields;
    this.list = list;
    this.speaking = speaking;
    this.nowPlaying = nowPlaying;
    nowPlaying.addEventListener("save", ({ detail }) => errorCard.attempt(() => this.#save(detail.take, detail.format)));
  }

  /** Handle the events of a list of takes. */
  serve(list) {
    const on = (type, does) => list.addEventListener(type, ({ detail }) => this.errorCard.attempt(() => does(detail.take, detail.format)));
    on("play", (take) => (this.#isHeard(take) ? this.nowPlaying.playOrPause() : this.play(take)));
    on("switch", (take) => this.play(take, this.nowPlaying.current?.file ? this.nowPlaying.position : 0));
    on("reuse", (take) => this.#reuse(take));
    on("keepSeed", (take) => this.fields.fill({ seed: seedOf(take.seed) }));
    on("again", (take) => this.#again(take));
    on("continue", (take) => this.#continue(take));
    on("save", (take, format) => this.#save(take, format));
    on("code", (take) => this.#showCode(take));
    list.addEventListener("fail", ({ detail }) => this.errorCard.tell(detail.problem));
    for (const type of ["show", "state"]) this.nowPlaying.addEventListener(type, ({ detail }) => list.select(detail.take, this.nowPlaying.isPlaying));
  }

  /** Whether the complete take is in the player and has not ended: a click pauses or resumes it. */
  #isHeard({ id }) {
    const { current, isOver } = this.nowPlaying;
    return current?.file && !isOver && current.id === id;
  }

  play(take, from = 0) {
    this.speaking.stop();
    return this.nowPlaying.play(take, from);
  }

  /** Load the complete take. Return false if another one was chosen in the meantime. */
  async #whole(take) {
    const isLatest = this.#uses.begin();
    await take.whole();
    return isLatest();
  }

  /** Restore a take's script and settings to the fields. */
  async #reuse(take) {
    if (await this.#whole(take)) await this.use(take);
  }

  /** Reuse a take whose settings are loaded. Throws Refusal. */
  async use({ request, settings }) {
    this.areas.show("studio");
    await this.scriptReplacement.replace(request, settings);
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

  /** The server converts stored takes; otherwise, regenerate the same speech with the same seed. */
  async #save(take, format) {
    const name = take.fileName.replace(/wav$/, format);
    if (format === "wav" && take.url) return saveFile(take.url, name);
    if (this.list.keeps) {
      await wholeTake(take.id); // a browser does not say why a file could not be saved
      return saveFile(soundAddress(take.id, format), name);
    }
    const response = await requestSpeech({ ...take.repeat, response_format: format });
    const url = URL.createObjectURL(await fileOf(response));
    saveFile(url, name);
    setTimeout(() => URL.revokeObjectURL(url), READ);
  }

  async #showCode(take) {
    if (await this.#whole(take)) this.code.open(phrase("takes.code.of", { name: take.name }), take.repeat);
  }
}
