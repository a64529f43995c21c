// Where a page looks: one position and one iteration, the same in all of its parts.

const PATTERNS = { board: /^[.XO]+$/, iteration: /^\d+$/ };

/** What the components of a page share; each follows it, and changes it for all. */
export class Place {
  #values = {};
  #followers = [];

  /** The board as text of ".XO", the number of an iteration, or undefined. */
  get(name) {
    return this.#values[name];
  }

  /** Changes some values; whoever follows hears of it if one of them is new. */
  set(changes) {
    const names = Object.keys(changes).filter((name) => this.#values[name] !== changes[name]);
    if (!names.length) return;
    this.#values = { ...this.#values, ...changes };
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
    const pairs = text.split("&").map((part) => part.split("="));
    const known = pairs.filter(([name, value]) => PATTERNS[name]?.test(value ?? ""));
    this.set(Object.fromEntries(known));
  }
}

/** Keeps a place in the address of a window, so that a link shows what one saw. */
export function keepInAddress(place, window) {
  const read = () => place.read(decodeURIComponent(window.location.hash.slice(1)));
  read();
  window.addEventListener("hashchange", read);
  place.follow((names) => {
    if (names.length) window.history.replaceState(null, "", `#${place.text()}`);
  });
}
