import { atCells, board, boardText, inARow, isPosition, openTable, readBoard } from "./board.js";
import { h, percent, pushButton, replace } from "./dom.js";
import { valueBar } from "./encoding.js";
import { gameNamed } from "./games.js";
import { openNetworks, opinionOf } from "./network.js";
import { judgeByTable, judgeBySearch, review } from "./review.js";
import { advanceInSlices, Search } from "./search.js";
import { playerName } from "./words.js";

const PAUSE = 150; // Milliseconds before the network's stone appears, so that it can be seen to.
const SIMULATIONS = [0, 32, 200]; // Before each of its moves; 0 is the network alone.
const REVIEWED = 100; // Simulations that judge a move where the truth is not known.

/** A game against the network, which can show what it thinks, and what is true. */
export function play(root, data, place) {
  const game = gameNamed(data.game);
  const table = openTable(data);
  const network = openNetworks(data, game, table).at(-1);
  if (network) return new Match(root, { game, table, network, place, settings: data.settings });
  return replace(
    root,
    h("p", { class: "az-hint" }, "There is no trained network here to play against."),
  );
}

class Match {
  constructor(root, parts) {
    const counts = { won: 0, drawn: 0, lost: 0 };
    const shown = { thoughts: false, truth: false };
    Object.assign(this, { root, ...parts, you: 0, history: [], counts, shown, simulations: 0 });
    this.board = h("div", { class: "az-play-board" });
    this.controls = h("div", { class: "az-play-bar" });
    this.status = h("p", { class: "az-play-status", role: "status", "aria-live": "polite" });
    this.insight = h("div", { class: "az-play-insight" });
    this.review = h("div", {});
    this.tally = h("dl", { class: "az-tally", "aria-label": "games so far" });
    const right = h("div", {}, this.status, this.tally, this.insight, this.review);
    replace(root, this.controls, h("div", { class: "az-columns" }, this.board, right));
    this.#begin(0);
    this.place.follow(() => this.#drawControls());
  }

  #begin(you, position = this.game.init()) {
    this.#wait();
    Object.assign(this, { you, position, history: [], last: null, counted: false });
    this.#turn();
  }

