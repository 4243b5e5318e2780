// The votes of comparisons: stores the rounds in this browser and shows a table of their totals.

import { element } from "../lib/elements.js";
import { keep, kept } from "../lib/storage.js";
import { numeral, phrase } from "../lib/phrases.js";
import { offerUndo } from "../trash/undo-toast.js";

const STORE = "votes-1";
const ROUNDS = 200; // the newest, to be stored

/** rounds: [{id, votes: [{label, score, best}]}], score 1 to 5 or null. Returns [{label, mean, best, votes, rounds}], the leader first. */
export function tally(rounds) {
  const entries = new Map();
  for (const { label, score, best } of rounds.flatMap((round) => round.votes)) {
    const entry = entries.get(label) ?? { label, sum: 0, best: 0, votes: 0, rounds: 0 };
    entry.rounds += 1;
    entry.best += best ? 1 : 0;
    if (score !== null) Object.assign(entry, { sum: entry.sum + score, votes: entry.votes + 1 });
    entries.set(label, entry);
  }
  return [...entries.values()]
    .map(({ sum, ...entry }) => ({ ...entry, mean: entry.votes ? sum / entry.votes : null }))
    .sort((a, b) => b.best - a.best || (b.mean ?? 0) - (a.mean ?? 0));
}

export class Votes {
  /** As stored now, with the rounds of other tabs. */
  get #rounds() {
    return kept(STORE, []);
  }

  constructor(root) {
    this.root = root;
    this.rows = root.querySelector("[data-part=tally]");
    root.querySelector("[data-part=forget]").addEventListener("click", () => {
      const rounds = this.#rounds;
      this.#set([]);
      offerUndo(phrase("trash.deleted", { title: phrase("compare.results") }), () => this.#set([...rounds, ...this.#rounds.filter(({ id }) => !rounds.some((round) => round.id === id))].slice(-ROUNDS)));
    });
    this.#draw();
  }

  /** Count a round, or count it again after further votes. A round without votes does not count. */
  put(round) {
    const others = this.#rounds.filter(({ id }) => id !== round.id);
    const isVoted = round.votes.some(({ score, best }) => score !== null || best);
    this.#set(isVoted ? [...others, round].slice(-ROUNDS) : others);
  }

  #set(rounds) {
    keep(STORE, rounds);
    this.#draw();
  }

  #draw() {
    const all = this.#rounds;
    this.root.hidden = all.length === 0;
    this.rows.replaceChildren(
      ...tally(all).map(({ label, mean, best, votes, rounds }) =>
        element("tr", {}, [label, mean === null ? "" : numeral(mean, 1), best, votes, rounds].map((text) => element("td", { textContent: text }))),
      ),
    );
  }
}
