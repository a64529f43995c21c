import { Blunders } from "./blunders.js";
import { h, percent, pushButton, replace, signed } from "./dom.js";
import { openGame } from "./games.js";
import { networkOf, openNetworks, opinionOf } from "./network.js";
import { picture } from "./picture.js";
import { playerName } from "./words.js";

const RESULT_VERBS = { 1: "wins", 0: "draws", "-1": "loses" };

/** The outputs of a run's networks for the page's position, one column per iteration. */
export function training(root, data, place) {
  const game = openGame(data);
  const networks = openNetworks(data, game);
  const blunders = game.table && networks.length ? new Blunders(game, data.settings, place) : null;
  const body = h("div");
  const draw = () => {
    const position = game.read(place.get("board")) ?? game.init();
    root.dataset.board = game.text(position);
    blunders?.show(networkOf(networks, place.get("iteration")));
    replace(body, position.over ? overWords(game, position) : opinions(game, networks, position, place));
  };
  replace(root, body, blunders?.element);
  place.follow((names) => (!names.length || names.some((name) => name === "board" || name === "iteration")) && draw());
}

function overWords(game, position) {
  const hint = h("p.az-hint", "The game is over here, so there is nothing to evaluate.");
  return h("div.az-columns", picture(game, position, { size: 150 }), hint);
}

function opinions(game, networks, position, place) {
  const outputs = networks.map((network) => opinionOf(network, game, position));
  const legal = game.legal(position);
  const { table } = game;
  const row = table?.find(position);
  const optimal = table ? table.optimal(row) : [];
  const mover = playerName(position.player);
  const shown = place.get("iteration") ?? String(networks.at(-1)?.iteration);
  const head = networks.map(({ iteration }) => {
    const look = { class: "az-button az-small", "aria-pressed": String(String(iteration) === shown) };
    return h("th", { scope: "col" }, pushButton(String(iteration), `iteration-${iteration}`, () => place.set({ iteration }), look));
  });
  const values = outputs.map(({ value }) => h("td", { "data-value": value }, signed(value)));
  const rows = legal.map((action) => {
    const name = [game.moveName(position, action), optimal.includes(action) ? h("span.az-keeps", { title: "keeps the value" }, " \u25cf") : null];
    return h("tr", h("th", { scope: "row" }, name), outputs.map(({ policy, move }) => shareCell(policy[action], move === action)));
  });
  const caption = h("caption", `Each network\u2019s probability for each move of ${mover}, and its value for ${mover}`);
  const truth = table ? `With perfect play ${mover} ${RESULT_VERBS[table.truth(row)]}. A dot marks each move that keeps this result; a frame marks a network\u2019s most likely move.` : "A frame marks a network\u2019s most likely move.";
  return [
    h(
      "div.az-columns",
      picture(game, position, { size: 150, marks: table ? optimal : null }),
      h(
        "div.az-scroll",
        { tabindex: 0, "data-focus": "networks" },
        h(
          "table.az-training",
          caption,
          h("thead", h("tr", h("th", { scope: "row" }, "iteration"), head)),
          h("tbody", h("tr.az-training-value", h("th", { scope: "row" }, "value"), values), rows),
        ),
      ),
    ),
    h("p.az-hint", truth),
  ];
}

function shareCell(p, best) {
  const style = { "--az-share": `${(100 * p).toFixed(1)}%` };
  return h("td", { class: best ? "az-share az-share-best" : "az-share", style, "data-share": p }, percent(p));
}
