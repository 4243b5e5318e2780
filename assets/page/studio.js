// The page's conductor: fields and keys in, request out, sound to the player, words to the dock. Nothing goes through Gradio.

import { askForSpeech, health, lostConnection, Refusal, takeRecord } from "./door.js";
import { clock, Dock, Outline } from "./dock.js";
import { Fields } from "./fields.js";
import { Player } from "./player.js";
import { buildRequest, expectedSeconds } from "./request.js";
import { ScriptTools } from "./script.js";
import { Take, TakeList } from "./takes.js";
import { floats, readWav } from "./wav.js";

const S2_FRAME_RATE = 44100 / 2048; // frames a second
const [POLL_BUSY, POLL_IDLE] = [800, 5000]; // ms

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

function milliseconds(headers, name) {
  const value = headers.get(name);
  return value === null ? null : Number(value);
}

class Studio {
  player = new Player();
  fields = new Fields();
  takes = 0;
  current = null; // the take in the player
  speaking = null; // the AbortController of the take being made
  health = { status: "connecting" };
  heard = { rendered: 0, underruns: 0 };
  #pressedAt = 0;
  #wakeWaiting = null;

  async start() {
    this.player.prepare();
    for (const press of ["pointerdown", "keydown"]) document.addEventListener(press, () => this.player.wake(), true);
    document.addEventListener("keydown", (event) => this.#key(event));
    this.dock = new Dock(await drawn("#dock"));
    this.list = new TakeList(await drawn("#takes"));
    this.card = await drawn("#card");
    this.card.querySelector("[data-part=close]").addEventListener("click", () => (this.card.hidden = true));
    const sampling = await drawn("#sampling-toggle");
    sampling.addEventListener("click", () => sampling.setAttribute("aria-expanded", sampling.getAttribute("aria-expanded") !== "true"));
    const speak = await drawn("#speak");
    speak.addEventListener("click", (event) => (this.#pressedAt = event.timeStamp), true);
    this.player.addEventListener("heard", ({ detail }) => this.#hear(detail));
    this.dock.addEventListener("press", () => this.#playOrPause());
    this.dock.addEventListener("seek", ({ detail }) => this.player.seek(detail.seconds * (this.current?.sampleRate ?? 0)));
    this.dock.addEventListener("volume", ({ detail }) => (this.player.volume = detail.value));
    this.list.addEventListener("play", ({ detail }) => this.#replay(detail.take));
    this.list.addEventListener("reuse", ({ detail }) => this.fields.fill(detail.take.settings));
    this.list.addEventListener("keepSeed", ({ detail }) => this.fields.fill({ seed: Number(detail.take.seed), keepSeed: true }));
    const script = new ScriptTools(await drawn("#script textarea"), await drawn("#script-tools"));
    this.fields.addEventListener("change", ({ detail }) => {
      script.longest = detail.values.longest;
      document.body.dataset.source = detail.values.source;
    });
    await drawn("#refill");
    await this.fields.restore();
    document.body.dataset.studio = "ready";
    this.#watchHealth();
  }

  /** Called by Gradio with the present values of the fields. */
  async speak(...values) {
    const fields = this.fields.named(values);
    this.stop();
    this.card.hidden = true;
    const control = new AbortController();
    this.speaking = control;
    document.body.dataset.speaking = "yes";
    this.#moveFocus("#speak", "#stop");
    try {
      const request = await buildRequest(fields, this.#frameRate());
      const take = new Take({ number: (this.takes += 1), request, voiceName: this.#voiceName(fields), settings: { ...fields } });
      await this.#untilReady(control.signal);
      await this.#make(take, control);
    } catch (problem) {
      if (problem.name !== "AbortError") this.#fail(problem);
    } finally {
      if (this.speaking === control) this.#rest();
    }
  }

  /** Leave the take being made: the server frees its place, what was received stays playable. */
  stop() {
    if (!this.speaking) return;
    this.speaking.abort();
    this.player.pause();
    this.dock.say("empty", "Stopped");
    this.#rest();
  }

  #rest() {
    this.speaking = null;
    delete document.body.dataset.speaking;
    this.#moveFocus("#stop", "#speak");
  }

  #moveFocus(from, to) {
    if (document.activeElement?.closest(from)) requestAnimationFrame(() => document.querySelector(to)?.focus());
  }

  async #make(take, control) {
    this.#show(take);
    this.dock.say("waiting", "Asking the engine …");
    const response = await askForSpeech(take.request, control.signal);
    take.id = response.headers.get("x-request-id");
    take.seed = response.headers.get("x-seed") ?? take.request.seed ?? "?";
    take.queueMs = milliseconds(response.headers, "x-queue-ms");
    take.serverMs = milliseconds(response.headers, "x-first-audio-ms");
    let ending = "stop";
    try {
      await this.#receive(take, response);
    } catch (problem) {
      ending = problem.name === "AbortError" ? "stopped" : "broken";
      throw problem.name === "AbortError" ? problem : lostConnection();
    } finally {
      if (take.samples) this.#keep(take, ending);
    }
    this.player.complete();
    await this.#askTheServer(take);
  }

  async #receive(take, response) {
    for await (const { sampleRate, pcm } of readWav(response)) {
      if (!take.sampleRate) {
        take.sampleRate = sampleRate;
        take.outline = new Outline(sampleRate);
        await this.player.open(sampleRate);
      }
      take.pieces.push(pcm);
      take.samples += pcm.length;
      take.outline.add(pcm);
      this.player.append(floats(pcm));
      if (this.current === take) this.dock.show({ bars: take.outline.bars, seconds: take.seconds });
    }
  }

  #keep(take, ending) {
    take.close(ending);
    this.list.add(take);
    if (ending !== "stop") this.player.complete();
    if (this.current !== take) return;
    this.list.select(take);
    this.dock.show({ expected: 0 });
    this.dock.offer(take.url, take.fileName);
    if (ending === "stopped") this.dock.say("paused", `Stopped after ${clock(take.seconds)}`);
  }

  /** The server's own word on how the take ended and how fast it was. */
  async #askTheServer(take) {
    const record = await takeRecord(take.id);
    if (!record) return;
    take.rtf = record.rtf;
    take.ending = record.finish_reason ?? take.ending;
    this.list.refresh(take);
    if (this.current === take) this.#showFigures(take);
  }

  /** Make a take the one that dock and player are about. */
  #show(take) {
    this.current = take;
    this.heard = { rendered: 0, underruns: 0 };
    this.list.select(take);
    this.dock.offer(take.url, take.fileName);
    const expected = take.file ? 0 : expectedSeconds(take.request.input);
    this.dock.show({ bars: take.outline?.bars ?? [], seconds: take.seconds, expected, position: 0 });
    this.#showFigures(take);
  }

  #showFigures(take) {
    const inMs = (value) => (value === null ? null : `${Math.round(value)} ms`);
    this.dock.figures([
      ["Waited", take.queueMs >= 1 ? inMs(take.queueMs) : null, "Time in the line before the engine took it, by the server's clock"],
      ["Server", inMs(take.serverMs), "From the request to the first sound, by the server's clock"],
      ["Heard", inMs(take.heardMs), "From your press to the first sample played, by this browser's clock"],
      ["RTF", take.rtf, "Seconds of work for one second of sound; below 1 is faster than speech"],
      ["Gaps", take.heardMs === null ? null : String(take.underruns), "Times the player ran out of sound and had to wait"],
      ["Seed", take.seed === null ? null : String(take.seed), "The number that repeats this take"],
    ]);
  }

  #hear({ firstSampleAt, position, rendered, underruns, state }) {
    const take = this.current;
    if (!take) return;
    this.heard = { rendered, underruns };
    const more = underruns > take.underruns;
    take.underruns = Math.max(underruns, take.underruns);
    if (firstSampleAt !== undefined && take.heardMs === null) take.heardMs = firstSampleAt - this.#pressedAt;
    if (firstSampleAt !== undefined || more) this.#showFigures(take);
    this.dock.show({ position: position / take.sampleRate });
    const words = {
      playing: take.file ? `Playing take ${take.number}` : "Speaking …",
      waiting: take.file ? undefined : "Waiting for more sound …",
      over: take.ending === "length" ? take.endingWords : `Take ${take.number}: ${take.endingWords.toLowerCase()}`,
    };
    this.dock.say(state, words[state]);
  }

