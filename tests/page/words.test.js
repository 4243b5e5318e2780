// Texts and figures for lengths, levels, grades, votes and refusals.

import assert from "node:assert/strict";
import test from "node:test";

import { refusalOf } from "../../assets/page/client/refusal.js";
import { tally } from "../../assets/page/compare/votes.js";
import { clock, duration } from "../../assets/page/lib/time.js";
import { changedWords, loudnessWords } from "../../assets/page/longform/finished-files.js";
import { inARow } from "../../assets/page/longform/timeline.js";
import { verdict } from "../../assets/page/capture/recorder.js";
import { gradeOf } from "../../assets/page/voices/advice.js";
import { READINGS, sampleSentence } from "../../assets/page/voices/reading-texts.js";

test("clock times and durations are formatted", () => {
  assert.deepEqual([0, -1, 5.25, 65.3, 600].map(clock), ["0:00.0", "0:00.0", "0:05.3", "1:05.3", "10:00.0"]);
  assert.deepEqual([0.2, 59.6, 61, 3600, 7325].map(duration), ["1 s", "1 min 0 s", "1 min 1 s", "1 h 0 min", "2 h 2 min"]);
});

test("consecutive parts state the silence after each", () => {
  const parts = [[0, 1.5], [2, 3], [3, 4]].map(([start, end], i) => ({ start_s: start, end_s: end, position: i, part: `p${i}`, take: `t${i}` }));
  assert.deepEqual(inARow(parts).map(({ part, pause }) => [part, pause]), [["p0", 0.5], ["p1", 0], ["p2", 0]]);
  assert.deepEqual(inARow([]), []);
});

test("chapters with changed parts are named, at most three of them", () => {
  const chapters = (...titles) => titles.map((title, i) => ({ title, parts: { stale: i ? 1 : 0 } }));
  assert.equal(changedWords(chapters("One", "Two")), "Chapters with changes: “Two”.");
  assert.equal(changedWords(chapters("One", "Two", "Three", "Four", "Five")), "Chapters with changes: “Two”, “Three”, “Four”, and 1 more chapter.");
  assert.equal(changedWords([{ title: "", parts: { stale: 1 } }, ...chapters("One")]), "Chapters with changes: Before the first chapter.");
  assert.equal(changedWords([{ title: "", parts: { stale: 1 } }]), "", "a project without chapters");
  assert.equal(changedWords(chapters("One")), "");
});

test("a recording's level and a clip's score get a grade", () => {
  assert.deepEqual([[0, -20], [-6, -9], [-1, -20], [-6, -50], [-6, -20]].map(([peak, rms]) => verdict(peak, rms)[0]), ["loud", "loud", "good", "quiet", "good"]);
  assert.deepEqual([100, 80, 79, 50, 49].map(gradeOf), ["good", "good", "fair", "fair", "bad"]);
});

test("votes are totalled and sorted by times chosen best, then by mean score", () => {
  const round = (...votes) => ({ id: votes.length, votes: votes.map(([label, score, best]) => ({ label, score, best })) });
  const table = tally([round(["A", 3, false], ["B", null, true]), round(["A", 5, false], ["C", 5, false])]);
  assert.deepEqual(
    table.map(({ label, mean, best, votes, rounds }) => [label, mean, best, votes, rounds]),
    [["B", null, 1, 0, 1], ["C", 5, 0, 1, 1], ["A", 4, 0, 2, 2]],
  );
});

test("a refusal has a reason and advice, even if the response is not JSON", async () => {
  const answer = (status, body, headers = {}) => refusalOf(new Response(body, { status, headers }));
  const busy = await answer(429, JSON.stringify({ error: { message: "Full.", param: null } }), { "retry-after": "3" });
  assert.deepEqual([busy.status, busy.why, busy.retryAfter], [429, "Full.", 3]);
  const field = await answer(400, JSON.stringify({ error: { message: "it is too fast", param: "speed" } }));
  assert.deepEqual([field.why, /another speed/.test(field.advice)], ["It is too fast", true]);
  assert.equal((await answer(400, JSON.stringify({ error: { message: "ref_text is too long" } }))).why, "ref_text is too long");
  for (const [param, message, why] of [
    ["input", "input has 20000 characters; at most 16384 are allowed", "“Script” has 20000 characters; at most 16384 are allowed"],
    ["title", "title: String should have at most 200 characters", "“Title” should have at most 200 characters"],
    ["speed", "speed: Input should be less than or equal to 4", "“Speed” should be less than or equal to 4"],
    ["max_new_tokens", "max_new_tokens: Input should be less than or equal to 4096", "“Maximum length” is longer than a take can be."],
    ["ref_text", "ref_text is missing: send the words as ref_text", "The model needs the clip and its transcript together."],
    ["name", "the name has 300 characters; at most 100 are allowed", "The name has 300 characters; at most 100 are allowed"],
  ]) assert.equal((await answer(400, JSON.stringify({ error: { message, param } }))).why, why);
  const odd = await answer(502, "<html>Bad gateway</html>");
  assert.match(odd.why, /answered 502 without giving a reason/);
  assert.equal(odd.retryAfter, null);
  assert.equal((await answer(404, "404 page not found")).isLost, true); // a proxy's, or a tunnel's: the studio gives a reason
  assert.equal((await answer(404, JSON.stringify({ error: { message: "no such part", param: "part" } }))).isOfPart, true);
});

test("a voice introduces itself in its language, else in English", () => {
  assert.equal(sampleSentence("de-AT"), READINGS.de.sample);
  assert.equal(sampleSentence("fi"), READINGS.en.sample);
  assert.equal(sampleSentence(null), READINGS.en.sample);
});

test("loudness is shown before and after processing", () => {
  const at = (lufs, peak, rms, floor) => ({ integrated_lufs: lufs, true_peak_db: peak, rms_db: rms, noise_floor_db: floor });
  const before = at(-22.8, -3.12, -24, -120);
  assert.equal(loudnessWords({ loudness: "none", before, after: before, faults: [] }), "As spoken: −22.8 LUFS, peak −3.1 dBTP.");
  assert.equal(
    loudnessWords({ loudness: "acx", before, after: at(-19, -3.6, -20, -52), faults: ["Its noise floor is -52.0 dB, above -60."] }),
    "As spoken: −24.0 dB RMS, peak −3.1 dBTP, no noise. In the files: −20.0 dB RMS, peak −3.6 dBTP, noise −52.0 dB. Its noise floor is -52.0 dB, above -60.",
  );
  assert.match(loudnessWords({ loudness: "podcast", before: at(null, -9, -20, -30), after: at(null, -9, -20, -30), faults: [] }), /too short to measure/);
});
