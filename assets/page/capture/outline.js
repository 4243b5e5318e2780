// Draws the outline of a clip with the used part highlighted.

const STEP = 4; // CSS pixels from bar to bar

/**
 * bars: peaks of the whole clip; seconds: its length; start and end: of the part; position: of playback, null if stopped.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {{ bars: number[], seconds: number, start: number, end: number, position: number | null }} view
 */
export function drawOutline(canvas, { bars, seconds, start, end, position }) {
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (!width) return;
  const scale = window.devicePixelRatio || 1;
  Object.assign(canvas, { width: width * scale, height: height * scale });
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.scale(scale, scale);
  const style = getComputedStyle(canvas);
  const count = Math.floor(width / STEP);
  for (let i = 0; i < count; i += 1) {
    const at = (i / count) * seconds;
    const from = Math.floor((i * bars.length) / count);
    const loudest = Math.max(0, ...bars.slice(from, Math.max(from + 1, Math.floor(((i + 1) * bars.length) / count))));
    const tall = Math.max(2, Math.sqrt(loudest) * (height - 4));
    const isUsed = at >= start && at <= end;
    const name = !isUsed ? "--wave-empty" : position !== null && at < position ? "--wave-heard" : "--wave";
    pen.fillStyle = style.getPropertyValue(name);
    pen.beginPath();
    pen.roundRect(i * STEP, (height - tall) / 2, 2.5, tall, 1.25);
    pen.fill();
  }
}
