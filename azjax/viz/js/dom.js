const SVG_SPACE = "http://www.w3.org/2000/svg";

/**
 * Makes an HTML element: `h("button.az-button", {on: {click: f}}, "go")`.
 *
 * The attributes may be left out; `on` has listeners and `style` has CSS properties. Children that
 * are null, undefined or false are skipped.
 */
export function h(name, ...rest) {
  return fill((tag) => document.createElement(tag), name, rest);
}

/** Makes a button; `name` identifies it in code and tests. */
export function pushButton(text, name, click, attributes = {}) {
  const base = { type: "button", class: "az-button", "data-button": name, "data-focus": name, on: { click } };
  return h("button", { ...base, ...attributes }, text);
}

/** Makes an SVG element; see `h`. */
export function svg(name, ...rest) {
  return fill((tag) => document.createElementNS(SVG_SPACE, tag), name, rest);
}

/**
 * Replaces the contents of `parent` by `children`.
 *
 * If the focus was on an element with `data-focus`, it moves to the new element with the same value, or
 * else to a cell of a board or the first control, so that redrawing does not lose the focus.
 */
export function replace(parent, ...children) {
  const active = focusedIn(parent);
  const key = parent.contains(active) ? active.getAttribute("data-focus") : null;
  parent.replaceChildren(...flatten(children));
  if (!key) return;
  const places = [`[data-focus="${CSS.escape(key)}"]`, ".az-cell", "[data-focus]"];
  places.map((place) => parent.querySelector(place)).find(Boolean)?.focus({ preventScroll: true });
}

/** The focused element in the document of `element`. */
export function focusedIn(element) {
  return element.getRootNode().activeElement ?? null;
}

/** Decodes base64 into a typed array of `Type` (little-endian, as every browser's machine is). */
export function numbers(base64, Type) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return new Type(bytes.buffer);
}

/** Writes a number to `digits` decimals, with a minus character. */
export function fixed(x, digits = 2) {
  const text = Math.abs(x).toFixed(digits);
  return x < 0 && Number(text) !== 0 ? `\u2212${text}` : text;
}

/** Writes a number with its sign: +0.21, −0.21, 0.00. */
export function signed(x, digits = 2) {
  const text = fixed(x, digits);
  return x > 0 && Number(text) !== 0 ? `+${text}` : text;
}

/** Writes a fraction as a percentage: 0.314 is 31%. */
export function percent(p) {
  if (p > 0 && p < 0.005) return "<1%";
  return `${Math.round(100 * p)}%`;
}

function fill(create, name, rest) {
  const [tag, ...classes] = name.split(".");
  const element = create(tag);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  const attributes = rest[0]?.constructor === Object ? rest.shift() : {};
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (key === "style") {
      for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
    } else {
      element.setAttribute(key, value === true ? "" : value);
    }
  }
  element.append(...flatten(rest));
  return element;
}

function flatten(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false);
}
