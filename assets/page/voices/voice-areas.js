// Connects the views of voices with the Studio's voice field when a voice is created, chosen, saved or changed.

import { Refusal } from "../client/refusal.js";
import { VoiceDefaults } from "./voice-defaults.js";
import { Latest } from "../lib/latest.js";
import { NewVoice } from "../new-voice/new-voice.js";
import { OwnClip } from "../speak/own-clip.js";
import { Voices } from "./voices.js";

/** rendered(selector) waits for an element. Returns {newVoice, voices, ownClip, keepVoice(take)}. */
export async function openVoiceAreas({ fields, health, areas, playButtons }, rendered) {
  const newVoice = new NewVoice(await rendered("#area-new-voice"), health, playButtons);
  const voices = new Voices(await rendered("#area-voices"), playButtons);
  const ownClip = new OwnClip(await rendered("#own-clip"), fields, playButtons, health);
  const defaults = new VoiceDefaults(fields);
  const choices = new Latest();
  health.watch(({ engine }) => engine && fields.follow(engine.sampling));

  newVoice.addEventListener("saved", ({ detail }) => fields.offerVoices({ voice: detail.voice, source: "bundled" }));
  newVoice.addEventListener("studio", () => areas.show("studio"));
  voices.addEventListener("add", ({ detail }) => {
    newVoice.addTo(detail.voice);
    areas.show("new-voice");
  });
  const choose = async (id) => {
    const isLatest = choices.begin();
    areas.show("studio");
    await fields.lookForVoices().catch((problem) => { // the voice's presets may have just changed
      if (!(problem instanceof Refusal) || !fields.voices.some((voice) => voice.id === id)) throw problem;
    });
    if (isLatest()) fields.fill({ voice: id, source: "bundled", ...defaults.choose(id) });
  };
  for (const place of [voices, newVoice, ownClip]) place.addEventListener("choose", ({ detail }) => choose(detail.id));
  voices.addEventListener("changed", () => fields.offerVoices());
  ownClip.addEventListener("keep", ({ detail }) => {
    newVoice.keep(detail.clip, detail.words);
    areas.show("new-voice");
  });
  const keepVoice = async (take) => {
    await Promise.all([take.load(), take.whole()]);
    const words = take.request.input.replace(/\[[^[\]]*\]/g, " ").trim(); // without tags, which are not said
    newVoice.keep(take.file, words, { isMadeUp: true, description: take.request.instructions ?? "" });
    areas.show("new-voice");
  };
  return { newVoice, voices, ownClip, keepVoice };
}
