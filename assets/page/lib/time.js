// Formats and parses durations.

import { phrase } from "./phrases.js";

/**
 * Format minutes and seconds, such as 1:05.3.
 *
 * @param {number} seconds
 */
export function clock(seconds) {
  const whole = Math.max(0, seconds);
  return `${Math.floor(whole / 60)}:${(whole % 60).toFixed(1).padStart(4, "0")}`;
}

/**
 * Return the seconds in a typed time: 65, 1:05, 1:05.3 or 1:00:05; NaN for anything else.
 *
 * @param {string} text
 */
export function secondsIn(text) {
  const parts = text.trim().split(":");
  if (parts.length > 3 || !parts.every((part) => /^\d+(\.\d+)?$/.test(part))) return Number.NaN;
  return parts.reduce((sum, part) => sum * 60 + Number(part), 0);
}

/**
 * Format hours and minutes, minutes and seconds, or seconds alone; at least one second.
 *
 * @param {number} seconds
 */
export function duration(seconds) {
  const whole = Math.max(1, Math.round(seconds));
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  if (hours) return phrase("time.hours", { hours, minutes });
  return whole >= 60 ? phrase("time.minutes", { minutes, seconds: whole % 60 }) : phrase("time.seconds", { seconds: whole });
}
