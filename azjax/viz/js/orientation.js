// The canonical orientation of boards, and moves that depend on it; see `azjax/networks/orientation.py`
// and `azjax/players/overrides.py`.

/**
 * Turns planes into their canonical orientation, the smallest of their symmetric copies.
 *
 * `cells` are the symmetries of the board, and `planes` are 0 or 1, cell by cell. Returns
 * `{planes, leads}`, where `leads` lists the symmetries that lead to the smallest copy.
 */
export function orient(cells, planes) {
  const channels = planes.length / cells[0].length;
  let [smallest, leads] = [null, []];
  cells.forEach((order, symmetry) => {
    const copy = new Uint8Array(planes.length);
    order.forEach((cell, i) => {
      for (let c = 0; c < channels; c++) copy[i * channels + c] = planes[cell * channels + c];
    });
    const sign = smallest ? compare(copy, 0, smallest, 0, copy.length) : -1;
    if (sign < 0) [smallest, leads] = [copy, [symmetry]];
    else if (sign === 0) leads.push(symmetry);
  });
  return { planes: smallest, leads };
}

/** Moves that replace those of a player in single positions and their symmetric copies. */
export class Overrides {
  #symmetries;
  #table;
  #actions;
  #width;

  /**
   * `symmetries` are those of the cells and of the actions. `rows` has the bits of `count` sorted
   * positions, column by column: the first byte of every position, then the second.
   */
  constructor(symmetries, rows, actions) {
    const count = actions.length;
    this.#width = count ? rows.length / count : 0;
    this.#table = new Uint8Array(rows.length);
    for (let i = 0; i < rows.length; i++) this.#table[(i % count) * this.#width + Math.floor(i / count)] = rows[i];
    [this.#symmetries, this.#actions] = [symmetries, actions];
  }

  /** The number of positions up to symmetry. */
  get size() {
    return this.#actions.length;
  }

  /** The move in a position with these planes, or null if the table does not have it. */
  find(planes) {
    const oriented = orient(this.#symmetries.cells, planes);
    const row = this.#search(packBits(oriented.planes));
    return row < 0 ? null : this.#symmetries.actions[oriented.leads[0]][this.#actions[row]];
  }

  #search(bits) {
    let [low, high] = [0, this.size - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const sign = compare(bits, 0, this.#table, middle * this.#width, this.#width);
      if (sign === 0) return middle;
      if (sign < 0) high = middle - 1;
      else low = middle + 1;
    }
    return -1;
  }
}

/** Packs eight entries into a byte, the first one in the highest bit, as `np.packbits` does. */
function packBits(planes) {
  const bits = new Uint8Array(Math.ceil(planes.length / 8));
  planes.forEach((bit, i) => (bits[i >> 3] |= bit << (7 - (i & 7))));
  return bits;
}

/** Compares `count` entries of two arrays: negative, 0 or positive. */
function compare(a, from, b, start, count) {
  for (let i = 0; i < count; i++) if (a[from + i] !== b[start + i]) return a[from + i] - b[start + i];
  return 0;
}
