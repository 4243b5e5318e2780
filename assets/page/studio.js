// The page's conductor: presses and keys in, takes made, sound to the player, words to the dock. Nothing goes through Gradio.

import { Api } from "./api.js";
import { Areas } from "./areas.js";
import { Cast } from "./cast.js";
import { CodeDialog } from "./code.js";
import { Compare } from "./compare.js";
import { clock, Dock } from "./dock.js";
import { askForSpeech, isLent, Refusal } from "./door.js";
import { Fields } from "./fields.js";
import { Health } from "./health.js";
import { History } from "./history.js";
import { soundAddress } from "./kept.js";
import { LongForm } from "./longform.js";
import { makeTake } from "./maker.js";
import { Player } from "./player.js";
import { Preferences } from "./preferences.js";
import { offerPresets } from "./presets.js";
import { offerPreview } from "./preview.js";
import { Queue } from "./queue.js";
import { buildRequest, expectedSeconds } from "./request.js";
import { ScriptTools } from "./script.js";
import { Settings } from "./settings.js";
import { Take } from "./take.js";
import { TakeList } from "./takes.js";
import { openVoiceAreas } from "./voice-areas.js";
import { floats } from "./wav.js";

/** Wait for an element that Gradio has yet to draw. */
function drawn(selector) {
  const found = document.querySelector(selector);
  if (found) return Promise.resolve(found);
  return new Promise((resolve) => {
    const watch = new MutationObserver(() => {
      const element = document.querySelector(selector);
      if (!element) return;
      watch.disconnect();
      resolve(element);
    });
    watch.observe(document.documentElement, { childList: true, subtree: true });
  });
}

function saveFile(href, name) {
  Object.assign(document.createElement("a"), { href, download: name }).click();
}

class Studio {
  player = new Player();
  fields = new Fields();
  preferences = new Preferences();
  takes = 0;
  current = null; // the take in the player
  sound = null; // the player's hold on it
  heard = { rendered: 0, underruns: 0 };
  #making = null; // the AbortController of what is being made
  #pressedAt = 0;

