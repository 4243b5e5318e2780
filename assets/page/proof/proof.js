// The "Check the audio" panel of a project: progress, figures, and doubtful spots with single-key actions.

import { acceptSpot, cancelProof, changePart, improvePart, readProof, readSpots, reportAddress, startProof } from "../client/projects.js";
import { Refusal } from "../client/refusal.js";
import { element, redrawWhenLeft, setChildren } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { once } from "../lib/once.js";
import { numeral, phrase } from "../lib/phrases.js";
import { duration } from "../lib/time.js";
import { isSingleKey } from "../lib/typing.js";
import { RecogniserOffer } from "../new-voice/recogniser-offer.js";
import { offerUndo } from "../trash/undo-toast.js";
import { ListeningNote } from "./listening-note.js";
import { SpotRow } from "./spot-row.js";

const AGAIN = 1000; // ms between two reads while the check runs
const GROWING = 3000; // ms, while parts are generated, which the figures count
const BEFORE = 0.5; // s of audio played before a spot
const MOST = 100; // spots shown at once; others follow as these are resolved

/**
 * Mount the panel of a project's check.
 *
 * @param {HTMLElement} container
 * @param {any} project as passed by panels.js
 */
export function mountProof(container, project) {
  const proof = new Proof(project);
  proof.addEventListener("changed", () => project.changed());
  new ListeningNote(project).addEventListener("saved", () => proof.look());
  container.replaceChildren(proof.element);
  return { open: () => proof.open(), close: () => proof.close(), refresh: redrawWhenLeft(proof.list, () => proof.look(), project.signal) };
}

/** Add `element` to the page. Fires "changed" when a part has another take. */
export class Proof extends EventTarget {
  #rows = new Map(); // by spot id
  #current = ""; // id of the current spot
  #looks = new Latest();
  #timer = 0;
  #isOpen = false;
  /** @type {any} */
  #last = null; // the state read last

