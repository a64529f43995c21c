// As much of a document as the components of pages need, so that their contents are tested without
// a browser. Queries are lists of simple selectors such as `td[data-column='p']`.

class Part {
  constructor(tagName) {
    Object.assign(this, { tagName, attributes: {}, childNodes: [], listeners: {}, parentNode: null });
    this.style = { setProperty: () => {} };
    this.classList = { toggle: () => {}, add: () => {} };
    this.dataset = new Proxy(this.attributes, {
      get: (all, name) => all[dataName(name)],
      set: (all, name, value) => Reflect.set(all, dataName(name), String(value)),
      deleteProperty: (all, name) => Reflect.deleteProperty(all, dataName(name)),
    });
  }

  setAttribute(name, value) {
    this.attributes[name] = String(value);
  }

  getAttribute(name) {
    return this.attributes[name] ?? null;
  }

  hasAttribute(name) {
    return name in this.attributes;
  }

  removeAttribute(name) {
    delete this.attributes[name];
  }

  append(...children) {
    for (const child of children) if (child instanceof Part) child.parentNode = this;
    this.childNodes.push(...children);
  }

  replaceChildren(...children) {
    this.childNodes = [];
    this.append(...children);
  }

  insertBefore(child, next) {
    child.remove();
    child.parentNode = this;
    this.childNodes.splice(next ? this.childNodes.indexOf(next) : this.childNodes.length, 0, child);
  }

  remove() {
    const siblings = this.parentNode?.childNodes ?? [];
    if (siblings.includes(this)) siblings.splice(siblings.indexOf(this), 1);
  }

  addEventListener(name, listener) {
    (this.listeners[name] ??= []).push(listener);
  }

  /** Calls the listeners of an event, here and above; `value` is the field's new value. */
  fire(name, more = {}, value = this.value) {
    this.value = value;
    this.selectedIndex = this.all("option").findIndex((option) => option.attributes.value === String(value));
    const event = { target: this, preventDefault: () => (event.defaultPrevented = true), stopPropagation: () => {}, ...more };
    for (let at = this; at; at = at.parentNode) {
      for (const listener of at.listeners[name] ?? []) listener({ ...event, currentTarget: at });
    }
  }

  /** Changes the field of a setting. */
  enter(setting, value) {
    this.querySelector(`[data-setting='${setting}']`).fire("change", {}, value);
  }

  focus() {}

  matches(query) {
    return matches(this, query);
  }

  closest(query) {
    return matches(this, query) ? this : (this.parentNode?.closest(query) ?? null);
  }

  click() {
    this.fire("click");
  }

  contains() {
    return false; // Nothing has the focus.
  }

  getRootNode() {
    return {};
  }

  get viewBox() {
    const [, , width, height] = this.attributes.viewBox?.split(" ").map(Number) ?? [];
    return width && { baseVal: { width, height } };
  }

  get textContent() {
    return this.childNodes.map((child) => child.textContent ?? String(child)).join("");
  }

  set textContent(text) {
    this.replaceChildren(text);
  }

  /** All parts that a query matches, in their order. */
  all(query) {
    const below = this.childNodes.filter((child) => child instanceof Part);
    return below.flatMap((child) => [...(matches(child, query) ? [child] : []), ...child.all(query)]);
  }

  querySelectorAll(query) {
    return this.all(query);
  }

  querySelector(query) {
    return this.all(query)[0] ?? null;
  }

  /** Clicks the button of a name. */
  press(name) {
    this.querySelector(`[data-button='${name}']`).click();
  }
}

function dataName(name) {
  return `data-${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function matches(part, query) {
  return query.split(", ").some((selector) => {
    const [, tag, rest] = /^([a-z\d]*)(.*)$/.exec(selector);
    const has = ([, not, look, name, value]) => {
      if (not) return !matches(part, not);
      if (look) return (part.attributes.class ?? "").split(" ").includes(look);
      return value === undefined ? name in part.attributes : part.attributes[name] === value;
    };
    const parts = rest.matchAll(/:not\((.*?)\)|\.([\w-]+)|\[([\w-]+)(?:='?([^'\]]*)'?)?\]/g);
    return (!tag || tag === part.tagName) && [...parts].every(has);
  });
}

globalThis.document = {
  createElement: (tag) => new Part(tag),
  createElementNS: (_, tag) => new Part(tag),
};
globalThis.ResizeObserver = class {
  observe() {}
};
globalThis.matchMedia = () => ({ matches: true });

/** An empty part of a page. */
export function newRoot() {
  return new Part("div");
}
