// The inner loop of networks, y += x W, which adds the rows of W times the numbers of x, four
// columns at a time. JavaScript has no such instructions, but WebAssembly does. This file assembles
// the loop by hand (webassembly.github.io/spec/core/binary).

const PAGE = 65_536; // Bytes, the unit of memory.
const [VALUES, ROWS, SUMS] = [0, PAGE, 2 * PAGE]; // Addresses of the lists; the matrices follow.
const I32 = 0x7f;
const V128 = 0x7b;

// Operands and local variables: the bytes in the list and in a row, the current offsets in both,
// the addresses of four rows, and their factors, each in all four lanes.
const [LIST, WIDTH, AT, ALONG, ROW, TIMES] = [0, 1, 2, 3, 4, 8];

const get = (local) => [0x20, local];
const set = (local) => [0x21, local];
const tee = (local) => [0x22, local];
const constant = (number) => [0x41, number];
const add = [0x6a];
const lessThan = [0x49];
const lanesAdd = [0xfd, 0xe4, 0x01];
const lanesTimes = [0xfd, 0xe6, 0x01];
const loadNumber = (offset) => [0x28, 2, ...leb128(offset)];
const loadInLanes = (offset) => [0xfd, 0x09, 2, ...leb128(offset)];
const loadFour = (offset) => [0xfd, 0x00, 2, ...leb128(offset)];
const storeFour = (offset) => [0xfd, 0x0b, 2, ...leb128(offset)];

/** Repeats the code while a local variable is below another; it grows by 16 bytes each time. */
const loop = (local, end, ...code) =>
  [0x03, 0x40, code, get(local), constant(16), add, tee(local), get(end), lessThan, 0x0d, 0, 0x0b];

const product = (i) => [get(TIMES + i), get(ROW + i), get(ALONG), add, loadFour(0), lanesTimes];

const CODE = [
  loop(
    ...[AT, LIST],
    [0, 1, 2, 3].map((i) => [
      ...[get(AT), loadInLanes(VALUES + 4 * i), set(TIMES + i)],
      ...[get(AT), loadNumber(ROWS + 4 * i), set(ROW + i)],
    ]),
    ...[constant(0), set(ALONG)],
    loop(
      ...[ALONG, WIDTH],
      ...[get(ALONG), get(ALONG), loadFour(SUMS)],
      ...[product(0), product(1), lanesAdd, product(2), product(3), lanesAdd, lanesAdd],
      ...[lanesAdd, storeFour(SUMS)],
    ),
  ),
  0x0b,
];

let compiled = null;

/** Matrices, and the sums of their rows, in float32. */
export class Sums {
  #memory = new WebAssembly.Memory({ initial: 3 });
  #add;
  #values;
  #rows;
  #sums;
  #count = 0;

  constructor() {
    compiled ??= new WebAssembly.Module(assemble());
    this.#add = new WebAssembly.Instance(compiled, { azjax: { memory: this.#memory } }).exports.add;
  }

  /** Stores a matrix, given row by row, and returns a handle for `list`. */
  keep(matrix, columns) {
    const width = 4 * Math.ceil(columns / 4); // Padded with zeros.
    const rows = matrix.length / columns;
    const address = PAGE * this.#memory.grow(Math.ceil((4 * rows * width) / PAGE));
    const { buffer } = this.#memory; // Growing replaces the buffer.
    const kept = new Float32Array(buffer, address, rows * width);
    for (let i = 0; i < rows; i++) kept.set(matrix.subarray(i * columns, (i + 1) * columns), i * width);
    this.#values = new Float32Array(buffer, VALUES, PAGE / 4);
    this.#rows = new Int32Array(buffer, ROWS, PAGE / 4);
    this.#sums = new Float32Array(buffer, SUMS, PAGE / 4);
    return { address, stride: 4 * width };
  }

  /**
   * Lists `count` numbers of `x`, starting at `x[from]`, with the rows of a matrix from `row` on that
   * they multiply. Negative numbers count as 0, as after a ReLU, unless `signed`.
   */
  list({ address, stride }, row, x, from, count, signed = false) {
    const [values, rows] = [this.#values, this.#rows];
    let length = this.#count;
    for (let i = 0; i < count; i++) {
      if (!(x[from + i] > 0 || (signed && x[from + i] < 0))) continue;
      values[length] = x[from + i];
      rows[length++] = address + (row + i) * stride;
    }
    this.#count = length;
  }

  /** Adds the listed products to `bias`; returns the sums, which are valid until the next call. */
  total(bias) {
    const sums = this.#sums.subarray(0, bias.length);
    sums.set(bias);
    if (this.#count) {
      const length = 4 * Math.ceil(this.#count / 4); // Padded with zeros, for any row.
      this.#values.fill(0, this.#count, length);
      this.#rows.fill(this.#rows[0], this.#count, length);
      this.#add(4 * length, 4 * bias.length);
    }
    this.#count = 0;
    return sums;
  }
}

/** The binary module: one function of two operands, with imported memory. */
function assemble() {
  const text = (word) => counted([...word].map((letter) => letter.charCodeAt(0)));
  const section = (id, content) => [id, counted([1, ...content.flat(Infinity)])];
  const locals = [2, 6, I32, 4, V128];
  const bytes = [
    [0, ...[..."asm"].map((letter) => letter.charCodeAt(0)), 1, 0, 0, 0],
    section(1, [0x60, 2, I32, I32, 0]),
    section(2, [text("azjax"), text("memory"), 2, 0, 0]),
    section(3, [0]),
    section(7, [text("add"), 0, 0]),
    section(10, [counted([locals, CODE].flat(Infinity))]),
  ];
  return Uint8Array.from(bytes.flat(Infinity));
}

/** Bytes, preceded by their count. */
function counted(bytes) {
  return [...leb128(bytes.length), ...bytes];
}

/** A number in the format of WebAssembly, seven bits a byte. */
function leb128(number) {
  return number < 128 ? [number] : [(number % 128) + 128, ...leb128(Math.floor(number / 128))];
}
