import { h, pushButton, replace } from "../../azjax/viz/js/dom.js";
import { explorer } from "../../azjax/viz/js/explorer.js";
import { Place } from "../../azjax/viz/js/main.js";
import { Match } from "../../azjax/viz/js/play.js";
import { openShipped } from "./shipped.js";
import { listWords, playerName } from "../../azjax/viz/js/words.js";

/** The mark of a move from an override table. */
export const MARK = "\u25cf";

const STEP = 350; // Milliseconds between simulations.
const OLD_BROWSER = "This page needs a browser from 2024 or later.";

/** Games against the players that come with azjax; the visitor chooses one. */
export function playground(root, { players }) {
  new Playground(root, players).choose(0);
}

/** Opens a player, and shows a sentence in `root` if that fails. */
export async function openIn(root, packed) {
  root.setAttribute("aria-busy", "true");
  try {
    return await openShipped(packed);
  } catch (error) {
    replace(root, h("p.az-alert", { role: "alert" }, `${OLD_BROWSER} (${error.message})`));
    throw error;
  } finally {
    root.removeAttribute("aria-busy");
  }
}

class Playground {
  constructor(root, players) {
    Object.assign(this, { root, players });
    this.picker = h("div.az-group.az-picker", { role: "group", "aria-label": "game" });
    this.body = h("div");
    replace(root, players.length > 1 ? this.picker : null, this.body);
  }

  async choose(number) {
    const shipped = await openIn(this.body, this.players[number]);
    this.root.dataset.player = shipped.about.name;
    this.openings = await Promise.all(this.players.map(openShipped));
    const button = ({ game }, i) =>
      pushButton(game.title[0].toUpperCase() + game.title.slice(1), `game-${i}`, () => this.choose(i), { "aria-pressed": String(i === number) });
    replace(this.picker, this.openings.map(button));
    new Table(this.body, shipped);
  }
}

/** The board of one game, the moves, and the search. */
class Table {
  constructor(root, shipped) {
    const place = new Place();
    const { game, network, data, about } = shipped;
    Object.assign(this, { shipped, place });
    this.about = h("p.az-intro", { "data-about": "" });
    this.moves = h("div.az-moves-so-far");
    this.search = h("div.az-watch", { hidden: true });
    const board = h("div.az-match");
    replace(root, this.about, board, this.search);
    const simulations = about.alone ? 0 : data.settings.num_simulations;
    this.match = new Match(board, {
      ...{ game, network, place, simulations, settings: data.settings },
      choose: (position) => shipped.choose(position),
      you: 1, // The network moves first.
      more: h("div", this.moves, this.#searchButton()),
      sides: ["You move first", "The network moves first"],
      onDraw: (match) => this.#draw(match),
    });
  }

  /** A button that shows or hides the search from the current position. */
  #searchButton() {
    const toggle = () => {
      const on = this.button.getAttribute("aria-pressed") !== "true";
      this.button.setAttribute("aria-pressed", String(on));
      if (!this.explorer) replace(this.search, this.#searchParts());
      this.search.hidden = !on;
      this.#stop();
    };
    this.button = pushButton("Watch a search from this position", "watch", toggle, { "aria-pressed": "false" });
    return h("div.az-group", this.button);
  }

  #searchParts() {
    const { shipped, place } = this;
    const { settings, networks, game } = shipped.data;
    const root = h("div.az-component", { "data-kind": "explorer" });
    const data = { game, settings, networks, start: this.match.position.over ? undefined : this.match.position.text };
    this.explorer = explorer(root, data, place);
    this.runner = pushButton("", "run-search", () => (this.timer ? this.#stop() : this.#run()));
    return [h("p.az-hint", searchWords(shipped)), h("div.az-group", this.runner), root];
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

/** What the player is, and what is proved about this game. */
function aboutWords({ about, data, overrides }, { you, isUsual }) {
  const how = about.alone ? "chooses its moves without search" : `guides a search with ${data.settings.num_simulations} simulations for each move`;
  const parts = [`The network ${how}.`];
  if (overrides) parts.push(`In ${overrides.toLocaleString("en")} position${overrides === 1 ? "" : "s"} (symmetric copies count once), it plays a stored move instead of its own. These moves are its override table.`);
  const { proof } = about;
  if (!proof) parts.push("It was not proved unbeatable: you may win.");
  else if (!isUsual) parts.push("The proof does not cover this game, because the search or the starting position was changed: you may win.");
  else if (you === 0) parts.push("The proof covers only games in which it moves first: when you move first, you may win.");
  else parts.push("It moves first, and it is proved never to lose.");
  return parts.join(" ");
}

function searchWords({ about, data }) {
  const use = about.alone ? "When you play, the network does not search, unless you choose a search above." : `When you play, the network searches with ${data.settings.num_simulations} simulations for each of its moves, unless you choose another setting above.`;
  return `Each simulation adds at most one position to the tree, which the same network evaluates. ${use} The button \u201cnext phase\u201d shows a single step.`;
}

/** Counts of results in words: "3 won, 1 drawn and none lost". */
export function resultWords({ won, drawn, lost }) {
  return listWords([`${won.toLocaleString("en")} won`, `${drawn.toLocaleString("en")} drawn`, lost ? `${lost.toLocaleString("en")} lost` : "none lost"]);
}
