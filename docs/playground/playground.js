import { h, pushButton, replace } from "../../azjax/viz/js/dom.js";
import { explorer } from "../../azjax/viz/js/explorer.js";
import { Place } from "../../azjax/viz/js/main.js";
import { Match } from "../../azjax/viz/js/play.js";
import { openShipped } from "./shipped.js";
import { MARK, Replies } from "./unbeaten.js";
import { playerName, sentence } from "../../azjax/viz/js/words.js";

const STEP = 350; // Milliseconds between simulations.
const SEARCH_WORDS = "Each simulation adds at most one position to the tree, which the same network evaluates. The button \u201cnext phase\u201d shows a single step.";
const OLD_BROWSER = "This page needs a browser from 2024 or later.";

/** Games against the players that come with azjax; the visitor chooses one. */
export function playground(root, { players }) {
  new Playground(root, players).choose(0);
}

class Playground {
  constructor(root, players) {
    Object.assign(this, { root, players });
    this.picker = h("div.az-group.az-picker", { role: "group", "aria-label": "game" });
    this.body = h("div");
    replace(root, players.length > 1 ? this.picker : null, this.body);
  }

  async choose(number) {
    this.body.setAttribute("aria-busy", "true");
    try {
      const opened = await Promise.all(this.players.map(openShipped));
      const button = ({ game }, i) => pushButton(sentence(game.title), `game-${i}`, () => this.choose(i), { "aria-pressed": String(i === number) });
      replace(this.picker, opened.map(button));
      new Table(this.body, opened[number]);
      this.root.dataset.player = opened[number].about.name;
    } catch (error) {
      replace(this.body, h("p.az-alert", { role: "alert" }, `${OLD_BROWSER} (${error.message})`));
      throw error;
    } finally {
      this.body.removeAttribute("aria-busy");
    }
  }
}

/** The board of one game, and next to it the search, or the proof if there is one. */
class Table {
  constructor(root, shipped) {
    const place = new Place();
    const { game, network, data, about } = shipped;
    Object.assign(this, { shipped, place });
    this.about = h("p.az-intro", { "data-about": "" });
    this.moves = h("div.az-moves-so-far");
    this.proof = about.proof && h("div", { "data-proof": "" });
    this.search = h("div.az-watch", { hidden: true });
    const board = h("div.az-match");
    replace(root, this.about, h("div.az-table", board, this.proof, this.search));
    if (this.proof) new Replies(this.proof, shipped);
    const simulations = about.alone ? 0 : data.settings.num_simulations;
    this.match = new Match(board, {
      ...{ game, network, place, simulations, settings: data.settings },
      choose: (position) => shipped.choose(position),
      you: 1, // The network moves first.
      more: h("div", this.moves, this.#searchButton(), h("p.az-hint", habitWords(shipped))),
      sides: ["You move first", "The network moves first"],
      onDraw: (match) => this.#draw(match),
    });
  }

  /** A button that shows or hides the search from the current position. */
  #searchButton() {
    const toggle = () => {
      const on = this.search.hidden;
      this.button.setAttribute("aria-pressed", String(on));
      if (!this.explorer) replace(this.search, this.#searchParts());
      this.search.hidden = !on;
      if (this.proof) this.proof.hidden = on;
      this.#stop();
      if (on) this.search.scrollIntoView({ block: "nearest" }); // On a phone it is below the board.
    };
    this.button = pushButton("Watch a search from this position", "watch", toggle, { "aria-pressed": "false" });
    return h("div.az-group", this.button);
  }

  #searchParts() {
    const { settings, networks, game } = this.shipped.data;
    const root = h("div.az-component", { "data-kind": "explorer" });
    const data = { game, settings, networks, start: this.place.get("board") };
    this.explorer = explorer(root, data, this.place);
    this.runner = pushButton("", "run-search", () => (this.timer ? this.#stop() : this.#run()));
    return [h("p.az-hint", SEARCH_WORDS), h("div.az-group", this.runner), root];
  }

  /** Shows one simulation after another. */
  #run() {
    const { explorer, place } = this;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const step = () => {
      if (!explorer.root.isConnected) return this.#stop();
      const { last } = explorer.search;
      const t = Math.min(last, explorer.t + (still ? last : 3));
      place.set({ t });
      if (t === last) this.#stop();
    };
    if (explorer.t === explorer.search.last) place.set({ t: undefined });
    this.timer = setInterval(step, STEP);
    this.runner.textContent = "Stop";
  }

  #stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.runner.textContent = "Run the search";
  }

  #draw(match) {
    const { position, moves } = match;
    replace(this.about, aboutWords(this.shipped, match));
    if (!position.over) this.place.set({ board: position.text, t: undefined });
    replace(this.moves, moves.length ? moveList(this.shipped.game, moves) : null);
  }
}

/** The moves of a game; those from the override table have a mark. */
function moveList(game, moves) {
  const item = ({ position, action, isOverride }) =>
    h(
      "li",
      { "data-action": action, "data-override": isOverride },
      `${playerName(position.player)} ${game.moveLabel(position, action)}`,
      isOverride ? h("span.az-override", { role: "img", "aria-label": "from the override table" }, ` ${MARK}`) : null,
    );
  const count = moves.filter(({ isOverride }) => isOverride).length;
  return [
    h("h3", "Moves"),
    h("ol.az-move-list", moves.map(item)),
    count ? h("p.az-hint", `${MARK} marks moves from the override table.`) : null,
  ];
}

/** What is proved about the player, and whether that covers the game on the board. */
function aboutWords({ about, game }, { you, isUsual }) {
  const start = `This network learned ${game.title} by playing against itself`;
  if (!about.proof) return `${start}. It was not proved unbeatable: you may win.`;
  const claim = `${start}, and it is proved never to lose when it moves first`;
  if (!isUsual) return `${claim}; the proof does not cover this game, as you changed its search or its start.`;
  return `${claim}${you === 0 ? "; in this game, you do" : ""}.`;
}

/** How the player chooses its moves. */
function habitWords({ about, data, overrides }) {
  const how = about.alone ? "chooses its moves without search" : `searches with ${data.settings.num_simulations} simulations for each move`;
  const stored = `. In ${overrides.toLocaleString("en")} position${overrides === 1 ? "" : "s"} (symmetric copies count once), it plays a stored move instead of its own: these are its override table`;
  return `The network ${how}${overrides ? stored : ""}.`;
}
