import { picture, valueBar } from "./board.js";
import { h, percent, pushButton, replace } from "./dom.js";
import { openGame, optimalMoves } from "./games.js";
import { openNetworks, opinionOf } from "./network.js";
import { advanceInSlices, Search } from "./search.js";
import { playerName, sentence } from "./words.js";

const PAUSE = 150; // Milliseconds before the network's move appears, so that it is noticed.
const SIMULATIONS = [0, 32, 200]; // Before each of its moves; 0 is the network alone.

/** A game against the network, which can show its policy and the value under perfect play. */
export function play(root, data, place) {
  const game = openGame(data);
  const network = openNetworks(data, game).at(-1);
  if (network) {
    const choose = (position) => ({ action: opinionOf(network, game, position).move, isOverride: false });
    return new Match(root, { game, network, place, settings: data.settings, choose, simulations: 0, you: 0 });
  }
  return replace(root, h("p.az-hint", "There is no trained network here to play against."));
}

/** A game, and the games after it. */
export class Match {
  /**
   * `choose(position)` returns `{action, isOverride}`: the move that the network plays with
   * `simulations`, and whether an override table has it. `you` is the reader's player in the first
   * game; `sides` are the words for a choice of it. `onDraw(match)` is called whenever something changes;
   * `more` is an element next to the board.
   */
  constructor(root, parts) {
    const counts = { won: 0, drawn: 0, lost: 0 };
    const shown = { thoughts: false, truth: false };
    Object.assign(this, { root, onDraw: () => {}, more: null, sides: ["Play X", "Play O"], ...parts, history: [], counts, shown });
    this.usual = parts.simulations;
    this.strengths = [...new Set([this.usual, ...SIMULATIONS])];
    this.board = h("div.az-play-board");
    this.controls = h("div.az-play-bar");
    this.status = h("p.az-play-status", { role: "status", "aria-live": "polite" });
    this.insight = h("div");
    this.tally = h("dl.az-tally", { "aria-label": "games so far" });
    const naming = h("p.az-hint", parts.game.naming);
    const side = h("div", this.status, this.controls, naming, this.tally, this.insight, this.more);
    replace(root, h("div.az-columns", this.board, side));
    this.#begin(this.you);
    this.place.follow((names) => names.includes("board") && this.#drawControls());
  }

  #begin(you, position = this.game.init()) {
    this.#wait();
    Object.assign(this, { you, position, history: [], last: null, isOverride: false, counted: false, start: position, strayed: false });
    this.#turn();
  }

