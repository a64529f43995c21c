// A document without a browser: as much of it as the components of pages use.

const kebab = (name) => `data-${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
const attribute = /^([\w-]+)\[([\w-]+)(\^?=)?"?([^"\]]*)"?\]$|^\.([\w-]+)$/;

class Element {
  #attributes = new Map();
  childNodes = [];
  parentNode = null;
  style = { setProperty() {} };
  listeners = {};

  constructor(tag) {
    this.tag = tag;
    this.dataset = new Proxy({}, {
      get: (_, name) => this.#attributes.get(kebab(name)),
      set: (_, name, value) => this.setAttribute(kebab(name), value) ?? true,
      deleteProperty: (_, name) => this.#attributes.delete(kebab(name)) || true,
    });
    const classes = () => new Set((this.getAttribute("class") ?? "").split(" "));
    const change = (name, on) => {
      const all = classes();
      all[on ? "add" : "delete"](name);
      this.setAttribute("class", [...all].join(" "));
    };
    this.classList = { toggle: change, contains: (name) => classes().has(name) };
  }

  setAttribute(name, value) {
    this.#attributes.set(name, String(value));
  }

  getAttribute(name) {
    return this.#attributes.get(name) ?? null;
  }

  hasAttribute(name) {
    return this.#attributes.has(name);
  }

  removeAttribute(name) {
    this.#attributes.delete(name);
  }

  get hidden() {
    return this.hasAttribute("hidden");
  }

  set hidden(on) {
    if (on) this.setAttribute("hidden", "");
    else this.removeAttribute("hidden");
  }

  append(...nodes) {
    for (const node of nodes) {
      node.remove?.();
      if (node instanceof Element) node.parentNode = this;
      this.childNodes.push(node);
    }
  }

  insertBefore(node, next) {
    this.append(node);
    if (next) this.childNodes.splice(this.childNodes.indexOf(next), 0, this.childNodes.pop());
  }

  replaceChildren(...nodes) {
    for (const node of [...this.childNodes]) node.remove?.();
    this.childNodes = [];
    this.append(...nodes);
  }

  remove() {
    if (this.parentNode) this.parentNode.childNodes = this.parentNode.childNodes.filter((node) => node !== this);
    this.parentNode = null;
  }

  contains() {
    return false; // Nothing has the focus.
  }

  getRootNode() {
    return {};
  }

  scrollIntoView() {}

  addEventListener(name, listener) {
    this.listeners[name] = listener;
  }

  /** The text that a reader sees. */
  get textContent() {
    return this.childNodes.filter((node) => !node.hidden).map((node) => node.textContent ?? node).join(" ");
  }

  set textContent(text) {
    this.replaceChildren(text);
  }

  /** All elements below, which `.class` or `[name]` or `[name=value]` selects. */
  querySelectorAll(selector) {
    const [, , name, equals, value, look] = attribute.exec(selector.startsWith("[") ? `x${selector}` : selector);
    const fits = (element) => (look ? element.classList.contains(look) : equals ? element.getAttribute(name) === value : element.hasAttribute(name));
    const below = this.childNodes.filter((node) => node instanceof Element);
    return below.flatMap((element) => [...(fits(element) ? [element] : []), ...element.querySelectorAll(selector)]);
  }

  querySelector(selector) {
    return this.querySelectorAll(selector)[0] ?? null;
  }

  /** Calls the listener of an event, as a click of the reader does. */
  fire(name, event = {}) {
    this.listeners[name]({ target: this, ...event });
  }
}

globalThis.document = { createElement: (tag) => new Element(tag), createElementNS: (_, tag) => new Element(tag) };
globalThis.matchMedia = () => ({ matches: true }); // Without animations.
globalThis.ResizeObserver = class {
  observe() {}
};

export function press(root, name) {
  root.querySelector(`[data-button=${name}]`).fire("click");
}

export function clickCell(root, cell) {
  root.querySelector(`[data-cell=${cell}]`).fire("click");
}

/** Waits until a condition holds: for the moves of a network, and for its searches. */
export async function until(condition) {
  const deadline = Date.now() + 20_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`not within 20 seconds: ${condition}`);
    await new Promise((done) => setTimeout(done, 2));
  }
}

/** The text of all elements with an attribute or a class. */
export function textsOf(root, selector) {
  return root.querySelectorAll(selector).map((element) => element.textContent.replace(/ +/g, " ").trim());
}