  /** Gives up what was under way, for what `stop` stops. */
  #wait(stop = null) {
    this.stop?.();
    this.stop = stop;
  }

  /** The position that the page looks at, if a game can go on from there. */
  #elsewhere() {
    const cells = readBoard(this.place.get("board") ?? "");
    if (!cells.some(Boolean) || !isPosition(cells, this.game, this.table)) return null;
    const position = this.game.at(cells);
    return position.over ? null : position;
  }

  /** Draws, and lets the network answer when it is its turn. */
  #turn() {
    const { over, player } = this.position;
    if (over && !this.counted) this.counts[this.#result()] += 1;
    this.counted ||= over;
    this.#draw();
    if (over) return this.#review();
    if (player === this.you) return;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const timer = setTimeout(() => this.#answer(), still ? 0 : PAUSE);
    this.#wait(() => clearTimeout(timer));
  }

  /** Lets the network move, after a search if the reader wants one. */
  #answer() {
    if (!this.simulations) return this.#put(this.#opinion().move);
    const search = this.#search(this.position, this.simulations);
    const stop = advanceInSlices(search, () => this.#put(search.action));
    if (stop) this.#wait(stop);
  }

  #search(position, num_simulations) {
    const settings = { ...this.settings, evaluator: "network", num_simulations, add_noise: false };
    return new Search(this.game, position, this.network.evaluate, settings, { waits: true });
  }

  #put(action) {
    this.history.push({ position: this.position, last: this.last });
    this.position = this.game.step(this.position, action);
    this.last = action;
    this.#turn();
  }

  #click(cell) {
    const action = this.game.action(cell);
    if (this.position.player === this.you && this.game.legal(this.position).includes(action)) this.#put(action);
  }

  /** Takes back the reader's last move, and what the network answered; the tally stays. */
  #undo() {
    this.#wait();
    let before = this.history.pop();
    while (before && before.position.player !== this.you) before = this.history.pop();
    if (!before) return;
    Object.assign(this, before);
    this.#turn();
  }

  #toggle(name) {
    this.shown[name] = !this.shown[name];
    this.#draw();
  }

  #choose(simulations) {
    this.simulations = simulations;
    this.#drawControls();
  }

  #opinion() {
    return opinionOf(this.network, this.game, this.position);
  }

  #result() {
    const { line, board: cells } = this.position;
    if (!line) return "drawn";
    return (cells[line[0]] === 1) === (this.you === 0) ? "won" : "lost";
  }

  /** Judges the moves of the game that is over, by the truth or else by searches. */
  #review() {
    const { game, table, network } = this;
    const positions = [...this.history.map(({ position }) => position), this.position];
    const actions = [...this.history.slice(1).map(({ last }) => last), this.last];
    const look = (text) => this.place.set({ board: text });
    const show = (moves, judge) => replace(this.review, review(moves, this.you, judge, look));
    if (table) return show(judgeByTable(game, positions, actions, table));
    const judge = { simulations: REVIEWED, iteration: network.iteration };
    replace(this.review, h("p", { class: "az-hint", role: "status" }, "Looking at each move\u2026"));
    const search = (position) => this.#search(position, REVIEWED);
    judgeBySearch(game, positions, actions, { search, wait: (stop) => this.#wait(stop), done: (moves) => show(moves, judge) });
  }

  #draw() {
    const { over } = this.position;
    const names = { won: "win", drawn: "draw", lost: "loss" };
    this.root.dataset.board = boardText(this.position.board);
    this.root.dataset.you = playerName(this.you);
    if (over) this.root.dataset.result = names[this.#result()];
    else delete this.root.dataset.result;
    this.#drawBoard(over);
    this.#drawControls();
    const words = this.#words(over);
    if (this.status.textContent !== words) this.status.textContent = words;
    this.#drawInsight(over);
    if (!over) replace(this.review);
    replace(
      this.tally,
      Object.entries(this.counts).map(([name, n]) =>
        h("div", {}, h("dt", {}, name), h("dd", { "data-tally": name }, String(n))),
      ),
    );
  }

  #drawBoard(over) {
    const { game, table, you, last, position, shown, history } = this;
    const { board: cells, line, player } = position;
    const policy = shown.thoughts && !over ? this.#opinion().policy : null;
    const marks = shown.truth && !over ? table.optimal(table.find(cells)) : null;
    const look = {
      size: game.columns > 3 ? 336 : 264,
      shape: [game.rows, game.columns],
      heat: policy && atCells(game, cells, policy, 0),
      labels: policy && atCells(game, cells, policy.map(percent)),
      marks,
      last: last === null ? null : game.cell(history.at(-1).position.board, last),
      line,
    };
    const picture = board(cells, { ...look, onCell: (cell) => this.#click(cell), label: "the game" });
    picture.classList.toggle("az-shut", over);
    const legal = !over && player === you ? game.legal(position) : [];
    for (const button of picture.querySelectorAll(".az-cell")) {
      const cell = Number(button.getAttribute("data-cell"));
      if (!legal.includes(game.action(cell))) button.setAttribute("aria-disabled", "true");
      if (marks?.[cell])
        button.setAttribute("aria-label", `${button.getAttribute("aria-label")}, keeps the value`);
    }
    replace(this.board, picture);
  }

  #drawControls() {
    const pressed = (on) => ({ "aria-pressed": String(on) });
    const side = (you, text) =>
      pushButton(text, `play-${playerName(you)}`, () => this.#begin(you), pressed(this.you === you));
    const toggle = (name, text) =>
      pushButton(text, name, () => this.#toggle(name), pressed(this.shown[name]));
    const mine = this.history.some(({ position }) => position.player === this.you);
    const there = this.#elsewhere();
    const goThere = () => this.#begin(there.player, there);
    const strength = (simulations) =>
      h("option", { value: simulations, selected: simulations === this.simulations }, strengthWords(simulations));
    const chosen = (event) => this.#choose(Number(event.target.value));
    const keys = { "data-setting": "strength", "data-focus": "strength", on: { change: chosen } };
    replace(
      this.controls,
      h(
        "div",
        { class: "az-group", role: "group", "aria-label": "your side" },
        side(0, "Play X"),
        side(1, "Play O"),
      ),
      h(
        "div",
        { class: "az-group" },
        pushButton("New game", "new", () => this.#begin(this.you)),
        pushButton("Undo", "undo", () => this.#undo(), { "aria-disabled": String(!mine) }),
        there && pushButton("Play from the position shown", "there", goThere),
      ),
      h(
        "div",
        { class: "az-group" },
        toggle("thoughts", "Show what the network thinks"),
        this.table && toggle("truth", "Show the truth"),
      ),
      h("label", { class: "az-field" }, h("span", {}, "it moves by"), h("select", keys, SIMULATIONS.map(strength))),
    );
  }

  #words(over) {
    const network = playerName(1 - this.you);
    const mine = this.position.player === this.you;
    const moved = this.last !== null && mine;
    const last = moved ? `The network, ${network}, took ${this.last}. ` : "";
    const start = this.history.length < 2 ? `You are ${playerName(this.you)}. ` : "";
    if (over) {
      const ends = {
        won: "You win.",
        drawn: "Draw.",
        lost: `${network} has ${inARow(this.game.lines)}: the network wins.`,
      };
      return (moved ? last : "") + ends[this.#result()];
    }
    return start + last + (mine ? "Your move." : "The network is to move.");
  }

  #drawInsight(over) {
    const { thoughts, truth } = this.shown;
    const mover = playerName(this.position.player);
    const parts = [];
    if (thoughts && !over) {
      parts.push(valueBar(this.#opinion().value, `The network\u2019s value for ${mover}, to move`));
      parts.push(
        h(
          "p",
          { class: "az-hint" },
          `Shading and percentages: how likely the network finds each move of ${mover}.`,
        ),
      );
    }
    if (truth) {
      const value = this.table.truth(this.table.find(this.position.board));
      parts.push(h("p", { class: "az-hint", "data-truth": value }, truthWords(value, mover, over)));
    }
    replace(this.insight, parts);
  }
}

function truthWords(value, mover, over) {
  if (over) return "The game is over; nothing is left to choose.";
  const ends = value > 0 ? `${mover} wins` : value < 0 ? `${mover} loses` : "the game is a draw";
  return `With perfect play from here ${ends}. A dot marks each move that keeps it so.`;
}

function strengthWords(simulations) {
  return simulations ? `a search of ${simulations} simulations` : "its policy alone";
}