  /** Stops what is in progress; `stop` stops the next one. */
  #wait(stop = null) {
    this.stop?.();
    this.stop = stop;
  }

  /** The position of the address, if another game can start there. */
  #shared() {
    const position = this.game.read(this.place.shared);
    return !position || position.over || position.text === this.game.init().text ? null : position;
  }

  /** Draws, and lets the network move when it is its turn. */
  #turn() {
    const { over, player } = this.position;
    if (over && !this.counted) this.counts[this.#result()] += 1;
    this.counted ||= over;
    this.#draw();
    if (over || player === this.you) return;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const timer = setTimeout(() => this.#answer(), still ? 0 : PAUSE);
    this.#wait(() => clearTimeout(timer));
  }

  /** Plays the network's move, after a search if the reader chose one. */
  #answer() {
    if (this.simulations === this.usual) {
      const { action, isOverride } = this.choose(this.position);
      return this.#put(action, isOverride);
    }
    this.strayed = true;
    if (!this.simulations) return this.#put(this.#opinion().move);
    const settings = { ...this.settings, evaluator: "network", num_simulations: this.simulations };
    const search = new Search(this.game, this.position, this.network.evaluate, settings, { waits: true });
    const stop = advanceInSlices(search, () => this.#put(search.action));
    if (stop) this.#wait(stop);
  }

  #put(action, isOverride = false) {
    this.history.push({ position: this.position, last: this.last, isOverride: this.isOverride });
    this.position = this.game.step(this.position, action);
    Object.assign(this, { last: action, isOverride });
    this.#turn();
  }

  #click(action) {
    if (this.position.player === this.you && this.game.legal(this.position).includes(action)) this.#put(action);
  }

  #hasMoved() {
    return this.history.some(({ position }) => position.player === this.you);
  }

  /** Takes back the reader's last move and the network's reply; the tally stays. */
  #undo() {
    if (!this.#hasMoved()) return;
    this.#wait();
    let before = this.history.pop();
    while (before.position.player !== this.you) before = this.history.pop();
    Object.assign(this, before);
    this.#turn();
  }

  #opinion() {
    return opinionOf(this.network, this.game, this.position);
  }

  /** Whether all moves of the network in this game are those of `choose`, from the first position on. */
  get isUsual() {
    return !this.strayed && this.simulations === this.usual && this.start.text === this.game.init().text;
  }

  /** The moves so far: `{position, action, isOverride}`, with the position before the move. */
  get moves() {
    const later = [...this.history.slice(1), this];
    return this.history.map(({ position }, i) => ({ position, action: later[i].last, isOverride: later[i].isOverride }));
  }

  #result() {
    const winner = this.game.winner(this.position);
    if (winner === null) return "drawn";
    return winner === this.you ? "won" : "lost";
  }

  #draw() {
    const { over } = this.position;
    const { dataset } = this.root;
    Object.assign(dataset, { board: this.position.text, you: playerName(this.you) });
    if (over) dataset.result = { won: "win", drawn: "draw", lost: "loss" }[this.#result()];
    else delete dataset.result;
    this.#drawBoard(over);
    this.#drawControls();
    const words = this.#words(over);
    if (this.status.textContent !== words) this.status.textContent = words;
    this.#drawInsight(over);
    const row = ([name, count]) => h("div", h("dt", name), h("dd", { "data-tally": name }, String(count)));
    replace(this.tally, Object.entries(this.counts).map(row));
    this.onDraw(this);
  }

  #drawBoard(over) {
    const { game, you, last, position, shown, history } = this;
    const policy = shown.thoughts && !over ? this.#opinion().policy : null;
    const marks = shown.truth && !over ? optimalMoves(game, position) : null;
    const listed = this.moves.filter(({ isOverride }) => isOverride);
    const drawn = picture(game, position, {
      dots: listed.map((move) => game.cell(move.position.board, move.action)),
      heat: policy,
      labels: policy?.map(percent),
      marks,
      last: last === null ? null : { position: history.at(-1).position, action: last },
      onMove: (action) => this.#click(action),
      label: "the game",
    });
    drawn.classList.toggle("az-shut", over);
    const legal = position.player === you ? game.legal(position) : [];
    for (const button of drawn.querySelectorAll(".az-cell")) {
      const action = game.action(Number(button.dataset.cell), position.board);
      if (!legal.includes(action)) button.setAttribute("aria-disabled", "true");
      if (marks?.includes(action)) button.setAttribute("aria-label", `${button.getAttribute("aria-label")}, keeps the value`);
    }
    replace(this.board, drawn);
  }

  #drawControls() {
    const pressed = (on) => ({ "aria-pressed": String(on) });
    const side = (text, you) => pushButton(text, `play-${playerName(you)}`, () => this.#begin(you), pressed(this.you === you));
    const flip = (name) => {
      this.shown[name] = !this.shown[name];
      this.#draw();
    };
    const toggle = (name, text) => pushButton(text, name, () => flip(name), pressed(this.shown[name]));
    const shared = this.#shared();
    const strength = (value) => h("option", { value, selected: value === this.simulations }, value ? `with ${value} simulations` : "without search");
    const change = ({ target }) => {
      this.simulations = Number(target.value);
      this.#draw();
    };
    const keys = { "data-setting": "strength", "data-focus": "strength", on: { change } };
    replace(
      this.controls,
      h("div.az-group", { role: "group", "aria-label": "your side" }, this.sides.map(side)),
      h(
        "div.az-group",
        pushButton("New game", "new", () => this.#begin(this.you), { class: `az-button ${this.position.over ? "az-primary" : ""}` }),
        pushButton("Undo", "undo", () => this.#undo(), { "aria-disabled": String(!this.#hasMoved()) }),
        shared && pushButton("Play from the shared position", "there", () => this.#begin(shared.player, shared)),
      ),
      h(
        "div.az-group",
        toggle("thoughts", "Show the network\u2019s policy"),
        this.game.table && toggle("truth", "Show perfect play"),
      ),
      h("label.az-field", h("span", "the network plays"), h("select", keys, this.strengths.map(strength))),
    );
  }

  #words(over) {
    const before = this.history.at(-1)?.position;
    const isAnswer = before && before.player !== this.you;
    const last = isAnswer ? `The network (${playerName(1 - this.you)}) played ${this.game.moveName(before, this.last)}. ` : "";
    if (over) {
      const lost = `${sentence(this.game.ending(this.position))}: the network wins.`;
      return last + { won: "You win.", drawn: "Draw.", lost }[this.#result()];
    }
    const start = this.history.length < 2 ? `You are ${playerName(this.you)}. ` : "";
    return start + last + (this.position.player === this.you ? "Your move." : "The network is to move.");
  }

  #drawInsight(over) {
    const { thoughts, truth } = this.shown;
    const mover = playerName(this.position.player);
    const parts = [];
    if (thoughts && !over) {
      parts.push(
        valueBar(this.#opinion().value, `The network\u2019s value for ${mover}, to move`),
        h("p.az-hint", `The percentages are the network\u2019s policy: a probability for each move of ${mover}.`),
      );
    }
    if (truth && !over) {
      const { value } = this.game.table.get(this.position.text);
      const end = value > 0 ? `${mover} wins` : value < 0 ? `${mover} loses` : "the game is a draw";
      const words = `With perfect play from here ${end}. A dot marks each move that keeps this result.`;
      parts.push(h("p.az-hint", { "data-truth": value }, words));
    }
    replace(this.insight, parts);
  }
}
