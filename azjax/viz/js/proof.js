import { board, boardText, openTable, playerToMove } from "./board.js";
import { h, pushButton, replace } from "./dom.js";
import { gameNamed } from "./games.js";
import { networkOf, openNetworks, opinionOf } from "./network.js";
import { playerName } from "./words.js";

/** Every game against the network: the reader chooses each reply, and sees what lies below it. */
export function proof(root, data, place) {
  const table = openTable(data);
  const game = gameNamed("tic_tac_toe");
  const choices = openNetworks(data, game, table).map((network) => ({
    iteration: network.iteration,
    choose: (cells) => opinionOf(network, game, game.at(cells)).move,
  }));
  new Walk(root, table, choices, place);
}

/** Counts `{won, drawn, lost}`, for the network, over every line of play below a position. */
export class Lines {
  #known = new Map();

  /** `choose(cells)` is the network's move. */
  constructor(table, choose, seat) {
    Object.assign(this, { table, choose, seat });
  }

  below(cells) {
    const row = this.table.find(cells);
    if (!this.#known.has(row)) this.#known.set(row, this.#count(cells, row));
    return this.#known.get(row);
  }

  /** The moves that these lines take: all of the reader's, and one of the network's. */
  moves(cells) {
    const row = this.table.find(cells);
    if (this.table.over(row)) return [];
    if (playerToMove(cells) === this.seat) return [this.choose(cells)];
    return cells.flatMap((stone, cell) => (stone ? [] : [cell]));
  }

  #count(cells, row) {
    if (this.table.over(row)) return this.#end(cells);
    const counts = this.moves(cells).map((cell) => this.below(put(cells, cell)));
    const sum = (name) => counts.reduce((total, count) => total + count[name], 0);
    return { won: sum("won"), drawn: sum("drawn"), lost: sum("lost") };
  }

  #end(cells) {
    const line = this.table.line(cells);
    const mine = line && (cells[line[0]] === 1) === (this.seat === 0);
    return { won: Number(Boolean(mine)), drawn: Number(!line), lost: Number(Boolean(line) && !mine) };
  }
}

class Walk {
  constructor(root, table, choices, place) {
    Object.assign(this, { root, table, choices, place });
    this.#begin(0);
    place.follow((names) => names.includes("iteration") && this.#begin(this.lines.seat));
  }

  /** The network of the page's iteration, or the newest. */
  get #network() {
    return networkOf(this.choices, this.place.get("iteration"));
  }

  #begin(seat) {
    this.lines = new Lines(this.table, this.#network.choose, seat);
    this.path = [{ cells: Array(9).fill(0), last: null }];
    this.#answer();
    this.#draw();
  }

  get #here() {
    return this.path[this.path.length - 1].cells;
  }

  /** The reader's reply, and the network's move after it. */
  #reply(cell) {
    if (this.#here[cell] || this.table.over(this.table.find(this.#here))) return;
    this.#put(cell);
    this.#answer();
    this.#show();
  }

  #answer() {
    if (playerToMove(this.#here) === this.lines.seat) this.lines.moves(this.#here).forEach((c) => this.#put(c));
  }

  #put(cell) {
    this.path.push({ cells: put(this.#here, cell), last: cell });
  }

  #back(count) {
    this.path.length = count;
    this.#show();
  }

  #show() {
    this.place.set({ board: boardText(this.#here) });
    this.#draw();
  }

  #draw() {
    const { seat } = this.lines;
    const over = this.table.over(this.table.find(this.#here));
    Object.assign(this.root.dataset, { board: boardText(this.#here), seat: playerName(seat) });
    const side = (other) => {
      const attributes = { "aria-pressed": String(seat === other) };
      return pushButton(`The network plays ${playerName(other)}`, `seat-${other}`, () => this.#begin(other), attributes);
    };
    replace(
      this.root,
      h("div", { class: "az-play-bar az-group", role: "group", "aria-label": "the network's side" }, side(0), side(1)),
      h("p", { class: "az-proof-claim", "data-claim": "" }, this.#claim()),
      h("ol", { class: "az-proof-path", "aria-label": "the game so far" }, this.path.map((step, i) => this.#crumb(step, i))),
      h("div", { class: "az-columns" }, this.#board(over), this.#replies(over)),
    );
  }

  #claim() {
    const { won, drawn, lost } = this.lines.below(Array(9).fill(0));
    const total = (won + drawn + lost).toLocaleString("en");
    const who = `the network of iteration ${this.#network.iteration}`;
    const start = `Whatever ${playerName(1 - this.lines.seat)} plays, there are ${total} games: ${who} wins ${won}, draws ${drawn} and loses ${lost}.`;
    return lost ? start : `${start} No line loses.`;
  }

  #crumb({ cells, last }, i) {
    const name = i ? `back to move ${i}, cell ${last}` : "back to the start";
    const picture = board(cells, { size: 46, last });
    const attributes = { class: "az-proof-step", "aria-label": name, "aria-current": i === this.path.length - 1 && "step" };
    return h("li", {}, pushButton(picture, `step-${i}`, () => this.#back(this.#turnAt(i)), attributes));
  }

  /** How many positions stay when a reader goes back to one: those up to the reader's turn. */
  #turnAt(i) {
    const { cells } = this.path[i];
    const answers = playerToMove(cells) === this.lines.seat && i + 1 < this.path.length;
    return answers ? i + 2 : i + 1;
  }

  #board(over) {
    const cells = this.#here;
    const counts = cells.map((stone, cell) => (stone || over ? null : this.lines.below(put(cells, cell))));
    const labels = counts.map((count) => (count ? String(total(count)) : ""));
    const { last } = this.path[this.path.length - 1];
    const look = { size: 220, labels, last, line: this.table.line(cells), label: "choose a reply" };
    return board(cells, over ? { ...look, labels: [] } : { ...look, onCell: (cell) => this.#reply(cell) });
  }

  #replies(over) {
    const cells = this.#here;
    if (over) return h("p", { class: "az-proof-end", role: "status" }, endWords(this.lines.below(cells)));
    const rows = this.lines.moves(cells).map((cell) => {
      const count = this.lines.below(put(cells, cell));
      const kinds = ["won", "drawn", "lost"].map((kind) => h("td", { "data-kind": kind }, String(count[kind])));
      const go = pushButton(`cell ${cell}`, `reply-${cell}`, () => this.#reply(cell), { class: "az-button az-small" });
      return h("tr", { class: count.lost ? "az-mistake" : "" }, h("th", { scope: "row" }, go), h("td", {}, String(total(count))), kinds);
    });
    const heads = [`${playerName(playerToMove(cells))}, you`, "games", "won", "drawn", "lost"];
    const head = h("tr", {}, heads.map((text) => h("th", { scope: "col" }, text)));
    const caption = h("caption", {}, "Your replies, and how all games after each of them end for the network");
    return h("table", { class: "az-proof-replies" }, caption, h("thead", {}, head), h("tbody", {}, rows));
  }
}

function endWords({ won, drawn }) {
  if (won) return "The network has won. Go back to any position above and choose another reply.";
  if (drawn) return "A draw: the network held. Go back to any position above and choose another reply.";
  return "The network has lost: this line is one that the proof counts against it.";
}

function put(cells, cell) {
  const next = cells.slice();
  next[cell] = playerToMove(cells) ? -1 : 1;
  return next;
}

function total({ won, drawn, lost }) {
  return won + drawn + lost;
}
