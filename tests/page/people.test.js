// The people of a document before its import: merged, split, renamed, and known from an earlier book.

import assert from "node:assert/strict";
import test from "node:test";

import { asSent, changed, fromEarlier, merged, split, undone } from "../../assets/page/cast/people.js";

const person = (id, name, aliases = [], more = {}) => ({ id, name, aliases, gender: "", voice: null, narrator: false, lines: 2, ...more });
const PEOPLE = [person("a", "Eliza", ["Lizzy", "Miss Bennet"], { voice: "anna" }), person("b", "Elizabeth", [], { gender: "female", lines: 5 }), person("c", "Mr Darcy")];
const names = (people) => people.map(({ name, aliases }) => [name, ...aliases].join("/"));

test("a merged person's names, lines and gender go to the other, whose voice stays", () => {
  const [one, other] = merged(PEOPLE, "b", "a");
  assert.deepEqual([one.aliases, one.lines, one.gender, one.voice], [["Lizzy", "Miss Bennet", "Elizabeth"], 7, "female", "anna"]);
  assert.equal(other.name, "Mr Darcy");
  assert.equal(merged(PEOPLE, "a", "a"), PEOPLE);
});

test("a name that is split off is a person without known lines, beside the other", () => {
  const people = split(PEOPLE, "a", "Miss Bennet");
  assert.deepEqual(names(people), ["Eliza/Lizzy", "Miss Bennet", "Elizabeth", "Mr Darcy"]);
  assert.equal(people[1].lines, undefined);
});

test("a former name is still found, a blank one changes nothing, and another person's name merges", () => {
  assert.deepEqual(names(changed(PEOPLE, "c", { name: " Fitzwilliam " })).at(-1), "Fitzwilliam/Mr Darcy");
  assert.deepEqual(names(changed(PEOPLE, "a", { name: "Lizzy" }))[0], "Lizzy/Eliza/Miss Bennet");
  assert.deepEqual(names(changed(PEOPLE, "c", { name: " " })), names(PEOPLE));
  assert.deepEqual(names(changed(PEOPLE, "b", { name: "lizzy" })), ["Eliza/Lizzy/Miss Bennet/Elizabeth", "Mr Darcy"]);
});

test("the cast of an earlier book gives names, genders and voices, but never the name of another person", () => {
  const earlier = [person("x", "Lizzy Bennet", ["Eliza", "Elizabeth"], { gender: "female", voice: "clara" }), person("y", "Fitzwilliam Darcy", ["fitzwilliam darcy", "Mr Darcy"], { gender: "male", voice: "gone" }), person("z", "Jane")];
  const { people, count } = fromEarlier(PEOPLE, earlier, (voice) => (voice === "gone" ? null : voice));
  assert.equal(count, 3); // both Eliza and Elizabeth, who are for a person to merge
  assert.deepEqual(names(people), ["Lizzy Bennet/Eliza/Lizzy/Miss Bennet", "Elizabeth", "Fitzwilliam Darcy/Mr Darcy"]);
  assert.deepEqual(people.map(({ gender, voice }) => [gender, voice]), [["female", "clara"], ["female", "clara"], ["male", null]]);
  assert.deepEqual(asSent(people)[2], { name: "Fitzwilliam Darcy", aliases: ["Mr Darcy"], gender: "male", voice: "", narrator: false });
});

test("undoing a step keeps what was edited after it", () => {
  const after = merged(PEOPLE, "b", "a");
  const now = changed(changed(changed(after, "c", { name: "Fitzwilliam" }), "a", { voice: "bert" }), "a", { name: "Beth" });
  const people = undone(now, PEOPLE, after);
  assert.deepEqual(names(people), ["Beth/Eliza/Lizzy/Miss Bennet", "Elizabeth", "Fitzwilliam/Mr Darcy"]);
  assert.deepEqual(people.map(({ voice, gender, lines }) => [voice, gender, lines]), [["bert", "", 2], [null, "female", 5], [null, "", 2]]);
  const apart = split(PEOPLE, "a", "Lizzy");
  assert.deepEqual(names(undone(changed(apart, "c", { name: "Darcy" }), PEOPLE, apart)), ["Eliza/Lizzy/Miss Bennet", "Elizabeth", "Darcy/Mr Darcy"]);
  const found = [...after.filter(({ id }) => id !== "c"), person("d", "Jane")]; // another choice of chapters
  assert.deepEqual(names(undone(found, PEOPLE, after)), ["Eliza/Lizzy/Miss Bennet", "Elizabeth", "Jane"]);
});