  async start() {
    this.player.prepare();
    for (const press of ["pointerdown", "keydown"]) document.addEventListener(press, () => this.player.wake(), true);
    document.addEventListener("keydown", (event) => this.#key(event));
    this.player.addEventListener("heard", ({ detail }) => this.#hear(detail));
    this.#listenToDock(new Dock(await drawn("#dock")));
    this.list = new TakeList(await drawn("#takes"), () => (isLent ? null : this.preferences.values.format));
    this.#listenToTakes(this.list);
    this.health = new Health(await drawn("#pill"));
    this.health.addEventListener("change", ({ detail }) => this.#showLine(detail.health.load));
    this.card = await drawn("#card");
    this.card.querySelector("[data-part=close]").addEventListener("click", () => (this.card.hidden = true));
    const sampling = await drawn("#sampling-toggle");
    sampling.addEventListener("click", () => sampling.setAttribute("aria-expanded", sampling.getAttribute("aria-expanded") !== "true"));
    for (const button of ["#speak", "#speak-four"]) {
      (await drawn(button)).addEventListener("click", (event) => this.#press(event, button === "#speak-four" ? 4 : 1), true);
    }
    this.code = new CodeDialog(await drawn("#code"));
    offerPresets(await drawn("#presets"), this.fields);
    const preview = await drawn("#hear-voice");
    preview.hidden = isLent;
    if (!isLent) offerPreview(preview, this.fields);
    const script = new ScriptTools(await drawn("#script textarea"), await drawn("#script-tools"));
    this.cast = new Cast(await drawn("#cast"), script.area);
    this.cast.addEventListener("change", () => (script.note = this.cast.note));
    this.cast.refresh();
    this.fields.addEventListener("change", ({ detail }) => {
      script.cutAfter = detail.values.cutAfter;
      this.cast.read(detail.values.text);
      document.body.dataset.source = detail.values.source;
    });
    await this.#fillAreas();
    await this.#try(async () => (this.takes = await this.list.refill()));
    await drawn("#refill");
    await this.fields.restore(this.preferences.values.voice);
    document.body.dataset.studio = "ready";
  }

  /** Every area has its module; one with `open` and `close` is told when it is shown and left. */
  async #fillAreas() {
    const areas = (this.areas = new Areas(await drawn("#areas")));
    const { newVoice, voices: library, ownClip } = await openVoiceAreas({ fields: this.fields, health: this.health, areas, drawn });
    this.ownClip = ownClip;
    library.addEventListener("changed", () => this.cast.refresh());
    newVoice.addEventListener("saved", () => this.cast.refresh());
    const longform = new LongForm(await drawn("#area-longform"));
    longform.addEventListener("heard", () => this.sound?.pause());
    this.history = new History(await drawn("#area-history"));
    this.#listenToTakes(this.history);
    const shown = { "new-voice": newVoice, voices: library, longform, history: this.history, queue: new Queue(await drawn("#area-queue")) };
    shown.compare = this.#listenToCompare(new Compare(await drawn("#area-compare"), this.fields, this.health));
    shown.settings = new Settings(await drawn("#area-settings"), this.preferences);
    const request = async () => this.cast.dress(await buildRequest(this.fields.values, this.health.frameRate));
    new Api(await drawn("#area-api"), request).addEventListener("present", ({ detail }) => this.#showCode(request, detail.kind));
    let left = null;
    areas.addEventListener("show", ({ detail }) => {
      left?.close();
      left = shown[detail.area] ?? null;
      left?.open();
    });
    areas.start();
  }

  #listenToDock(dock) {
    this.dock = dock;
    dock.addEventListener("press", () => this.#playOrPause());
    dock.addEventListener("seek", ({ detail }) => this.sound?.seek(detail.seconds));
    dock.addEventListener("volume", ({ detail }) => this.preferences.set({ volume: detail.value }));
    const follow = () => {
      dock.volume = this.player.volume = this.preferences.values.volume;
      this.player.fixedWait = this.preferences.wait;
    };
    this.preferences.addEventListener("change", follow);
    follow();
  }

  /** Its takes are heard in the player like all others, from their first sound on. */
  #listenToCompare(compare) {
    const on = (type, does) => compare.addEventListener(type, ({ detail }) => does(detail));
    on("play", ({ take, others }) => this.#replay(take, others.includes(this.current) && this.dock.element.dataset.state !== "over" ? this.position : 0));
    on("grown", ({ take }) => this.#grow(take));
    on("made", ({ take }) => this.current === take && this.#showMade(take));
    on("told", ({ take }) => this.current === take && this.#showMade(take));
    on("use", ({ changes }) => {
      this.fields.fill(changes);
      this.areas.show("studio");
    });
    return (this.compare = compare);
  }

  /** Takes of this browser's list and of the history are used in the same ways. */
  #listenToTakes(list) {
    const on = (type, does) => list.addEventListener(type, ({ detail }) => this.#try(() => does(detail.take)));
    on("play", (take) => this.#replay(take));
    on("switch", (take) => this.#replay(take, this.current?.file ? this.position : 0));
    on("reuse", (take) => this.#reuse(take));
    on("keepSeed", (take) => this.fields.fill({ seed: Number(take.seed), keepSeed: true }));
    on("again", (take) => this.#speakAgain(take));
    on("convert", (take) => this.#convert(take));
    on("code", (take) => this.#showTakesCode(take));
    list.addEventListener("fail", ({ detail }) => this.#fail(detail.problem));
  }

  async #try(work) {
    try {
      await work();
    } catch (problem) {
      this.#fail(problem);
    }
  }

  /** Put a take's script and settings back into the fields. */
  async #reuse(take) {
    await take.whole();
    this.areas.show("studio");
    this.cast.take(take.request);
    await this.fields.offerVoices(take.settings);
  }

  /** Make a take of the server anew, as it was. */
  async #speakAgain(take) {
    await take.whole();
    this.areas.show("studio");
    const { voiceName, settings, repeat } = take;
    await this.#speakAll({ ...this.fields.values, ...settings }, async () => [{ request: repeat, voiceName, settings }]);
  }

  async #showTakesCode(take) {
    await take.whole();
    this.code.open(`${take.name} as a program`, take.repeat);
  }

  /** Before Gradio hears of it: it would hold a press back, without a word, until the clip is uploaded. */
  #press(event, count) {
    this.#pressedAt = event.timeStamp;
    if (this.fields.values.source !== "clip" || !this.ownClip.isOnItsWay) return;
    event.stopImmediatePropagation();
    this.#speakAs({ ...this.fields.values }, count);
  }

  /** Called by Gradio with the present values of the fields: one take, or several at once with a seed each. */
  speak(values, count) {
    return this.#speakAs(this.fields.named(values), count);
  }

  #speakAs(fields, count) {
    const voiceName = fields.source === "clip" ? "Your clip" : document.querySelector("#voice input")?.value || fields.voice;
    return this.#speakAll(fields, async (asked) => {
      const request = this.cast.dress(asked);
      const isKept = request.seed !== undefined; // the first one's; the others' follow it
      return Array.from({ length: count }, (_, i) => ({
        request: isKept ? { ...request, seed: request.seed + i } : request,
        voiceName: request.cast ? "Dialogue" : voiceName,
        settings: { ...fields },
      }));
    });
  }

  /** Called by Gradio with the present values of the fields: the script in several voices, in the area for that. */
  compareVoices(values) {
    this.stop();
    this.fields.changed(...values);
    this.areas.show("compare");
    return this.compare.speakScript();
  }

  /** Make what `plan(request)` wants, at once; the first take is heard, all are kept. */
  async #speakAll(fields, plan) {
    this.stop();
    this.card.hidden = true;
    const control = new AbortController();
    this.#making = control;
    document.body.dataset.speaking = "yes";
    this.health.isWatched = true;
    this.#moveFocus("#desk button", "#stop");
    try {
      if (fields.source === "clip" && this.ownClip.isOnItsWay) {
        this.dock.say("waiting", "Your clip is on its way; your script is spoken as soon as it is here.");
        fields.clip = await this.ownClip.arrived(control.signal);
      }
      const wanted = await plan(await buildRequest(fields, this.health.frameRate));
      if (this.health.isStarting) await this.#untilStarted(control.signal);
      const takes = wanted.map((each) => new Take({ ...each, number: (this.takes += 1) }));
      const ends = await Promise.allSettled(takes.map((take, i) => this.#make(take, control.signal, i === 0)));
      const failure = ends.find((end) => end.status === "rejected");
      if (failure) throw failure.reason;
    } catch (problem) {
      if (problem.name !== "AbortError") this.#fail(problem);
    } finally {
      if (this.#making === control) this.#rest();
    }
  }

  async #make(take, signal, aloud) {
    let sound = null;
    if (aloud) {
      take.isLive = true;
      this.#show(take);
      this.dock.say("waiting", "Asking the engine …");
      this.health.look();
    }
    await makeTake(take, signal, {
      begun: () => aloud && this.health.look(),
      heard: async (pcm) => {
        if (!aloud) return;
        if (!sound) sound = this.sound = await this.player.open(take.sampleRate);
        sound.append(floats(pcm));
        if (this.current === take) this.dock.show({ bars: take.outline.bars, seconds: take.seconds });
      },
      kept: () => {
        sound?.complete();
        this.#keep(take);
      },
    });
    this.list.refresh(take);
    if (this.current === take) this.#showFigures(take);
  }

  #keep(take) {
    this.list.add(take);
    if (this.current !== take) return;
    this.list.select(take);
    this.dock.show({ expected: 0 });
    this.dock.offer(take.url, take.fileName);
    if (take.ending === "stopped") this.dock.say("paused", `Stopped after ${clock(take.seconds)}`);
  }

  /** Leave what is being made: the server frees its places, what was received stays playable. */
  stop() {
    if (!this.#making) return;
    this.#making.abort();
    this.sound?.pause();
    this.dock.say("empty", "Stopped");
    this.#rest();
  }

  #rest() {
    this.#making = null;
    delete document.body.dataset.speaking;
    this.health.isWatched = false;
    this.#moveFocus("#stop", "#speak");
    this.health.look();
  }

  #moveFocus(from, to) {
    if (document.activeElement?.closest(from)) requestAnimationFrame(() => document.querySelector(to)?.focus());
  }

  /** Speak pressed during the warm-up waits here, and can be stopped. */
  async #untilStarted(signal) {
    this.dock.say("waiting", "The engine is warming up; your script is spoken as soon as it is ready.");
    await this.health.started(signal);
    this.#pressedAt = performance.now();
  }

  /** Make a take the one that dock and player are about. */
  #show(take) {
    this.current = take;
    this.sound = null;
    this.position = 0;
    this.heard = { rendered: 0, underruns: 0 };
    for (const list of [this.list, this.history]) list.select(take);
    this.dock.offer(take.url, take.fileName);
    const expected = take.file ? 0 : expectedSeconds(take.request.input);
    this.dock.show({ bars: take.outline?.bars ?? [], seconds: take.seconds, expected, position: 0 });
    this.#showFigures(take);
  }

  /** While the take that shall be heard waits for a free place, say how many wait. */
  #showLine(load) {
    if (!this.#making || !this.current || this.current.id !== null || !load?.waiting) return;
    this.dock.say("waiting", `Every place is taken; in line: ${load.waiting}. Your take begins by itself.`);
  }

  #showFigures(take) {
    if (take.isBlind) return this.dock.figures([]);
    const inMs = (value) => (value === null ? null : `${Math.round(value)} ms`);
    this.dock.figures([
      ["Waited", take.queueMs >= 1 ? inMs(take.queueMs) : null, "Time in the line before the engine took it, by the server's clock"],
      ["Server", inMs(take.serverMs), "From the request to the first sound, by the server's clock"],
      ["Heard", inMs(take.heardMs), "From your press to the first sample played, by this browser's clock"],
      ["RTF", take.rtf, "Seconds of work for one second of sound; below 1 is faster than speech"],
      ["Gaps", take.heardMs === null ? null : String(take.underruns), "Times the player ran out of sound and had to wait"],
      ["Seed", take.seed, "The number that repeats this take"],
    ]);
  }

  #hear({ firstSampleAt, position, rendered, underruns, state, loudest }) {
    const take = this.current;
    if (!take) return;
    this.heard = { rendered, underruns };
    this.dock.level(state === "playing" ? loudest : 0);
    this.position = position / take.sampleRate;
    const more = underruns > take.underruns;
    take.underruns = Math.max(underruns, take.underruns);
    if (state === "over" && !take.isLearned) {
      take.isLearned = true;
      this.player.learn(take.underruns, take.rtf);
    }
    if (firstSampleAt !== undefined && take.isLive) take.heardMs ??= firstSampleAt - this.#pressedAt;
    if (firstSampleAt !== undefined || more) this.#showFigures(take);
    this.dock.show({ position: this.position });
    const words = {
      playing: take.file ? `Playing ${take.name}` : "Speaking …",
      waiting: take.file ? undefined : "Waiting for more sound …",
      over: take.ending === "length" ? take.endingWords : `${take.name}: ${take.endingWords.toLowerCase()}`,
    };
    this.dock.say(state, words[state]);
  }

  #playOrPause() {
    const playing = ["playing", "waiting"].includes(this.dock.element.dataset.state);
    if (playing) {
      this.sound?.pause();
      this.dock.say("paused", "Paused");
    } else {
      this.player.wake();
      this.sound?.play();
      this.dock.say("waiting");
    }
  }