  /** @param {{ id: string, playback: import("../longform/playback.js").Playback, signal: AbortSignal, project: () => any }} context signal: aborted when the project is left; project: as last returned by the API */
  constructor({ id, playback, signal, project }) {
    super();
    const { nowPlaying } = playback;
    this.id = id;
    this.playback = playback;
    this.nowPlaying = nowPlaying;
    this.signal = signal;
    this.project = project;
    this.offer = new RecogniserOffer();
    this.offer.addEventListener("ready", () => this.look());
    this.start = element("button", { type: "button", className: "plain long-main", onclick: once(() => this.#start()) });
    this.cancel = element("button", { type: "button", className: "plain", textContent: phrase("longform.cancel"), hidden: true, onclick: once(() => this.#do(() => cancelProof(id))) });
    this.progress = element("progress", { max: 1, value: 0, hidden: true });
    this.progress.setAttribute("aria-label", phrase("proof.progress"));
    this.about = element("p", { className: "quiet", textContent: phrase("proof.about") });
    this.state = element("p", { className: "quiet", tabIndex: -1 });
    this.state.setAttribute("role", "status");
    const link = (format, words) => element("a", { href: reportAddress(id, format), download: "", textContent: words });
    this.reports = element("p", { className: "quiet long-exports", hidden: true }, [phrase("proof.report"), link("csv", "CSV"), link("json", "JSON"), link("txt", phrase("proof.report.text"))]);
    this.keys = element("p", { className: "quiet", textContent: phrase("proof.keys"), hidden: true });
    this.list = element("ol");
    this.list.setAttribute("aria-label", phrase("proof.spots"));
    document.addEventListener("keydown", (event) => this.#press(event), { signal, capture: true }); // before Space plays the last track
    this.bar = element("div", { className: "long-bar" }, [this.start, this.cancel, this.progress]);
    this.element = element("div", { className: "proof long-finish" }, [this.about, this.bar, this.offer.element, this.state, this.keys, this.list, this.reports]);
    nowPlaying.addEventListener("state", () => this.#showPlaying(), { signal });
    nowPlaying.addEventListener("show", () => this.#showPlaying(), { signal });
    signal.addEventListener("abort", () => this.#leave());
  }

  open() {
    this.#isOpen = true;
    this.offer.open();
    return this.look();
  }

  close() {
    this.#isOpen = false;
    this.offer.close();
  }

  #leave() {
    this.#looks.end();
    clearTimeout(this.#timer);
  }

  /** Read and show the state and the spots, now and at intervals. */
  async look() {
    clearTimeout(this.#timer);
    const isLatest = this.#looks.begin();
    try {
      const [now, spots] = await Promise.all([readProof(this.id), readSpots(this.id, MOST)]);
      if (!isLatest() || this.signal.aborted) return;
      this.#show(now);
      this.#showSpots(spots);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      if (isLatest()) this.state.textContent = problem.why;
    }
    const wait = this.#isUnderWay ? AGAIN : this.project()?.state === "running" ? GROWING : 0;
    if (wait && this.#isOpen && !this.signal.aborted) this.#timer = setTimeout(() => this.look(), wait);
  }

  /** The focus goes to the result, which Space then plays, as the button goes. */
  #start() {
    this.state.focus();
    return this.#do(() => startProof(this.id));
  }

  get #isUnderWay() {
    return this.#last?.state === "waiting" || this.#last?.state === "running";
  }

  async #do(work) {
    let why = "";
    try {
      await work();
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      why = problem.why;
    }
    await this.look();
    if (why) this.state.textContent = why;
  }

  #show(now) {
    this.#last = now;
    const { parts, recogniser } = now;
    const checked = recogniser ? now.compared : now.checked; // parts checked by sound alone are checked again
    this.offer.isNeeded = !recogniser;
    const isDone = checked >= parts;
    this.start.textContent = checked && !isDone ? phrase("proof.continue", { count: parts - checked }) : phrase("proof.start");
    this.start.hidden = this.#isUnderWay || (isDone && parts > 0);
    this.start.disabled = !parts;
    this.cancel.hidden = this.progress.hidden = !this.#isUnderWay;
    this.bar.hidden = this.start.hidden && this.cancel.hidden;
    this.progress.value = parts ? checked / parts : 0;
    this.reports.hidden = !now.checked;
    this.about.hidden = checked > 0;
    this.about.textContent = phrase(recogniser ? "proof.about" : "proof.about.sound");
    const words = this.#words(now, checked);
    if (this.state.textContent !== words) this.state.textContent = words;
  }

  #words({ state, error, parts, compared, seconds, spots, wrong_per_1000: share, changed, eta_s: eta }, checked) {
    const outdated = changed ? phrase("proof.changed", { count: changed }) : "";
    if (!parts) return outdated || phrase("proof.nothing");
    const facts = [phrase("proof.checked", { checked, count: parts }), checked ? duration(seconds) : ""];
    const count = Object.values(spots).reduce((sum, some) => sum + some, 0);
    if (checked) facts.push(count ? phrase("proof.found", { count }) : phrase("proof.none"));
    if (compared < checked) facts.push(phrase("proof.sound"));
    if (share !== null) facts.push(phrase("proof.wrong", { share: numeral(share, 1) }));
    if (eta !== null) facts.push(phrase("longform.left", { duration: duration(eta) }));
    const words = [facts.filter(Boolean).join(" · "), outdated].filter(Boolean).join(". ");
    return state === "failed" && error ? `${phrase("proof.failed", { why: error })} ${words}` : words;
  }

  #showSpots({ data }) {
    const shown = new Map(data.map((spot) => [spot.id, this.#rows.get(spot.id) ?? this.#row(spot.id)]));
    for (const spot of data) shown.get(spot.id).show(spot);
    const before = [...this.#rows.keys()];
    if (!shown.has(this.#current)) this.#current = before.slice(before.indexOf(this.#current) + 1).find((id) => shown.has(id)) ?? data[0]?.id ?? "";
    const hadFocus = this.list.contains(document.activeElement);
    setChildren(this.list, [...shown.values()].map((row) => row.element));
    this.#rows = shown;
    this.keys.hidden = !data.length;
    this.#markCurrent();
    if (hadFocus && !this.list.contains(document.activeElement)) this.#rows.get(this.#current)?.element.focus();
    this.#showPlaying();
  }

  #row(id) {
    const row = new SpotRow();
    row.addEventListener("play", () => this.#do(() => this.#play(row)));
    row.addEventListener("regenerate", () => this.#regenerate(row));
    row.addEventListener("accept", once(() => this.#accept(row)));
    row.element.addEventListener("focusin", () => {
      this.#current = id;
      this.#markCurrent();
    });
    return row;
  }

  #markCurrent() {
    for (const [id, row] of this.#rows) row.isCurrent = id === this.#current;
  }

  #isHeard({ spot }) {
    return this.nowPlaying.current?.of?.take === spot.take && this.nowPlaying.isPlaying;
  }

  #showPlaying() {
    for (const row of this.#rows.values()) row.isPlaying = this.#isHeard(row);
  }

  async #play(row) {
    if (this.#isHeard(row)) return this.nowPlaying.pause();
    const { take, part, position, start } = row.spot;
    this.nowPlaying.player.wake();
    const track = this.playback.track({ part, position, take });
    await this.nowPlaying.play(track, Math.max(0, start - BEFORE));
  }

  async #regenerate(row) {
    if (row.isUnderWay || row.regenerate.hidden) return;
    if (row.element.contains(document.activeElement)) row.element.focus(); // its button is about to be disabled
    row.isUnderWay = true;
    try {
      const { part, take, position } = row.spot;
      const { replaced, tries, part: { chosen } } = await improvePart(this.id, part);
      row.say(phrase(replaced ? "proof.replaced" : "proof.kept", { count: tries }));
      if (replaced) offerUndo(phrase("part.regenerated", { number: position + 1 }), () => changePart(this.id, part, { take, take_before: chosen }).then(() => this.#changed()), false);
      await this.#changed();
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      row.say(problem.why);
    } finally {
      row.isUnderWay = false;
    }
  }

  #changed() {
    this.dispatchEvent(new CustomEvent("changed"));
    return this.look();
  }

  async #accept({ spot }) {
    /** @type {any} */
    let accepted = null;
    await this.#do(async () => (accepted = await acceptSpot(this.id, spot.id, true)));
    const isLast = !this.#rows.size; // otherwise the next spot has the focus
    if (accepted) offerUndo(phrase("proof.accepted"), () => acceptSpot(this.id, spot.id, false, accepted.acceptance).finally(() => this.look()), isLast);
  }

  /** Handle keys while the list is visible, wherever the focus is: J and K go to the next and previous spot. */
  #press(event) {
    const key = event.key.toLowerCase();
    const row = this.#rows.get(this.#current);
    if (!row || !isSingleKey(event) || !this.list.checkVisibility()) return;
    const ids = [...this.#rows.keys()];
    const beside = { j: 1, k: -1 }[key];
    const action = { " ": "play", r: "regenerate", a: "accept" }[key];
    if (!beside && (!action || event.repeat || (action === "play" && !this.#isPlayKey(event.target)))) return;
    event.preventDefault();
    event.stopPropagation();
    if (beside) this.#rows.get(ids[ids.indexOf(this.#current) + beside])?.element.focus();
    else if (!row.element.contains(document.activeElement)) row.element.focus();
    if (action) row.dispatchEvent(new CustomEvent(action));
  }

  /** Whether Space plays the spot: it still clicks a focused button, and outside the list pauses or resumes the player. */
  #isPlayKey(target) {
    const { current, isOver } = this.nowPlaying;
    const isElsewhere = target === document.body || target === this.state;
    return isElsewhere ? !current || isOver : target.parentElement === this.list;
  }
}
