// Starts the page: creates its parts as Gradio renders their elements, and connects them without Gradio.

import { Account } from "./shell/account.js";
import { Api } from "./api/api.js";
import { Areas } from "./shell/areas.js";
import { ErrorCard } from "./speak/error-card.js";
import { Cast } from "./speak/cast.js";
import { CodeDialog } from "./api/code-dialog.js";
import { Compare } from "./compare/compare.js";
import { PlayerBar } from "./player/player-bar.js";
import { isThroughGradio } from "./client/host.js";
import { Refusal } from "./client/refusal.js";
import { rendered } from "./shell/rendered.js";
import { closeListOnLeaving, Fields } from "./speak/fields.js";
import { Describing } from "./new-voice/describe.js";
import { showKeptSeed } from "./speak/kept-seed.js";
import { keepFocus } from "./shell/focus.js";
import { EngineHealth } from "./shell/engine-health.js";
import { explainDemo, markDemo } from "./shell/demo.js";
import { History } from "./history/history.js";
import { takeDrops, textOf } from "./shell/drops.js";
import { showOpened } from "./shell/opened.js";
import { askForKey } from "./shell/sign-in-dialog.js";
import { listenForKeys } from "./shell/shortcuts.js";
import { openTab } from "./lib/by-tab.js";
import { LongForm } from "./longform/longform.js";
import { Player } from "./player/player.js";
import { openDictionaries } from "./pronunciation/dictionaries.js";
import { ModelsDialog } from "./models/models-dialog.js";
import { Preferences } from "./settings/preferences.js";
import { offerPresets } from "./speak/sampling-presets.js";
import { offerPreview } from "./speak/voice-preview.js";
import { Queue } from "./queue/queue.js";
import { buildRequest } from "./speak/request.js";
import { Reading } from "./speak/reading.js";
import { ScriptTools } from "./speak/script-tools.js";
import { ScriptReplacement } from "./takes/script-replacement.js";
import { SentenceRegeneration } from "./takes/sentence-regeneration.js";
import { Settings } from "./settings/settings.js";
import { Speaking } from "./speak/speaking.js";
import { offerMediaKeys } from "./player/media-keys.js";
import { NowPlaying } from "./player/now-playing.js";
import { PlayButtons } from "./player/play-buttons.js";
import { ReadAlong } from "./player/read-along.js";
import { TakeActions } from "./takes/take-actions.js";
import { TakeList } from "./takes/take-list.js";
import { openVoiceAreas } from "./voices/voice-areas.js";
import { ignoreMisplacedClicks } from "./lib/once.js";
import { offerUndo } from "./trash/undo-toast.js";
import { phrase } from "./lib/phrases.js";

class Studio {
  player = new Player();
  fields = new Fields();
  preferences = new Preferences();
  health = new EngineHealth();

  // Created once Gradio has rendered their elements.
  /** @type {NowPlaying} */ nowPlaying;
  /** @type {ReadAlong | null} */ readAlong = null;
  /** @type {PlayButtons} */ playButtons;
  /** @type {ErrorCard} */ errorCard;
  /** @type {CodeDialog} */ code;
  /** @type {TakeList} */ list;
  /** @type {Areas} */ areas;
  /** @type {History} */ history;
  /** @type {LongForm} */ longform;
  /** @type {import("./trash/trash-list.js").TrashList} */ trash;
  /** @type {Cast} */ cast;
  /** @type {Reading} */ reading;
  /** @type {ScriptReplacement} */ scriptReplacement;
  /** @type {import("./speak/own-clip.js").OwnClip} */ ownClip;
  /** @type {Speaking} */ speaking;
  /** @type {TakeActions} */ takeActions;
  /** @type {Compare} */ compare;
  bringVoice = (/** @type {File} */ _file) => {};
  bringBook = async (/** @type {File | string} */ _source) => {};

