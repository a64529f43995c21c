import { Blunders } from "./blunders.js";
import { board, isPosition, openTable, readBoard } from "./board.js";
import { h, percent, pushButton, replace, signed } from "./dom.js";
import { gameNamed } from "./games.js";
import { networkOf, openNetworks, opinionOf } from "./network.js";
import { playerName } from "./words.js";

const ENDS = { 1: "wins", 0: "draws", "-1": "loses" };

/** What the networks of a run say about the page's position, one column an iteration. */
export function training(root, data, place) {
  const game = gameNamed(data.game);
  const table = openTable(data);
  const networks = openNetworks(data, game, table);
  const blunders = table && networks.length ? new Blunders(game, table, data.settings, place) : null;
  const body = h("div", {});
  const draw = () => {
    const there = readBoard(place.get("board") ?? "");
    const position = isPosition(there, game, table) ? game.at(there) : game.init();
    root.dataset.board = game.text(position);
    blunders?.show(networkOf(networks, place.get("iteration")));
    replace(body, position.over ? ended(game, position) : opinions(game, table, networks, position, place));
  };
  replace(root, body, blunders?.element);
  place.follow((names) => (!names.length || names.some((name) => name === "board" || name === "iteration")) && draw());
}

function ended(game, position) {
  return h("div", { class: "az-columns" }, picture(game, position), h("p", { class: "az-hint" }, "The game is over here; no network is asked."));
}

function picture(game, position, options = {}) {
  return board(position.board, { size: 150, shape: [game.rows, game.columns], line: position.line, ...options });
}

function opinions(game, table, networks, position, place) {
  const said = networks.map((network) => opinionOf(network, game, position));
  const legal = game.legal(position);
  const row = table?.find(position.board);
  const keeps = table ? table.optimal(row) : [];
  const mover = playerName(position.player);
  const shown = place.get("iteration") ?? String(networks.at(-1)?.iteration);
  const head = networks.map(({ iteration }) => {
    const look = { class: "az-button az-small", "aria-pressed": String(String(iteration) === shown) };
    return h("th", { scope: "col" }, pushButton(String(iteration), `iteration-${iteration}`, () => place.set({ iteration }), look));
  });
  const values = said.map(({ value }) => h("td", { "data-value": value }, signed(value)));
  const rows = legal.map((action) => {
    const name = [`move ${action}`, keeps[action] ? h("span", { class: "az-keeps", title: "keeps the value" }, " \u25cf") : null];
    return h("tr", {}, h("th", { scope: "row" }, name), said.map(({ policy, move }) => share(policy[action], move === action)));
  });
  const caption = h("caption", {}, `How likely each network finds each move of ${mover}, and what it expects for ${mover}`);
  const truth = table ? `Perfect play: ${mover} ${ENDS[table.truth(row)]}. A dot marks each move that keeps this; a frame the move a network finds best.` : "A frame marks the move that a network finds best.";
  return [
    h(
      "div",
      { class: "az-columns" },
      picture(game, position, game.numActions === position.board.length ? { marks: keeps } : {}),
      h(
        "div",
        { class: "az-scroll", tabindex: 0, "data-focus": "networks" },
        h(
          "table",
          { class: "az-training" },
          caption,
          h("thead", {}, h("tr", {}, h("th", { scope: "row" }, "iteration"), head)),
          h("tbody", {}, h("tr", { class: "az-training-value" }, h("th", { scope: "row" }, "value"), values), rows),
        ),
      ),
    ),
    h("p", { class: "az-hint" }, truth),
  ];
}

function share(p, best) {
  const style = { "--az-share": `${(100 * p).toFixed(1)}%` };
  return h("td", { class: best ? "az-share az-share-best" : "az-share", style, "data-share": p }, percent(p));
}
