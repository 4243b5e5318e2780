// The page's start: its parts are made as Gradio draws them, and told of each other. Nothing goes through Gradio.

import { Api } from "./api/api.js";
import { Areas } from "./shell/tabs.js";
import { Card } from "./speak/error-card.js";
import { Cast } from "./speak/cast.js";
import { CodeDialog } from "./api/code-dialog.js";
import { Compare } from "./compare/compare.js";
import { Dock } from "./player/player-bar.js";
import { isZeroGpu } from "./client/host.js";
import { drawn } from "./shell/rendered.js";
import { Fields } from "./speak/fields.js";
import { keepFocus } from "./shell/focus.js";
import { Health } from "./shell/engine-health.js";
import { History } from "./history/history.js";
import { listenForKeys } from "./shell/shortcuts.js";
import { LongForm } from "./longform/longform.js";
import { Player } from "./player/player.js";
import { Preferences } from "./settings/preferences.js";
import { offerPresets } from "./speak/sampling-presets.js";
import { offerPreview } from "./speak/voice-preview.js";
import { Queue } from "./queue/queue.js";
import { buildRequest } from "./speak/request.js";
import { ScriptTools } from "./speak/script-tools.js";
import { Settings } from "./settings/settings.js";
import { Speaking } from "./speak/speaking.js";
import { Stage } from "./player/now-playing.js";
import { TakeUses } from "./takes/take-actions.js";
import { TakeList } from "./takes/take-list.js";
import { openVoiceAreas } from "./voices/voice-tabs.js";

class Studio {
  player = new Player();
  fields = new Fields();
  preferences = new Preferences();

  constructor() {
    this.player.prepare();
    for (const press of ["pointerdown", "keydown"]) document.addEventListener(press, () => this.player.wake(), true);
    this.started = this.#start();
  }

  async #start() {
    this.stage = new Stage(this.player, new Dock(await drawn("#dock")), this.preferences);
    this.health = new Health(await drawn("#pill"));
    this.card = new Card(await drawn("#card"));
    this.card.addEventListener("told", ({ detail }) => this.stage.fail(detail.what));
    this.code = new CodeDialog(await drawn("#code"));
    this.list = new TakeList(await drawn("#takes"), () => (isZeroGpu ? null : this.preferences.values.format));
    this.areas = new Areas(await drawn("#areas"));
    this.history = new History(await drawn("#area-history"));
    await this.#dressFields();
    await this.#openAreas();
    listenForKeys(this);
    keepFocus();
    await this.card.attempt(async () => (this.speaking.takes = await this.list.refill()));
    await drawn("#refill");
    await this.fields.restore(this.preferences.values.voice);
    document.body.dataset.studio = "ready";
  }

  /** What the page adds to Gradio's fields. */
  async #dressFields() {
    const sampling = await drawn("#sampling-toggle");
    sampling.addEventListener("click", () => sampling.setAttribute("aria-expanded", sampling.getAttribute("aria-expanded") !== "true"));
    offerPresets(await drawn("#presets"), this.fields);
    const preview = await drawn("#hear-voice");
    preview.hidden = isZeroGpu;
    if (!isZeroGpu) offerPreview(preview, this.fields);
    const script = new ScriptTools(await drawn("#script textarea"), await drawn("#script-tools"));
    this.cast = new Cast(await drawn("#cast"), script.area);
    this.cast.addEventListener("change", () => (script.note = this.cast.note));
    this.cast.refresh();
    this.fields.addEventListener("change", ({ detail }) => {
      script.cutAfter = detail.values.cutAfter;
      this.cast.read(detail.values.text);
      document.body.dataset.source = detail.values.source;
    });
  }

  /** Every area has its module; one with `open` and `close` is told when it is shown and left. */
  async #openAreas() {
    const { areas, fields, health } = this;
    const { newVoice, voices, ownClip } = await openVoiceAreas({ fields, health, areas, drawn });
    voices.addEventListener("changed", () => this.cast.refresh());
    newVoice.addEventListener("saved", () => this.cast.refresh());
    this.ownClip = ownClip;
    this.speaking = new Speaking(this);
    for (const [button, count] of [["#speak", 1], ["#speak-four", 4]]) {
      (await drawn(button)).addEventListener("click", (event) => this.speaking.press(event, count), true);
    }
    this.uses = new TakeUses(this);
    for (const list of [this.list, this.history]) this.uses.serve(list);
    const longform = new LongForm(await drawn("#area-longform"));
    longform.addEventListener("heard", () => this.stage.pause());
    this.compare = new Compare(await drawn("#area-compare"), this);
    const queue = new Queue(await drawn("#area-queue"));
    const settings = new Settings(await drawn("#area-settings"), this.preferences);
    const shown = { "new-voice": newVoice, voices, longform, compare: this.compare, history: this.history, queue, settings };
    this.#listenToCompare();
    this.#listenToApi(new Api(await drawn("#area-api"), () => this.request(fields.values)));
    let left = null;
    areas.addEventListener("show", ({ detail }) => {
      left?.close();
      left = shown[detail.area] ?? null;
      left?.open();
    });
    areas.start();
  }

  /** Its takes are heard in the player like all others, from their first sound on. */
  #listenToCompare() {
    const { areas, compare, fields, stage, uses } = this;
    const on = (type, does) => compare.addEventListener(type, ({ detail }) => does(detail));
    on("play", ({ take, others }) => uses.play(take, others.includes(stage.current) && !stage.isOver ? stage.position : 0));
    on("grown", ({ take }) => stage.grow(take));
    on("made", ({ take }) => stage.settle(take));
    on("told", ({ take }) => stage.settle(take));
    on("use", ({ changes }) => {
      fields.fill(changes);
      areas.show("studio");
    });
  }

  /** The page's present request as a program; what is missing is said as if Speak had been pressed. */
  #listenToApi(api) {
    api.addEventListener("present", async ({ detail }) => {
      try {
        this.code.open("This page's speech from your own program", await api.request(), "Without a seed, each run draws another.", detail.kind);
      } catch (problem) {
        this.areas.show("studio"); // where the script is, and the card
        this.card.tell(problem);
      }
    });
  }

  /** The body that these fields mean to POST /v1/audio/speech, with the cast of a dialogue. Raises Refusal. */
  request = async (fields) => this.cast.dress(await buildRequest(fields, this.health.frameRate));

  /** Called by Gradio with the present values of the fields: one take, or several at once with a seed each. */
  async speak(values, count) {
    await this.started;
    return this.speaking.speak(this.fields.named(values), count);
  }

  /** Called by Gradio. */
  stop() {
    this.speaking?.stop();
  }

  /** Called by Gradio with the present values of the fields: the script in several voices, in the area for that. */
  async compareVoices(values) {
    await this.started;
    this.speaking.stop();
    this.fields.changed(...values);
    this.areas.show("compare");
    return this.compare.speakScript();
  }

  // What is heard now, for whoever measures the page.
  get current() {
    return this.stage.current;
  }

  get position() {
    return this.stage.position;
  }

  get heard() {
    return this.stage.heard;
  }
}

window.studio = new Studio();