  /** Play a take from a second on; one that is still being made goes on as it grows. */
  async #replay(take, from = 0) {
    this.stop();
    await take.load();
    take.isLive = false;
    this.#show(take);
    const sound = await this.player.open(take.sampleRate);
    sound.pause();
    if (take.file) {
      sound.append(floats(await take.pcm()));
      sound.complete();
      sound.seek(from < take.seconds ? from : 0);
    } else {
      for (const piece of take.pieces) sound.append(floats(piece)); // without a pause until it is the player's: none may be missed
      sound.seek(Math.min(from, take.seconds));
    }
    sound.play();
    if (this.current === take) this.sound = sound;
  }

  /** A take that somebody else makes has one piece more. */
  #grow(take) {
    if (this.current !== take) return;
    this.sound?.append(floats(take.pieces.at(-1)));
    this.dock.show({ bars: take.outline.bars, seconds: take.seconds });
  }

  /** The take in the player, made by somebody else, is complete, or may be named now. */
  #showMade(take) {
    this.sound?.complete();
    this.dock.show({ expected: 0 });
    this.dock.offer(take.url, take.fileName);
    this.#showFigures(take);
  }

  /** The server converts what it keeps; else the same seed gives the same speech once more. */
  async #convert(take) {
    const { format } = this.preferences.values;
    const name = take.fileName.replace(/wav$/, format);
    if (this.list.keeps) return saveFile(soundAddress(take.id, format), name);
    const response = await askForSpeech({ ...take.repeat, response_format: format });
    const url = URL.createObjectURL(await response.blob());
    saveFile(url, name);
    setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser reads it after the press
  }

  /** The page's present request as a program; what is missing is said as if Speak had been pressed. */
  async #showCode(request, kind) {
    try {
      this.code.open("This page's speech from your own program", await request(), "Without a seed, each run draws another.", kind);
    } catch (problem) {
      this.areas.show("studio"); // where the script is, and the card
      this.#fail(problem);
    }
  }

  #key(event) {
    const writing = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && this.areas.shown === "studio") {
      event.preventDefault();
      document.querySelector("#speak").click();
    } else if (event.key === "Escape" && this.#making) {
      this.stop();
    } else if (event.key === " " && event.target === document.body && this.current) {
      event.preventDefault();
      this.#playOrPause();
    } else if (event.key.toLowerCase() === "x" && !writing && !event.ctrlKey && !event.metaKey) {
      (this.areas.shown === "history" ? this.history : this.list).other(this.current);
    }
  }

  #fail(problem) {
    const known = problem instanceof Refusal;
    const refusal = known ? problem : { what: "The page failed.", why: String(problem.message ?? problem), advice: "Load the page again." };
    for (const part of ["what", "why", "advice"]) this.card.querySelector(`[data-part=${part}]`).textContent = refusal[part];
    this.card.hidden = false;
    this.dock.say(this.current?.file ? "over" : "empty", refusal.what);
    if (!known) throw problem;
  }
}

window.studio = new Studio();
window.studio.start();
