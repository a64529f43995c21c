import { h, pushButton, replace } from "./dom.js";
import { openGame } from "./games.js";
import { networkOf, openNetworks, opinionOf } from "./network.js";
import { picture } from "./picture.js";
import { playerName } from "./words.js";

/** All games against the network: the reader chooses each reply, and sees the games that follow. */
export function proof(root, data, place) {
  const game = openGame(data);
  const choices = openNetworks(data, game).map((network) => ({
    iteration: network.iteration,
    choose: (position) => opinionOf(network, game, position).move,
  }));
  new Walk(root, game, choices, place);
}

/** Counts `{won, drawn, lost}`, for the network, over all games that continue from a position. */
export class Lines {
  #known = new Map();

  /** `choose(position)` is the network's move; `seat` is its player. */
  constructor(game, choose, seat) {
    Object.assign(this, { game, choose, seat });
  }

  below(position) {
    const row = this.game.table.find(position);
    if (!this.#known.has(row)) this.#known.set(row, this.#count(position));
    return this.#known.get(row);
  }

  /** The moves of these games: all of the reader's, and one of the network's. */
  moves(position) {
    if (position.over) return [];
    return position.player === this.seat ? [this.choose(position)] : this.game.legal(position);
  }

  #count(position) {
    if (position.over) return this.#end(position);
    const counts = this.moves(position).map((action) => this.below(this.game.step(position, action)));
    const sum = (name) => counts.reduce((total, count) => total + count[name], 0);
    return { won: sum("won"), drawn: sum("drawn"), lost: sum("lost") };
  }

  #end(position) {
    const winner = this.game.winner(position);
    return { won: Number(winner === this.seat), drawn: Number(winner === null), lost: Number(winner === 1 - this.seat) };
  }
}

class Walk {
  constructor(root, game, choices, place) {
    Object.assign(this, { root, game, choices, place });
    this.#begin(0);
    place.follow((names) => names.includes("iteration") && this.#begin(this.lines.seat));
  }

  /** The network of the page's iteration, or the newest. */
  get #network() {
    return networkOf(this.choices, this.place.get("iteration"));
  }

  #begin(seat) {
    this.lines = new Lines(this.game, this.#network.choose, seat);
    this.path = [{ position: this.game.init(), action: null }];
    this.#answer();
    this.#draw();
  }

  get #here() {
    return this.path.at(-1).position;
  }

  /** Plays the reader's reply, and the network's moves after it. */
  #reply(action) {
    if (!this.game.legal(this.#here).includes(action)) return;
    this.#put(action);
    this.#answer();
    this.#show();
  }

  #answer() {
    while (!this.#here.over && this.#here.player === this.lines.seat) this.#put(this.lines.moves(this.#here)[0]);
  }

  #put(action) {
    this.path.push({ position: this.game.step(this.#here, action), action });
  }

  #back(count) {
    this.path.length = count;
    this.#show();
  }

  #show() {
    this.place.set({ board: this.#here.text });
    this.#draw();
  }

  #draw() {
    const { seat } = this.lines;
    Object.assign(this.root.dataset, { board: this.#here.text, seat: playerName(seat) });
    const side = (other) => {
      const attributes = { "aria-pressed": String(seat === other) };
      return pushButton(`The network plays ${playerName(other)}`, `seat-${other}`, () => this.#begin(other), attributes);
    };
    replace(
      this.root,
      h("div.az-play-bar.az-group", { role: "group", "aria-label": "the network's side" }, side(0), side(1)),
      h("p.az-proof-claim", { "data-claim": "" }, this.#claim()),
      h("p.az-hint", `The network always plays its most likely move, without a search. ${this.game.naming}`),
      h("ol.az-proof-path", { "aria-label": "the game so far" }, this.path.map((_, i) => this.#crumb(i))),
      h("div.az-columns", this.#board(), this.#replies()),
    );
  }

  #claim() {
    const { won, drawn, lost } = this.lines.below(this.game.init());
    const games = (count) => count.toLocaleString("en");
    const start =
      `If ${playerName(1 - this.lines.seat)} tries every reply, there are ${games(won + drawn + lost)} games. ` +
      `The network of iteration ${this.#network.iteration} wins ${games(won)}, draws ${games(drawn)} and loses ${games(lost)} of them.`;
    return lost ? start : `${start} It never loses.`;
  }

  #crumb(i) {
    const { position } = this.path[i];
    const last = this.#lastAt(i);
    const name = last ? `back to move ${i}, ${this.game.moveName(last.position, last.action)}` : "back to the start";
    const isText = this.game.table.pictures?.isText;
    const drawn = isText ? (last ? this.game.moveLabel(last.position, last.action) : "start") : picture(this.game, position, { size: 46, last });
    const attributes = { class: "az-proof-step", "aria-label": name, "aria-current": i === this.path.length - 1 && "step" };
    return h("li", pushButton(drawn, `step-${i}`, () => this.#back(this.#turnAt(i)), attributes));
  }

  #lastAt(i) {
    return i ? { position: this.path[i - 1].position, action: this.path[i].action } : null;
  }

  /** The length of the path up to the reader's next turn after position `i`. */
  #turnAt(i) {
    let count = i + 1;
    while (count < this.path.length && this.path[count - 1].position.player === this.lines.seat) count++;
    return count;
  }

  #board() {
    const { game, lines } = this;
    const position = this.#here;
    const labels = Array(game.numActions).fill("");
    for (const action of game.legal(position)) labels[action] = String(total(lines.below(game.step(position, action))));
    const onMove = position.over ? null : (action) => this.#reply(action);
    const last = this.#lastAt(this.path.length - 1);
    return picture(game, position, { size: 220, labels, last, label: "choose a reply", ...(game.hasCells && { onMove }) });
  }

  #replies() {
    const { game } = this;
    const position = this.#here;
    if (position.over) return h("p.az-proof-end", { role: "status" }, proofEnd(this.lines.below(position)));
    const rows = this.lines.moves(position).map((action) => {
      const count = this.lines.below(game.step(position, action));
      const kinds = ["won", "drawn", "lost"].map((kind) => h("td", { "data-kind": kind }, String(count[kind])));
      const name = game.moveName(position, action);
      const go = pushButton(name, `reply-${action}`, () => this.#reply(action), { class: "az-button az-small" });
      return h("tr", { class: count.lost ? "az-mistake" : "" }, h("th", { scope: "row" }, go), h("td", String(total(count))), kinds);
    });
    const heads = [`${playerName(position.player)} (you)`, "games", "won", "drawn", "lost"];
    const head = h("tr", heads.map((text) => h("th", { scope: "col" }, text)));
    const caption = h("caption", "Your replies, and the network\u2019s results in all games that follow. A number on the board counts the games after that reply.");
    return h("table.az-proof-replies", caption, h("thead", head), h("tbody", rows));
  }
}

function proofEnd({ won, drawn }) {
  if (won) return "The network has won. Go back to any position above and choose another reply.";
  if (drawn) return "A draw. Go back to any position above and choose another reply.";
  return "The network has lost. The proof counts this game as a loss.";
}

function total({ won, drawn, lost }) {
  return won + drawn + lost;
}