  constructor() {
    ignoreMisplacedClicks();
    markDemo(this.health);
    this.health.watch(() => this.health.pace !== null && this.player.delay.expect(this.health.pace, 1 / this.health.frameRate));
    takeDrops((file, use) => this.started.then(() => this.errorCard.attempt(() => this.#takeFile(file, use))));
    addEventListener("unhandledrejection", (event) => this.#tellRefusal(event));
    this.player.prepare();
    for (const press of ["pointerdown", "keydown"]) document.addEventListener(press, () => this.player.wake(), true);
    this.started = this.#start();
    this.started.then(() => addEventListener("storagefull", (event) => { // earlier, the message would not be seen
      event.preventDefault();
      offerUndo(phrase("shell.storageFull"), null);
    }));
  }

  async #start() {
    const tab = openTab();
    this.health.showIn(await rendered("#pill"), await rendered("#offline"), await rendered("#unsaved"));
    const models = new ModelsDialog(await rendered("#models"));
    explainDemo(await rendered("#demo-line"), await rendered("#better-model"), models, this.health);
    const account = new Account(await rendered("#signed-in"), this.health);
    askForKey(await rendered("#sign-in"), () => {
      account.look();
      this.health.dispatchEvent(new CustomEvent("back"));
    });
    const dock = await rendered("#dock");
    this.nowPlaying = new NowPlaying(this.player, new PlayerBar(dock), this.preferences);
    if (!isThroughGradio) this.readAlong = new ReadAlong(dock, this.nowPlaying, this.preferences); // else word times would cost GPU time
    this.playButtons = new PlayButtons(this.nowPlaying);
    offerMediaKeys(this.nowPlaying);
    this.errorCard = new ErrorCard(await rendered("#card"));
    this.errorCard.addEventListener("told", ({ detail }) => this.nowPlaying.fail(detail.what));
    this.errorCard.addEventListener("gone", ({ detail }) => this.nowPlaying.recover(detail.what));
    this.health.addEventListener("back", () => {
      this.errorCard.reconnected();
      this.readAlong?.tools.reconnected();
    });
    this.fields.addEventListener("change", ({ detail }) => this.errorCard.changed(detail));
    this.code = new CodeDialog(await rendered("#code"));
    this.list = new TakeList(await rendered("#takes"));
    await Promise.all([rendered("#areas"), tab]);
    this.areas = new Areas(document);
    this.history = new History(await rendered("#area-history"));
    await this.#dressFields();
    await this.#openAreas();
    listenForKeys(this, await rendered("#shortcuts"));
    showOpened(dock);
    keepFocus();
    await rendered("#refill");
    const restored = this.fields.restore(this.preferences.values.voice); // first: a script may be typed already
    await Promise.all([restored, this.errorCard.attempt(() => this.list.refill())]);
    document.body.dataset.studio = "ready";
    dispatchEvent(new Event("studio-ready"));
  }

  /** Add the page's controls to Gradio's fields. */
  async #dressFields() {
    const sampling = await rendered("#sampling-toggle");
    sampling.addEventListener("click", () => sampling.setAttribute("aria-expanded", sampling.getAttribute("aria-expanded") !== "true"));
    offerPresets(await rendered("#presets"), this.fields);
    showKeptSeed(await rendered("#kept-seed"), await rendered("#seed input"), this.fields);
    closeListOnLeaving(await rendered("#voice input"));
    const takes = await rendered("#takes");
    const previews = [await rendered("#hear-voice"), takes.querySelector("[data-part=hear-first]")];
    for (const preview of previews) preview.hidden = isThroughGradio;
    if (!isThroughGradio) offerPreview(previews, this);
    const area = await rendered("#script textarea");
    takes.querySelector("[data-part=say]").addEventListener("click", () => area.select());
    const script = new ScriptTools(area, await rendered("#script-tools"), !isThroughGradio);
    script.addEventListener("project", () => this.bringBook(script.area.value));
    this.cast = new Cast(await rendered("#cast"), script.area);
    this.fields.addEventListener("voices", ({ detail }) => (this.cast.voices = detail.voices));
    this.scriptReplacement = new ScriptReplacement({ area: script.area, fields: this.fields, cast: this.cast });
    this.reading = new Reading(await rendered("#reading"), script.area, this.cast);
    this.reading.addEventListener("told", ({ detail }) => (script.language = detail.language));
    this.health.watch(({ status, engine }) => {
      this.reading.isPossible = status === "ready";
      if (engine) script.card = engine.card;
    });
    this.areas.addEventListener("show", () => this.reading.look()); // the dictionary may have been changed
    this.fields.addEventListener("change", ({ detail }) => {
      this.reading.voice = detail.values.source === "clip" ? "" : detail.values.voice;
      script.cutAfter = detail.values.cutAfter;
      this.cast.narrator = this.reading.voice;
      this.cast.read(detail.values.text);
      this.reading.look();
      document.body.dataset.source = detail.values.source;
    });
  }

  /** Use a file dropped in the Studio. Throws Refusal. */
  async #takeFile(file, use) {
    if (use === "voice") return this.bringVoice(file);
    if (use === "book") return this.bringBook(file);
    if (use === "script") return this.scriptReplacement.write(await textOf(file));
    throw new Refusal({ what: phrase("speak.drop.unknown", { name: file.name }), why: phrase("speak.drop.known"), advice: "" });
  }

  /** Create the areas' modules; their `open` and `close` are called when an area is shown and left. */
  async #openAreas() {
    const { areas, fields } = this;
    const voice = () => (fields.values.source === "clip" ? undefined : fields.values.voice);
    const { newVoice, voices, ownClip, keepVoice } = await openVoiceAreas(this, rendered);
    this.ownClip = ownClip;
    this.speaking = new Speaking(this);
    for (const button of ["#speak", "#speak-four"]) (await rendered(button)).addEventListener("click", (event) => this.speaking.press(event), true);
    this.takeActions = new TakeActions(this);
    for (const list of [this.list, this.history]) this.takeActions.serve(list);
    if (this.readAlong) new SentenceRegeneration(this).serve(this.readAlong);
    const longform = (this.longform = new LongForm(await rendered("#area-longform"), this.nowPlaying, voice));
    this.compare = new Compare(await rendered("#area-compare"), this);
    const queue = new Queue(await rendered("#area-queue"));
    const settings = new Settings(await rendered("#area-settings"), this.preferences);
    this.trash = settings.trash;
    const shown = { studio: ownClip, "new-voice": newVoice, voices, longform, compare: this.compare, history: this.history, queue, settings };
    this.bringVoice = (file) => {
      areas.show("new-voice");
      newVoice.bring(file);
    };
    this.bringBook = (source) => {
      areas.show("longform");
      return longform.bring(source);
    };
    const describing = new Describing(await rendered("#describe"), this);
    for (const place of [this.list, this.compare, describing]) place.addEventListener("keepVoice", ({ detail }) => this.errorCard.attempt(() => keepVoice(detail.take)));
    openDictionaries(voice, this.playButtons);
    this.#listenToCompare();
    this.#listenToHistory();
    this.#listenToApi(new Api(await rendered("#area-api"), () => this.request(fields.values)));
    /** @type {any} */
    let left = null;
    areas.addEventListener("show", ({ detail }) => {
      left?.close();
      left = shown[detail.area] ?? null;
      left?.open?.(detail.item);
    });
    areas.addEventListener("go", ({ detail }) => left?.go?.(detail.item));
    this.health.addEventListener("back", () => (left?.back ? left.back() : left?.open?.(areas.item)));
    for (const area of ["voices", "longform", "history"]) shown[area].addEventListener("about", ({ detail }) => areas.about(area, detail));
    areas.start();
    if (areas.shown === "studio" && document.activeElement === document.body) {
      (await rendered("#script textarea")).focus({ preventScroll: true }); // Gradio's autofocus comes before it is visible
    }
  }

