// Where a page looks: one position, one iteration, one moment, the same in all of its parts.

const PATTERNS = { board: /^[.XO]+$/, t: /^\d+$/ };
const SETTING = /^[a-z][\w.]*$|^\d[\d.]*$/; // Of a search; the explorer knows which there are.
const DELAY = 150; // Milliseconds; browsers refuse addresses that change more often.

/** What the components of a page share; each follows it, and changes it for all. */
export class Place {
  #values = {};
  #followers = [];

  /** As text: the `board` in ".XO", the `iteration`, the time `t` of a search, a setting of it. */
  get(name) {
    return this.#values[name];
  }

  /** Changes some values; whoever follows hears of it if one of them is new. */
  set(changes) {
    const given = Object.entries(changes).map(([name, value]) => [name, value === undefined ? value : String(value)]);
    const names = given.filter(([name, value]) => this.#values[name] !== value).map(([name]) => name);
    if (!names.length) return;
    this.#values = { ...this.#values, ...Object.fromEntries(given) };
    for (const follower of this.#followers) follower(names);
  }

  /** Calls `follower(names)` now, and after every change with the names of what changed. */
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

  /** Takes over what an address says, as far as it can be understood. */
  read(text) {
    const known = [...new URLSearchParams(text)].filter(([name, value]) => (PATTERNS[name] ?? SETTING).test(value));
    this.set(Object.fromEntries(known));
  }
}

/** Keeps a place in the address of a window, so that a link shows what one saw. */
export function keepInAddress(place, window) {
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
