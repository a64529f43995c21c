// The entry point of pages, and what their components share.

import { play } from "./play.js";
import { proof } from "./proof.js";
import { explorer } from "./explorer.js";

/** The components of pages by their names; a page may add some. */
export const COMPONENTS = { explorer, play, proof };

/** Fills the components of a page from the JSON in it. */
export function mountPage(document) {
  const data = JSON.parse(document.getElementById("azjax-data").textContent);
  const place = new Place();
  for (const root of document.querySelectorAll(".az-component")) {
    COMPONENTS[root.dataset.kind](root, data[root.dataset.number], place);
  }
  keepInAddress(place, document.defaultView);
  document.addEventListener("click", scrollToSection);
}

/** Scrolls to the section of a link; the address stays, as it contains the page's position. */
function scrollToSection(event) {
  const link = event.target.closest("a[href^='#']");
  if (!link) return;
  event.preventDefault();
  const section = document.getElementById(link.getAttribute("href").slice(1));
  section.scrollIntoView();
  section.querySelector("h2").focus({ preventScroll: true });
}

// What a page shows: one position, one iteration and one moment, shared by its components.

const PATTERNS = { board: /^[.XO]+$/, t: /^\d+$/ };
const SETTING = /^[a-z][\w.]*$|^\d[\d.]*$/; // Of a search; the explorer checks the names.
const DELAY = 150; // Milliseconds; browsers reject addresses that change more often.

/** Shared values that every component can change and follow. */
export class Place {
  #values = {};
  #followers = [];

  /** A value as text: the `board`, the `iteration`, the time `t` of a search, one of its settings. */
  get(name) {
    return this.#values[name];
  }

  /** Changes some values, and notifies the followers if one of them is new. */
  set(changes) {
    const given = Object.entries(changes).map(([name, value]) => [name, value === undefined ? value : String(value)]);
    const names = given.filter(([name, value]) => this.#values[name] !== value).map(([name]) => name);
    if (!names.length) return;
    this.#values = { ...this.#values, ...Object.fromEntries(given) };
    for (const follower of this.#followers) follower(names);
  }

  /** Calls `follower(names)` now, and after every change with the names that changed. */
  follow(follower) {
    this.#followers.push(follower);
    follower(Object.keys(this.#values));
  }

  /** The values as the end of an address: `board=X........&iteration=3`. */
  text() {
    return Object.entries(this.#values)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name}=${value}`)
      .join("&");
  }

  /** Reads the values of an address, and ignores malformed ones; `shared` is the board that it has. */
  read(text) {
    const valid = [...new URLSearchParams(text)].filter(([name, value]) => (Object.hasOwn(PATTERNS, name) ? PATTERNS[name] : SETTING).test(value));
    const values = Object.fromEntries(valid);
    this.shared = values.board;
    this.set(values);
  }
}

/** Keeps a place in the address of a window, so that a link restores the view. */
function keepInAddress(place, window) {
  const read = () => place.read(window.location.hash.slice(1));
  read();
  window.addEventListener("hashchange", read);
  let timer = null;
  const write = () => window.history.replaceState(null, "", `#${place.text()}`);
  place.follow((names) => {
    clearTimeout(timer);
    if (names.length) timer = setTimeout(write, DELAY);
  });
}
