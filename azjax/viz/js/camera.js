const RANGE = [0.86, 2]; // The smallest letters, 10.5 pixels, stay above 9 pixels.
const FITTED = 1.2; // A small tree is enlarged up to this.
/** Pixels around a drawing. */
export const PADDING = 10;
const FALLBACK = { width: 800, height: 480 }; // For a hidden picture, which has no size.

/** The visible part of a drawing: all of it, until the reader drags or enlarges. */
export class Camera {
  #at = { x: 0, y: 0, scale: 1 };
  #zoom = 1; // Chosen by the reader; below 1 the drawing gets more room.
  #free = false; // Whether the reader has dragged or enlarged.
  #aim = null;
  #onRoom;
  #pointers = new Map();
  #moved = 0;

  /** `stage` is the group of `picture` that moves; `onRoom()` is called when its room changes. */
  constructor(picture, stage, onRoom) {
    Object.assign(this, { picture, stage });
    this.#onRoom = onRoom;
    const on = (name, handler, options) => picture.addEventListener(name, handler, options);
    on("wheel", (event) => this.#wheel(event), { passive: false });
    on("pointerdown", (event) => this.#down(event));
    on("pointermove", (event) => this.#drag(event));
    for (const name of ["pointerup", "pointercancel"]) {
      on(name, (event) => this.#pointers.delete(event.pointerId));
    }
    new ResizeObserver(() => onRoom()).observe(picture);
  }

  /** Whether the pointer's last press was a drag, not a click. */
  get dragged() {
    return this.#moved >= 4;
  }

  /** The size of a drawing that fits the picture, in drawing units. */
  get room() {
    const { width, height } = this.#size();
    const scale = Math.min(1, this.#zoom);
    return { width: (width - 2 * PADDING) / scale, height: (height - 2 * PADDING) / scale };
  }

  /**
   * Shows a drawing of this extent; its `root`, a rectangle, always stays in the picture.
   *
   * A view chosen by the reader stays, as long as all rectangles of `path` are visible.
   */
  aim(extent, root, path = []) {
    this.#aim = { extent, root };
    if (!path.every((place) => this.#shows(place))) {
      this.#free = false;
      this.#zoom = Math.min(1, this.#zoom);
    }
    if (this.#free) this.#move(this.#at, true);
    else this.#fitted(true);
  }

  /** Zooms about the middle of the picture. */
  zoom(factor) {
    const { width, height } = this.#size();
    this.#zoomAt(factor, width / 2, height / 2, true);
  }

  /** Shows all of the drawing again. */
  fit() {
    this.#free = false;
    this.#zoom = 1;
    this.#onRoom();
  }

  /** Makes a rectangle visible. */
  reveal(place) {
    if (!this.#shows(place)) this.fit();
  }

  #shows({ left, top, width, height }) {
    const { x, y, scale } = this.#at;
    const size = this.#size();
    const [x1, y1] = [x + scale * left, y + scale * top];
    const [x2, y2] = [x1 + scale * width, y1 + scale * height];
    return x1 >= -1 && y1 >= -1 && x2 <= size.width + 1 && y2 <= size.height + 1;
  }

  #size() {
    const { clientWidth, clientHeight } = this.picture;
    return clientWidth ? { width: clientWidth, height: clientHeight } : FALLBACK;
  }

  #fitted(smooth) {
    const { extent } = this.#aim;
    const { width, height } = this.#size();
    const whole = Math.min((width - 2 * PADDING) / extent.width, (height - 2 * PADDING) / extent.height, FITTED);
    const scale = this.#zoom < 1 ? this.#zoom : Math.max(1, whole);
    const x = (width - scale * extent.width) / 2 - scale * extent.left;
    this.#move({ x, y: PADDING - scale * extent.top, scale }, smooth);
  }

  /** Moves there, or as far as the root allows. */
  #move({ x, y, scale }, smooth) {
    const { root } = this.#aim;
    const { width, height } = this.#size();
    const at = {
      x: clamp(x, 2 - scale * root.left, width - 2 - scale * (root.left + root.width)),
      y: clamp(y, 2 - scale * root.top, height - 2 - scale * (root.top + root.height)),
      scale,
    };
    this.#at = at;
    this.stage.classList.toggle("az-smooth", smooth);
    this.stage.style.setProperty("transform", `translate(${at.x}px, ${at.y}px) scale(${at.scale})`);
  }

  #zoomAt(factor, px, py, smooth) {
    const { x, y, scale } = this.#at;
    const next = clamp(scale * factor, ...RANGE);
    const ratio = next / scale;
    const [before, zoom] = [Math.min(1, this.#zoom), Math.min(1, next)];
    this.#zoom = next;
    this.#free = next > 1;
    if (before !== zoom) this.#onRoom();
    if (!this.#free) this.#fitted(smooth);
    else this.#move({ x: px - ratio * (px - x), y: py - ratio * (py - y), scale: next }, smooth);
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
    if (!event.buttons) return this.#pointers.delete(event.pointerId); // Released elsewhere.
    const now = { x: event.clientX, y: event.clientY };
    const others = [...this.#pointers].filter(([id]) => id !== event.pointerId);
    this.#moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    this.#pointers.set(event.pointerId, now);
    if (!this.dragged) return; // A click, not a drag.
    // Not earlier: a click of a captured pointer would miss the node under it.
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

function clamp(x, low, high) {
  return Math.min(Math.max(x, low), Math.max(low, high));
}
