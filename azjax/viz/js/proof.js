import { sum } from "./algorithms.js";
import { picture } from "./board.js";
import { h, pushButton, replace } from "./dom.js";
import { byAction, openGame } from "./games.js";
import { networkOf, openNetworks, opinionOf } from "./network.js";
import { playerName } from "./words.js";

/** All games against the network: the reader chooses each reply, and sees the games that follow. */
export function proof(root, data, place) {
  const game = openGame(data);
  new Proof(root, game, openNetworks(data, game), place);
}

/** Counts `{games, won, drawn, lost}`, for the network, over all games that continue from a position. */
export class Lines {
  #known = new Map();

  /** `choose(position)` is the network's move; `seat` is its player. */
  constructor(game, choose, seat) {
    Object.assign(this, { game, choose, seat });
  }

  below(position) {
    const { text } = position;
    if (!this.#known.has(text)) this.#known.set(text, this.#count(position));
    return this.#known.get(text);
  }

  /** The moves of these games: all of the reader's, and one of the network's. */
  moves(position) {
    if (position.over) return [];
    return position.player === this.seat ? [this.choose(position)] : this.game.legal(position);
  }

  #count(position) {
    if (position.over) {
      const winner = this.game.winner(position);
      return { games: 1, won: Number(winner === this.seat), drawn: Number(winner === null), lost: Number(winner === 1 - this.seat) };
    }
    const counts = this.moves(position).map((action) => this.below(this.game.step(position, action)));
    const total = (name) => sum(counts.map((count) => count[name]));
    return { games: total("games"), won: total("won"), drawn: total("drawn"), lost: total("lost") };
  }
}

/**
 * A game in which the reader chooses all replies to one side, and can go back to each choice.
 *
 * A subclass has `draw()`, and may have `moved()`, which is called when the reader moves or goes back.
 */
export class Walk {
  constructor(root, game) {
    Object.assign(this, { root, game });
  }

  /** Starts; `choose(position)` is the move `{action, ...}` of the player `seat`. */
  begin(choose, seat) {
    Object.assign(this, { choose, seat, path: [{ position: this.game.init(), action: null }] });
    this.#answer();
    this.draw();
  }

  moved() {}

  get here() {
    return this.path.at(-1).position;
  }

  reply(action) {
    if (!this.game.legal(this.here).includes(action)) return;
    this.#put({ action });
    this.#answer();
    this.moved();
    this.draw();
  }

  #answer() {
    while (!this.here.over && this.here.player === this.seat) this.#put(this.choose(this.here));
  }

  #put(move) {
    this.path.push({ ...move, position: this.game.step(this.here, move.action) });
  }

  /** The move before position `i` of the path. */
  lastAt(i = this.path.length - 1) {
    return i ? { position: this.path[i - 1].position, action: this.path[i].action } : null;
  }

  /** The positions in which the reader had the choice, and the last one, to go back to. */
  crumbs() {
    const end = this.path.length - 1;
    const shown = this.path.map((_, i) => i).filter((i) => this.path[i].position.player !== this.seat || i === end);
    return h("ol.az-proof-path", { "aria-label": "the game so far" }, shown.map((i) => h("li", this.#crumb(i, i === end))));
  }

  #crumb(i, isLast) {
    const { game, path } = this;
    const last = this.lastAt(i);
    const label = last ? `back to move ${i}, ${game.moveName(last.position, last.action)}` : "back to the start";
    const goBack = () => {
      path.length = i + 1;
      this.moved();
      this.draw();
    };
    const attributes = { class: "az-proof-step", "aria-label": label, "aria-current": isLast && "step" };
    return pushButton(picture(game, path[i].position, { size: 50, last }), `line-${i}`, goBack, attributes);
  }

  /** The board; a click chooses a reply. */
  board(options) {
    const onMove = this.here.over ? null : (action) => this.reply(action);
    return picture(this.game, this.here, { last: this.lastAt(), ...options, ...(onMove && { onMove, label: "choose a reply" }) });
  }

  /** A table with a button for each reply, and the cells of `cellsOf(action)` next to it. */
  replies(caption, heads, cellsOf) {
    const rows = this.game.legal(this.here).map((action) => {
      const go = pushButton(this.game.moveName(this.here, action), `reply-${action}`, () => this.reply(action), { class: "az-button az-small" });
      return h("tr", h("th", { scope: "row" }, go), cellsOf(action));
    });
    const head = h("tr", heads.map((text) => h("th", { scope: "col" }, text)));
    return h("table.az-proof-replies", h("caption", caption), h("thead", head), h("tbody", rows));
  }
}

class Proof extends Walk {
  constructor(root, game, networks, place) {
    super(root, game);
    Object.assign(this, { networks, place });
    this.#start(0);
    place.follow((names) => names.includes("iteration") && this.#start(this.seat));
  }

  /** The network of the page's iteration, or the newest. */
  get #network() {
    return networkOf(this.networks, this.place.get("iteration"));
  }

  #start(seat) {
    const network = this.#network;
    const choose = (position) => opinionOf(network, this.game, position).move;
    this.lines = new Lines(this.game, choose, seat);
    this.begin((position) => ({ action: choose(position) }), seat);
  }

  moved() {
    this.place.set({ board: this.here.text });
  }

  draw() {
    const { seat } = this;
    const labels = byAction(this.game, this.here, (action) => String(this.#after(action).games));
    Object.assign(this.root.dataset, { board: this.here.text, seat: playerName(seat) });
    const side = (other) => {
      const attributes = { "aria-pressed": String(seat === other) };
      return pushButton(`The network plays ${playerName(other)}`, `seat-${other}`, () => this.#start(other), attributes);
    };
    replace(
      this.root,
      h("div.az-play-bar.az-group", { role: "group", "aria-label": "the network's side" }, side(0), side(1)),
      h("p.az-proof-claim", { "data-claim": "" }, this.#claim()),
      h("p.az-hint", `The network always plays its most likely move, without a search. ${this.game.naming}`),
      this.crumbs(),
      h("div.az-columns", this.board({ size: 220, labels }), this.#side()),
    );
  }

  #claim() {
    const { games, won, drawn, lost } = this.lines.below(this.game.init());
    const text = (count) => count.toLocaleString("en");
    const start =
      `If ${playerName(1 - this.seat)} tries every reply, there are ${text(games)} games. ` +
      `The network of iteration ${this.#network.iteration} wins ${text(won)}, draws ${text(drawn)} and loses ${text(lost)} of them.`;
    return lost ? start : `${start} It never loses.`;
  }

  #after(action) {
    return this.lines.below(this.game.step(this.here, action));
  }

  #side() {
    if (this.here.over) {
      const { won, drawn } = this.lines.below(this.here);
      const end = won ? "The network has won." : drawn ? "A draw." : "The network has lost.";
      return h("p", { role: "status" }, `${end} Go back to any position above and choose another reply.`);
    }
    const heads = [`${playerName(this.here.player)} (you)`, "games", "won", "drawn", "lost"];
    const caption = "Your replies, and the network\u2019s results in all games that follow. A number on the board counts the games after that reply.";
    return this.replies(caption, heads, (action) => {
      const count = this.#after(action);
      const look = { class: count.lost ? "az-mistake" : "" };
      return [h("td", look, String(count.games)), ["won", "drawn", "lost"].map((kind) => h("td", { ...look, "data-kind": kind }, String(count[kind])))];
    });
  }
}