  #playOrPause() {
    const playing = ["playing", "waiting"].includes(this.dock.element.dataset.state);
    if (playing) {
      this.player.pause();
      this.dock.say("paused", "Paused");
    } else {
      this.player.play();
      this.dock.say("waiting");
    }
  }

  async #replay(take) {
    this.stop();
    this.#show(take);
    await this.player.open(take.sampleRate);
    this.player.append(floats(await take.pcm()));
    this.player.complete();
    this.player.play();
  }

  #frameRate() {
    const { engine } = this.health;
    return engine ? engine.sample_rate / engine.frame_samples : S2_FRAME_RATE;
  }

  #voiceName(fields) {
    if (fields.source === "clip") return "Your clip";
    return document.querySelector("#voice input")?.value || fields.voice;
  }

  #key(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      document.querySelector("#speak").click();
    } else if (event.key === "Escape" && this.speaking) {
      this.stop();
    } else if (event.key === " " && event.target === document.body && this.current) {
      event.preventDefault();
      this.#playOrPause();
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

  /** Speak pressed during the warm-up waits here, and can be stopped. */
  async #untilReady(signal) {
    if (this.health.status !== "starting") return;
    this.dock.say("waiting", "The engine is warming up; your script is spoken as soon as it is ready.");
    await new Promise((resolve, reject) => {
      this.#wakeWaiting = resolve;
      signal.addEventListener("abort", () => reject(signal.reason));
    });
    this.#pressedAt = performance.now();
  }

  async #watchHealth() {
    this.health = await health();
    this.#showHealth(this.health);
    const starting = this.health.status === "starting";
    if (!starting) this.#wakeWaiting?.();
    const busy = starting || this.speaking || this.health.load?.running;
    setTimeout(() => this.#watchHealth(), busy ? POLL_BUSY : POLL_IDLE);
  }

  #showHealth({ status, doing, progress, error, engine, load }) {
    const pill = document.querySelector("#pill");
    const line = load?.waiting ? `, ${load.waiting} in line` : "";
    const busy = load?.running ? ` · ${load.running} speaking${line}` : "";
    const words = {
      starting: `Warming up ${Math.round((progress ?? 0) * 100)} %${doing ? ` · ${doing}` : ""}`,
      ready: `Ready · ${engine?.model} on ${engine?.device}${busy}`,
      failed: `Not running: ${error ?? "see the terminal"}`,
      unreachable: "The studio does not answer",
    };
    pill.dataset.status = status;
    const place = pill.querySelector("[data-part=words]");
    const text = words[status] ?? "Connecting …";
    if (place.textContent !== text) place.textContent = text;
  }
}

window.studio = new Studio();
window.studio.start();
