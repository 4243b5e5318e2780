// Lets the next track of a row follow the current one without a gap; a track that was missing from the row is taken up when its turn comes.

import { Refusal } from "../client/refusal.js";

/**
 * Tracks in a row; isPlayedOn: the next one plays automatically; chapters: each with the number of its first track; renew: returns
 * the row with the tracks that are there by now, and the given one. Throws Refusal.
 *
 * @typedef {{ tracks: any[], isPlayedOn: boolean, chapters?: { words: string, at: number }[], renew?: (track: any) => Promise<Row> }} Row
 */

/** Whether tracks may be there by the end of this one that the row does not have yet. @param {Row} row @param {any} track */
export function hasGap({ tracks, renew }, track) {
  return renew !== undefined && tracks[tracks.indexOf(track) + 1]?.of.position !== track.of.position + 1;
}

/** Return the row, with what it lacks after a track and is there by now; without, if that cannot be read. @param {Row} row @param {any} track */
export async function renewed(row, track) {
  try {
    return hasGap(row, track) ? ((await row.renew?.(track)) ?? row) : row;
  } catch (problem) {
    if (!(problem instanceof Refusal)) throw problem;
    return row;
  }
}

/** @type {Row} */
export const NO_ROW = { tracks: [], isPlayedOn: false };

/** The track after (1) or before (-1) another one, if any. @param {Row} row @param {any} track @param {number} by */
export const beside = ({ tracks }, track, by) => tracks[tracks.indexOf(track) + by] ?? null;

/** Whether the chapter, or the row, ends with a track. @param {Row} row @param {any} track */
export const endsChapter = (row, track) => !beside(row, track, 1) || (row.chapters ?? []).some(({ at }) => at === row.tracks.indexOf(track) + 1);

export class NextTrack {
  /** The track that will begin by itself. @type {{ track: import("./track.js").Track, sound: import("./player.js").Sound } | null} */
  ready = null;
  /** @type {import("./track.js").Track | null} */
  #loaded = null;

  /** @param {import("./player.js").Player} player */
  constructor(player) {
    this.player = player;
  }

  /**
   * Load a track and let it follow the current one, if it can; isWanted: whether it still should.
   *
   * @param {import("./track.js").Track} current
   * @param {import("./track.js").Track} next
   * @param {() => boolean} isWanted
   */
  async prepare(current, next, isWanted) {
    this.#loaded = next;
    try {
      await next.load();
      if (!isWanted() || next.sampleRate !== current.sampleRate || !current.file) return; // it is opened at the end
      const samples = await next.heard();
      const sound = isWanted() ? await this.player.follow(next.sampleRate, samples) : null;
      if (!sound) return;
      if (isWanted()) this.ready = { track: next, sound };
      else this.player.endAfter();
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem; // reported when it is played
    }
  }

  /** Another track is played: release what was loaded, unless it is that one. @param {import("./track.js").Track} track */
  leave(track) {
    if (this.#loaded !== track) this.#loaded?.leave();
    this.#loaded = this.ready = null;
  }

  /** End with the current track. */
  end() {
    if (this.ready) this.player.endAfter();
  }
}
