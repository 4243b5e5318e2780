// Plays a project, from one part or as a whole, and reports the part that is playing.

import { changePart, partSound, partTimes, readOutline, readPartIds, readTimeline, regeneratePart } from "../client/projects.js";
import { previewAddress } from "../client/voices.js";
import { Latest } from "../lib/latest.js";
import { phrase } from "../lib/phrases.js";
import { Recorded } from "../player/track.js";
import { stoppedAt } from "./stopped-at.js";
import { inARow } from "./timeline.js";

export class Playback {
  #plays = new Latest();

  /** id: of the project; changed(): called when a part's sentences were regenerated. */
  constructor(id, nowPlaying, changed) {
    this.isReadOnly = false;
    this.id = id;
    this.nowPlaying = nowPlaying;
    this.changed = changed;
  }

  /**
   * Play a part of the project, with the others as previous and next tracks; null: all parts with audio, one after the other, from where the listener stopped.
   * If it is playing already, pause or resume it. isPlayedOn: the parts after it follow. Throws Refusal.
   */
  async play(project, part, isPlayedOn = !part) {
    const isIt = !part || (this.heard?.part === part.id && this.heard.take === part.chosen);
    if (isIt && (isPlayedOn ? this.isPlayingAll : this.heard)) return this.nowPlaying.playOrPause();
    this.nowPlaying.player.wake();
    const isLatest = this.#plays.begin();
    const alone = (problem) => (part && problem.status === 409 ? null : Promise.reject(problem)); // the others cannot be played, such as after a change of the voice
    const whole = isPlayedOn && (await this.#rowOfAll(project).catch(alone));
    const placed = isPlayedOn ? [] : inARow((await readTimeline(this.id).catch(alone))?.parts ?? []);
    if (!isLatest()) return;
    if (whole && (!part || whole.tracks.some(({ of }) => of.take === part.chosen))) return this.#playAll(whole, part ? { part: part.id, seconds: 0 } : stoppedAt(this.id));
    const at = placed.findIndex(({ take }) => take === part.chosen);
    const one = this.track({ part: part.id, position: part.position, take: part.chosen }, project);
    const row = at < 0 ? [one] : placed.map((other) => this.track({ ...other, pause: 0 }, project)); // outdated audio is not in the timeline
    return this.nowPlaying.playRow(row, Math.max(at, 0), false);
  }

  /** Play all parts from a place in them, or else from the first. Throws Refusal. */
  #playAll(row, from) {
    const at = row.tracks.findIndex(({ of }) => of.part === from?.part);
    const next = at < 0 && from ? row.tracks.findIndex(({ of }) => of.position >= from.position) : at; // that part has no audio now
    return this.nowPlaying.play(row.tracks[Math.max(0, next)], at < 0 ? 0 : from.seconds, row);
  }

  /** Return the tracks of all parts with audio as a row that plays on, with a track that is playing already. Throws Refusal. */
  async #rowOfAll(project, playing = /** @type {any} */ (null)) {
    const [{ parts }, outline] = await Promise.all([readTimeline(this.id), readOutline(this.id)]);
    const tracks = inARow(parts).map((placed) => (placed.part === playing?.of.part ? playing : this.track(placed, project)));
    if (playing && !tracks.includes(playing)) tracks.splice(tracks.filter(({ of }) => of.position < playing.of.position).length, 0, playing);
    const chapters = outline.flatMap(({ title, position, parts: { total } }) => {
      const first = tracks.findIndex(({ of }) => of.position >= position && of.position < position + total);
      return first < 0 ? [] : [{ words: title || phrase("project.chapter.none"), at: first }];
    });
    return { tracks, isPlayedOn: true, chapters, renew: (track) => this.#rowOfAll(project, track) };
  }

  /** Play a voice's sample. Throws Refusal. */
  sample({ id, name }) {
    return this.nowPlaying.play(new Recorded({ name: phrase("speak.voice.recording", { name }), source: previewAddress(id) }));
  }

  /** Stop playing this project. */
  pause() {
    if (this.#isOurs) this.nowPlaying.pause();
  }

  /** {part, position, take} of the player's track, if it is from this project and has not ended. */
  get heard() {
    return this.#isOurs && !this.nowPlaying.isOver ? this.nowPlaying.current.of : null;
  }

  get isPlaying() {
    return this.nowPlaying.isPlaying;
  }

  /** Whether all parts are being played one after the other, even if paused. */
  get isPlayingAll() {
    return Boolean(this.heard) && this.nowPlaying.isPlayedOn;
  }

  get #isOurs() {
    const { current } = this.nowPlaying;
    return current instanceof Recorded && current.of?.project === this.id;
  }

  /**
   * Return a part's take as a track, named by the part's number; with project, also by the project's title.
   *
   * @param {{ part: string, position: number, take: string, pause?: number }} placed
   * @param {any} project as last returned by the API
   */
  track(placed, project = null) {
    const { part, position, take, pause = 0 } = placed;
    const of = { project: this.id, part, position, take, whole: project };
    return new Recorded({ name: () => nameOf(of), source: partSound(this.id, take), pause, of, times: partTimes(this.id, take), mayRegenerate: () => !this.isReadOnly, regenerate: (span) => this.#regenerate({ ...of, pause }, of.whole, span) });
  }

  /** Renumber the player's tracks after parts were added, deleted or moved, and learn whether the project may be edited. Throws Refusal. */
  async follow(project) {
    this.isReadOnly = project.right === "read";
    if (!this.#isOurs) return;
    const { part, position } = this.nowPlaying.current.of;
    const [there] = await readPartIds(this.id, "", position, 1);
    const places = there === part ? new Map() : new Map((await readPartIds(this.id, "", 0, project.parts.total)).map((id, at) => [id, at]));
    if (!this.#isOurs) return; // something else is playing by now
    const before = this.nowPlaying.current.name;
    for (const { of } of this.nowPlaying.tracks) {
      of.position = places.get(of.part) ?? of.position;
      of.whole &&= project;
    }
    this.nowPlaying.recover(before);
  }

  /** Throws Refusal. */
  async #regenerate(placed, project, span) {
    const { part, take } = placed;
    const { text } = span;
    const changed = await regeneratePart(this.id, part, text, span.start, span.end, span.replacement);
    this.changed();
    const undo = async () => {
      await changePart(this.id, part, { text, take, text_before: changed.text, take_before: changed.chosen }); // never what somebody else has written
      this.changed();
    };
    return { next: this.track({ ...placed, take: changed.chosen }, project), undo };
  }
}

function nameOf({ position, whole }) {
  const number = position + 1;
  return whole ? phrase("project.track", { title: whole.title, number, total: whole.parts.total }) : phrase("proof.part", { number });
}
