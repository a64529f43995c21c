const SMALLEST = 0.45; // A tree that would have to be smaller than this to fit is followed instead.
const FITTED = 1.15;
const RANGE = [0.15, 2.5];
const PADDING = 18;
const BELOW = 90; // Room below a node's top that shows the node and what stands under it.
const FALLBACK = { width: 800, height: 480 }; // While the picture is hidden and has no size.

/** Which part of a large drawing a picture shows: fitted to it, until the reader drags or zooms. */
export class Camera {
  #at = { x: 0, y: 0, scale: 1 };
  #free = false; // Whether the reader has taken over.
  #aim = null;
  #aimed = "";
  #pointers = new Map();
  #moved = 0;

  /** `stage` is the group of `picture` that moves. */
  constructor(picture, stage) {
    Object.assign(this, { picture, stage });
    const on = (name, handler, options) => picture.addEventListener(name, handler, options);
    on("wheel", (event) => this.#wheel(event), { passive: false });
    on("pointerdown", (event) => this.#down(event));
    on("pointermove", (event) => this.#drag(event));
    for (const name of ["pointerup", "pointercancel"]) {
      on(name, (event) => this.#pointers.delete(event.pointerId));
    }
    new ResizeObserver(() => this.#follow(false)).observe(picture);
  }

  /** Whether the pointer's last press was a drag, and no click. */
  get dragged() {
    return this.#moved >= 4;
  }

  /** Shows `extent`, or as much of it as can be read, `focus` at any rate. */
  aim(extent, focus) {
    this.#aim = { extent, focus };
    this.#follow(true);
  }

  /** Enlarges about the middle of the picture. */
  zoom(factor) {
    const { width, height } = this.#size();
    this.#zoomAt(factor, width / 2, height / 2, true);
  }

  /** Follows its aim again; `smooth` for those who are looking. */
  fit(smooth = true) {
    this.#free = false;
    this.#aimed = "";
    this.#follow(smooth);
  }

  /** Moves just far enough for a node to be seen. */
  reveal({ x: left, y: top }) {
    const { width, height } = this.#size();
    const { x, y, scale } = this.#at;
    const dx = shiftInto(x + scale * (left - 28), x + scale * (left + 28), width);
    const dy = shiftInto(y + scale * (top - 10), y + scale * (top + 76), height);
    if (dx || dy) this.#free = true;
    this.#move({ x: x + dx, y: y + dy, scale }, true);
  }

  #size() {
    const { clientWidth, clientHeight } = this.picture;
    return clientWidth ? { width: clientWidth, height: clientHeight } : FALLBACK;
  }

  #follow(smooth) {
    if (!this.#aim || this.#free) return;
    const { extent, focus } = this.#aim;
    const { width, height } = this.#size();
    const key = JSON.stringify([extent, focus, width, height]);
    if (key === this.#aimed) return;
    const room = { width: width - 2 * PADDING, height: height - 2 * PADDING - 12 };
    const whole = Math.min(room.width / extent.width, room.height / extent.height, FITTED);
    const scale = Math.max(whole, SMALLEST);
    const x = centred(extent.left, extent.width, width, scale, focus.x);
    const lowest = height - PADDING - 12 - scale * (focus.y - extent.top + BELOW);
    const y = extent.height * scale > room.height ? Math.min(PADDING, lowest) : PADDING;
    this.#move({ x, y: y - scale * extent.top, scale }, smooth && this.#aimed !== "");
    this.#aimed = key;
  }

  #move(at, smooth) {
    this.#at = at;
    this.stage.classList.toggle("az-smooth", smooth);
    this.stage.style.setProperty("transform", `translate(${at.x}px, ${at.y}px) scale(${at.scale})`);
  }

  #zoomAt(factor, px, py, smooth) {
    const { x, y, scale } = this.#at;
    const next = Math.min(Math.max(scale * factor, RANGE[0]), RANGE[1]);
    const ratio = next / scale;
    this.#free = true;
    this.#move({ x: px - ratio * (px - x), y: py - ratio * (py - y), scale: next }, smooth);
  }

  #wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // A plain wheel scrolls the page.
    event.preventDefault();
    const box = this.picture.getBoundingClientRect();
    const factor = Math.exp(-event.deltaY / 300);
    this.#zoomAt(factor, event.clientX - box.left, event.clientY - box.top, false);
  }

  #down(event) {
    if (event.button) return;
    this.#moved = this.#pointers.size ? this.#moved : 0;
    this.#pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  }

  #drag(event) {
    const before = this.#pointers.get(event.pointerId);
    if (!before) return;
    if (!event.buttons) return this.#pointers.delete(event.pointerId); // Let go elsewhere.
    const now = { x: event.clientX, y: event.clientY };
    const others = [...this.#pointers].filter(([id]) => id !== event.pointerId);
    this.#moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    this.#pointers.set(event.pointerId, now);
    if (!this.dragged) return; // A click with an unsteady hand.
    // Only now, since a captured pointer's click would miss the node under it.
    this.picture.setPointerCapture(event.pointerId);
    if (others.length) return this.#pinch(before, now, others[0][1]);
    const { x, y, scale } = this.#at;
    this.#free = true;
    this.#move({ x: x + now.x - before.x, y: y + now.y - before.y, scale }, false);
  }

  #pinch(before, now, other) {
    const distance = (point) => Math.hypot(point.x - other.x, point.y - other.y) || 1;
    const box = this.picture.getBoundingClientRect();
    const middle = [(now.x + other.x) / 2 - box.left, (now.y + other.y) / 2 - box.top];
    this.#zoomAt(distance(now) / distance(before), ...middle, false);
  }
}

/** Where to put the origin: a drawing that fits in the middle, another so that `focus` is seen. */
function centred(left, length, room, scale, focus) {
  if (length * scale <= room - 2 * PADDING) return (room - length * scale) / 2 - left * scale;
  const wanted = room / 2 - focus * scale;
  const last = room - PADDING - (left + length) * scale;
  return Math.min(PADDING - left * scale, Math.max(last, wanted));
}

function shiftInto(low, high, size) {
  if (low < 20) return 20 - low;
  return high > size - 20 ? size - 20 - high : 0;
}
