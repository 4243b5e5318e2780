// How the list of long work describes a job.

import assert from "node:assert/strict";
import { test } from "node:test";

import { jobName, jobProgress } from "../../assets/page/queue/jobs.js";

const job = { id: "file:1", kind: "file", title: "The Trial (m4b)", project: "p", done: 0, total: 0, left: null, eta_s: null };

test("a job is named by its kind, and one of a kind that the page does not know by its title", () => {
  assert.equal(jobName(job), "Making the file The Trial (m4b)");
  assert.equal(jobName({ ...job, kind: "parts", title: "The Trial" }), "Speaking “The Trial”");
  assert.equal(jobName({ ...job, kind: "toast" }), "The Trial (m4b)");
});

test("only what is known is told", () => {
  assert.equal(jobProgress(job), "");
  assert.equal(jobProgress({ ...job, done: 1, total: 3 }), "33 %");
  assert.equal(jobProgress({ ...job, done: 1, total: 3, eta_s: 90 }), "33 % · about 1 min 30 s left");
  assert.equal(jobProgress({ ...job, kind: "parts", done: 9, total: 4199, left: 67 }), "67 parts in the queue");
  assert.equal(jobProgress({ ...job, kind: "parts", done: 9, total: 4199, left: 67, eta_s: 120 }), "67 queued parts: 2 min 0 s left");
  assert.equal(jobProgress({ ...job, kind: "check", done: 12 }), "12 parts checked");
  assert.equal(jobProgress({ ...job, kind: "model", done: 5e6, total: 2.5e9 }), "5 MB of 2,500 MB");
});
