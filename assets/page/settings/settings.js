// The settings area: this browser's preferences, and read-only facts about the studio.

import { address } from "../client/address.js";
import { needsKey } from "../client/host.js";
import { Refusal } from "../client/refusal.js";
import { health, signOut, studioFacts } from "../client/system.js";
import { voices } from "../client/voices.js";
import { element, partsOf } from "../lib/elements.js";
import { chooseLanguage, chosenLanguage } from "./language.js";
import { LookAgain } from "../lib/look-again.js";
import { LOCALE, numeral, phrase } from "../lib/phrases.js";
import { TrashList } from "../trash/trash-list.js";

const size = (bytes) => (bytes < 1e9 ? `${numeral(bytes / 1e6, 1)} MB` : `${numeral(bytes / 1e9, 2)} GB`);

const AGO = new Intl.RelativeTimeFormat(LOCALE, { style: "short" });

function ago(seconds) {
  if (seconds < 100) return AGO.format(-Math.round(seconds), "second");
  return seconds < 6000 ? AGO.format(-Math.round(seconds / 60), "minute") : AGO.format(-Math.round(seconds / 3600), "hour");
}

function backupWords(backup) {
  if (!backup) return phrase("settings.backup.none");
  if (backup.error) return phrase("settings.backup.failed", { why: backup.error });
  const last = backup.seconds_ago === null ? phrase("settings.backup.notYet") : phrase("settings.backup.last", { ago: ago(backup.seconds_ago) });
  const lacking = backup.left_out.length ? [phrase("settings.backup.lacking", { count: backup.left_out.length })] : [];
  return [last, ...lacking, ...(backup.pending ? [phrase("settings.backup.due")] : []), phrase("settings.backup.in", { folder: backup.folder })].join(", ");
}

/** The items created without a key that the first key adopted at this start; empty if there are none. */
function adoptedFacts(adopted) {
  if (!adopted?.takes && !adopted?.projects && !adopted?.voices) return [];
  const projects = phrase("settings.adopted.projects", { count: adopted.projects });
  return [[phrase("settings.adopted"), phrase("settings.adopted.about", { takes: phrase("settings.library.takes", { count: adopted.takes }), projects, voices: phrase("settings.library.voices", { count: adopted.voices }) })]];
}

/** [term, words] about the studio, from /health and /v1/settings. */
function facts({ engine, status }, { model, versions, storage, adopted, is_owner: isOwner }) {
  const speaks = engine
    ? [
        [phrase("settings.model"), phrase("settings.model.size", { model, millions: Math.round(engine.parameters / 1e6) })],
        [phrase("settings.device"), `${engine.device}${engine.gpu ? ` (${engine.gpu.name})` : ""}, ${engine.dtype}, ${engine.frame_path}`],
        [phrase("settings.rows"), phrase("settings.rows.about", { count: engine.max_rows, positions: engine.max_context, waiting: engine.max_waiting })],
        ...(engine.memory ? [[phrase("settings.memory"), engine.memory]] : []),
      ]
    : [[phrase("settings.model"), `${model}: ${status}`]];
  const { folder, database_bytes: database, audio_bytes: audio } = storage;
  const voicesHeld = phrase("settings.library.voices", { count: storage.voices });
  const held = isOwner && phrase("settings.library.held", { voices: voicesHeld, takes: phrase("settings.library.takes", { count: storage.takes }) });
  return [
    ...speaks,
    [phrase("settings.library"), held ? phrase("settings.library.about", { held, database: size(database), audio: size(audio) }) : voicesHeld],
    ...adoptedFacts(adopted),
    ...(isOwner ? [[phrase("settings.folder"), folder], [phrase("settings.backup"), backupWords(storage.backup)]] : []),
    [phrase("settings.versions"), Object.entries(versions).map(([name, version]) => `${name} ${version}`).join(" · ")],
  ];
}

export class Settings {
  #again = new LookAgain();
  #isOpen = false;

  constructor(root, preferences) {
    this.preferences = preferences;
    this.part = partsOf(root);
    this.form = this.part("form");
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.form.addEventListener("input", ({ target }) => {
      if (target.name === "language") return chooseLanguage(target.value);
      preferences.set({ [target.name]: target.type === "range" ? target.valueAsNumber : target.value });
    });
    this.part("reset").addEventListener("click", () => preferences.reset());
    preferences.addEventListener("change", () => this.#fill());
    this.part("account").hidden = !needsKey;
    this.part("sign-out").addEventListener("click", () => signOut());
    this.trash = new TrashList(this.part("trash"));
    this.part("diagnostics").addEventListener("click", () => this.#save());
  }

  async open() {
    this.#isOpen = true;
    this.#fill(); // at once, as the studio may not respond
    this.trash.open();
    try {
      await this.#read();
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.#say(problem.why);
      if (this.#isOpen) this.#again.after(problem, () => this.open());
    }
  }

  /** Read and show the voices and the facts about the studio. Throws Refusal. */
  async #read() {
    const listed = await voices();
    this.form.elements.voice.replaceChildren(...[{ id: "", name: phrase("settings.voice.last") }, ...listed].map(({ id, name }) => element("option", { value: id, textContent: name })));
    this.form.elements.voice.disabled = false;
    this.#fill();
    const [now, studio] = await Promise.all([health(), studioFacts()]);
    if (!studio) return this.#say(phrase("settings.silent"));
    this.part("signed-in").textContent = studio.caller ? phrase("shell.signedIn", { name: studio.caller }) : phrase("settings.signedIn");
    this.#say("");
    this.part("facts").replaceChildren(...facts(now, studio).flatMap(([term, words]) => [element("dt", { textContent: term }), element("dd", { textContent: words })]));
    this.part("all").hidden = this.part("choose-model").hidden = !studio.is_owner;
    this.part("settings").replaceChildren(
      ...studio.settings.map(({ name, value, source }) =>
        element("tr", {}, [element("td", {}, [element("code", { textContent: name })]), element("td", { textContent: value ?? "–" }), element("td", { textContent: source })]),
      ),
    );
  }

  close() {
    this.#isOpen = false;
    this.#again.end();
  }

  #fill() {
    const { values } = this.preferences; // some are also changed elsewhere on the page
    for (const field of this.form.querySelectorAll("[name]")) field.value = values[field.name] ?? "";
    this.form.elements.language.value = chosenLanguage();
  }

  #say(words) {
    this.part("said").textContent = words;
  }

  #save() {
    element("a", { href: address("/v1/diagnostics"), download: "" }).click();
  }
}
