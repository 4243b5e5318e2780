// The area of settings: what this browser likes, and what the studio is, which can only be read here.

import { address } from "../client/address.js";
import { needsKey } from "../client/host.js";
import { health, signOut, studioFacts } from "../client/system.js";
import { voices } from "../client/voices.js";
import { element, partsOf } from "../lib/elements.js";

const MIB = 2 ** 20;
const size = (bytes) => (bytes < 1024 * MIB ? `${(bytes / MIB).toFixed(1)} MiB` : `${(bytes / MIB / 1024).toFixed(2)} GiB`);

export function ago(seconds) {
  if (seconds < 100) return `${Math.round(seconds)} s ago`;
  return seconds < 6000 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3600)} h ago`;
}

function backupWords(backup) {
  if (!backup) return "None: BACKUP_DIR is not set";
  if (backup.error) return `Failed: ${backup.error}`;
  const last = backup.seconds_ago === null ? "none yet" : `last backup ${ago(backup.seconds_ago)}`;
  const lacking = backup.left_out.length ? ` without ${backup.left_out.length} damaged sounds` : "";
  return `${last}${lacking}${backup.pending ? ", another is due" : ""}, in ${backup.folder}`;
}

/** [term, words] of the studio, from /health and /v1/settings. */
function facts({ engine, status }, { model, versions, storage }) {
  const speaks = engine
    ? [
        ["Model", `${model}, ${(engine.parameters / 1e6).toFixed(0)} million parameters`],
        ["Device", `${engine.device}${engine.gpu ? ` (${engine.gpu.name})` : ""}, ${engine.dtype}, ${engine.frame_path}`],
        ["At a time", `${engine.max_rows} requests of ${engine.max_context} positions; ${engine.max_waiting} more may wait`],
        ...(engine.memory ? [["Memory", engine.memory]] : []),
      ]
    : [["Model", `${model}: ${status}`]];
  const { folder, voices: voiceCount, takes, database_bytes: database, audio_bytes: audio } = storage;
  return [
    ...speaks,
    ["Library", `${voiceCount} voices and ${takes} takes: ${size(database)} of database, ${size(audio)} of audio`],
    ["Folder", folder],
    ["Backup", backupWords(storage.backup)],
    ["Versions", Object.entries(versions).map(([name, version]) => `${name} ${version}`).join(" · ")],
  ];
}

export class Settings {
  constructor(root, preferences) {
    this.preferences = preferences;
    this.part = partsOf(root);
    this.form = this.part("form");
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.form.addEventListener("input", ({ target }) => {
      preferences.set({ [target.name]: target.type === "range" ? target.valueAsNumber : target.value });
    });
    this.part("reset").addEventListener("click", () => {
      preferences.reset();
      this.#fill();
    });
    this.part("sign-out").hidden = !needsKey;
    this.part("sign-out").addEventListener("click", () => signOut());
    this.part("diagnostics").addEventListener("click", () => this.#save());
  }

  async open() {
    const listed = await voices();
    this.form.elements.voice.replaceChildren(...[{ id: "", name: "The one used last" }, ...listed].map(({ id, name }) => element("option", { value: id, textContent: name })));
    this.#fill();
    const [now, studio] = await Promise.all([health(), studioFacts()]);
    if (!studio) return this.#say("The studio does not answer.");
    this.#say("");
    this.part("facts").replaceChildren(...facts(now, studio).flatMap(([term, words]) => [element("dt", { textContent: term }), element("dd", { textContent: words })]));
    this.part("settings").replaceChildren(
      ...studio.settings.map(({ name, value, source }) =>
        element("tr", {}, [element("td", {}, [element("code", { textContent: name })]), element("td", { textContent: value ?? "–" }), element("td", { textContent: source })]),
      ),
    );
  }

  close() {}

  #fill() {
    const { values } = this.preferences; // some have their switch where they are seen
    for (const field of this.form.querySelectorAll("[name]")) field.value = values[field.name];
  }

  #say(words) {
    this.part("said").textContent = words;
  }

  #save() {
    element("a", { href: address("/v1/diagnostics"), download: "" }).click();
  }
}
