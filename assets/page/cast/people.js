// The people found in a document, edited before the project is created: merged, split, renamed, given genders and voices; and their marks. No user interface.

const MARKED = 10; // characters with a mark of their own, a colour and a kind of line

/**
 * @typedef {{ id: string, name: string, aliases: string[], gender: string, voice: string | null, narrator: boolean, lines?: number, sample?: { text: string } | null, isEdited?: boolean }} Person
 *   lines: unknown for a person just split off
 */

export const foldedName = (/** @type {string} */ name) => name.trim().toLowerCase().split(/\s+/).join(" ");
/** @param {{ name: string, aliases: string[] }} person */
const namesOf = ({ name, aliases }) => [name, ...aliases];
/** @param {string[]} names */
const distinct = (names) => names.map((name) => name.trim()).filter((name, at, all) => name && all.findIndex((other) => foldedName(other) === foldedName(name)) === at);

/**
 * Return the people with one of them changed. A former name stays as an alias, so that its lines are still found.
 *
 * @param {Person[]} people
 * @param {string} id
 * @param {Partial<Person>} changes
 */
export function changed(people, id, changes) {
  const name = changes.name?.trim();
  const owner = name && people.find((person) => person.id !== id && namesOf(person).some((other) => foldedName(other) === foldedName(name)));
  if (owner) return merged(people, id, owner.id); // the name of another person
  return people.map((person) => {
    if (person.id !== id) return person;
    const after = { ...person, ...changes, name: name || person.name, isEdited: true };
    const aliases = distinct([after.name, ...(name ? [person.name] : []), ...after.aliases]).slice(1);
    return { ...after, aliases };
  });
}

/**
 * Return the people with one merged into another, who gets all lines and names.
 *
 * @param {Person[]} people
 * @param {string} from
 * @param {string} into
 */
export function merged(people, from, into) {
  const gone = people.find(({ id }) => id === from);
  if (!gone || from === into) return people;
  return people.filter(({ id }) => id !== from).map((person) => {
    if (person.id !== into) return person;
    const aliases = distinct([person.name, ...person.aliases, ...namesOf(gone)]).slice(1);
    const lines = (person.lines ?? 0) + (gone.lines ?? 0);
    return { ...person, aliases, lines, gender: person.gender || gone.gender, narrator: person.narrator || gone.narrator, isEdited: true };
  });
}

/**
 * Return the people with an alias as a person of its own, after the one who had it.
 *
 * @param {Person[]} people
 * @param {string} id
 * @param {string} alias
 */
export function split(people, id, alias) {
  const at = people.findIndex((person) => person.id === id);
  if (at < 0) return people;
  const before = { ...people[at], aliases: people[at].aliases.filter((name) => name !== alias), isEdited: true };
  const own = { id: `${id}/${alias}`, name: alias, aliases: [], gender: "", voice: null, narrator: false, isEdited: true };
  return [...people.slice(0, at), before, own, ...people.slice(at + 1)];
}

/**
 * Return the people with names, genders and voices of an earlier book's cast where a name matches, and how many did.
 *
 * @param {Person[]} people
 * @param {Omit<Person, "id">[]} earlier
 * @param {(voice: string | null) => string | null} voiceOf the id of a voice if it still exists
 */
export function fromEarlier(people, earlier, voiceOf) {
  const owners = new Map(people.flatMap((person) => namesOf(person).map((name) => [foldedName(name), person.id])));
  let count = 0;
  const known = people.map((person) => {
    const own = new Set(namesOf(person).map(foldedName));
    const before = earlier.find((other) => namesOf(other).some((name) => own.has(foldedName(name))));
    if (!before) return person;
    count += 1;
    const isOurs = (/** @type {string} */ name) => [undefined, person.id].includes(owners.get(foldedName(name)));
    const aliases = distinct([...(isOurs(before.name) ? [before.name] : []), ...namesOf(person), ...before.aliases.filter(isOurs)]);
    for (const name of aliases) owners.set(foldedName(name), person.id);
    const [name, ...others] = aliases;
    return { ...person, name, aliases: others, gender: before.gender || person.gender, voice: voiceOf(before.voice) ?? person.voice, narrator: before.narrator || person.narrator, isEdited: true };
  });
  return { people: known, count };
}

/**
 * Undo one step, from `before` to `after`, in the list as it is now; later edits are kept.
 *
 * @param {Person[]} now
 * @param {Person[]} before
 * @param {Person[]} after
 */
export function undone(now, before, after) {
  const [here, then] = [now, after].map((people) => new Map(people.map((person) => [person.id, person])));
  const returned = before.flatMap((person) => {
    const [current, left] = [here.get(person.id), then.get(person.id)];
    if (!left) return [person]; // merged into another
    return current ? [withoutStep(current, person, left)] : [];
  });
  const known = new Set([...before, ...after].map(({ id }) => id));
  return [...returned, ...now.filter(({ id }) => !known.has(id))];
}

/** @param {Person} now @param {Person} before @param {Person} after @returns {Person} */
function withoutStep(now, before, after) {
  if (before === after) return now;
  const changes = Object.entries(before).filter(([field]) => field !== "aliases" && now[field] === after[field]);
  const added = new Set(namesOf(after).filter((name) => !namesOf(before).includes(name)));
  const person = { ...now, ...Object.fromEntries(changes) };
  const aliases = distinct([person.name, ...before.aliases.filter((name) => !after.aliases.includes(name)), ...now.aliases.filter((name) => !added.has(name))]).slice(1);
  return { ...person, aliases };
}

/**
 * Return the number of each character's mark, the most frequent first; those without one share the last.
 *
 * @param {any[]} characters as returned by the server
 * @returns {Map<string, number>}
 */
export function marksOf(characters) {
  const speaking = characters.filter(({ lines }) => lines).sort((one, other) => other.lines - one.lines);
  return new Map(speaking.map(({ id }, i) => [id, Math.min(i, MARKED)]));
}

/**
 * Return a character's mark as an attribute's value; blank for the narrator.
 *
 * @param {Map<string, number>} marks
 * @param {string | null} id
 */
export const markOf = (marks, id) => String(id === null ? "" : (marks.get(id) ?? MARKED));

/**
 * Return the people in the form that the API expects.
 *
 * @param {Person[]} people
 */
export const asSent = (people) => people.map(({ name, aliases, gender, voice, narrator }) => ({ name, aliases: aliases.slice(0, 50), gender, voice: voice ?? "", narrator }));