  /** Show a refusal that nothing else on the page handles. Lost requests are repeated once the studio is back. */
  #tellRefusal(event) {
    if (!(event.reason instanceof Refusal)) return;
    event.preventDefault();
    if (!event.reason.isLost) this.errorCard?.tell(event.reason); // the header shows a lost connection
  }

  /** Play Compare's takes in the player like all others, from their first audio on. */
  #listenToCompare() {
    const { compare, nowPlaying, takeActions } = this;
    const on = (type, does) => compare.addEventListener(type, ({ detail }) => does(detail));
    on("play", ({ take, others }) => takeActions.play(take, others.includes(nowPlaying.current) && !nowPlaying.isOver ? nowPlaying.position : 0));
    on("grown", ({ take }) => nowPlaying.grow(take));
    for (const type of ["made", "told"]) on(type, ({ take }) => nowPlaying.settle(take));
    on("row", ({ takes }) => nowPlaying.playRow(takes, 0, true));
    on("use", ({ take }) => this.errorCard.attempt(() => takeActions.use(take)));
  }

  /** Apply changes to takes in the history and the trash to the Studio's list. */
  #listenToHistory() {
    const { history, list } = this;
    history.addEventListener("deleted", ({ detail }) => list.lose(detail.ids));
    history.addEventListener("restored", ({ detail }) => list.regain(detail.ids));
    this.trash.addEventListener("restored", ({ detail }) => (detail.kind === "take" ? list.regain([detail.id]) : this.fields.offerVoices()));
    history.addEventListener("starred", ({ detail }) => list.mark(detail.take));
  }

  /** Show the page's current request as code; report missing fields like the Speak button. */
  #listenToApi(api) {
    api.addEventListener("present", async ({ detail }) => {
      try {
        this.code.open(phrase("api.code.title"), await api.request(), phrase("api.code.seed"), detail.kind);
      } catch (problem) {
        this.areas.show("studio"); // where the script and the error card are
        this.errorCard.tell(problem);
      }
    });
  }

  /** The body of POST /v1/audio/speech for these fields, with the cast of a dialogue. Throws Refusal. */
  request = async (fields) => this.reading.dress(this.cast.dress(await buildRequest(fields, this.health.frameRate)));

  /** Called by Gradio with the fields' current values: generate one take, or several at once with a seed each. */
  async speak(values, count) {
    await this.started;
    return this.speaking.speak(this.fields.named(values), count);
  }

  /** Called by Gradio. */
  stop() {
    this.speaking?.stop();
  }

  /** Called by Gradio with the fields' current values: speak the script in several voices, in the Compare area. */
  async compareVoices(values) {
    await this.started;
    this.speaking.stop();
    this.fields.changed(...values);
    this.areas.show("compare");
    return this.compare.speakScript();
  }

  // The current take's state, for measurements of the page.
  get current() {
    return this.nowPlaying.current;
  }

  get position() {
    return this.nowPlaying.position;
  }

  get heard() {
    return this.nowPlaying.heard;
  }
}

window.studio = new Studio();
