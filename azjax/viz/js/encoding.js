import { editCell } from "./board.js";
import { boardText, playerToMove } from "./cells.js";
import { fixed, h, percent, pushButton, replace, signed } from "./dom.js";
import { openGame } from "./games.js";
import { networkOf, openNetworks, opinionOf } from "./network.js";
import { picture } from "./picture.js";
import { playerName, sentence } from "./words.js";

/** The network's input and output for a position that the reader sets up; games of stones only. */
export function encoding(root, data, place) {
  const game = openGame(data);
  const networks = openNetworks(data, game);
  let { board: cells } = game.init();
  const set = (next) => {
    cells = next;
    draw();
    if (game.read(boardText(cells))) place.set({ board: boardText(cells) });
  };
  const draw = () => {
    const reason = game.whyImpossible(cells);
    const network = networkOf(networks, place.get("iteration"));
    root.dataset.board = boardText(cells);
    const side = h(
      "div",
      stateSide(game, cells, data.encoding),
      network ? networkSide(game, network, cells, reason) : null,
    );
    replace(root, h("div.az-columns", editorSide(game, cells, reason, set), side));
  };
  place.follow(() => {
    cells = game.read(place.get("board"))?.board ?? cells;
    draw();
  });
}

/** The planes of a position, the network's input: `three` absolute or `two` relative ones. */
export function planesOf(cells) {
  const mover = playerToMove(cells);
  const own = mover === 0 ? 1 : -1;
  const stones = (stone) => cells.map((cell) => Number(cell === stone));
  const turn = cells.map(() => 1 - mover);
  return { three: [stones(1), stones(-1), turn], two: [stones(own), stones(-own)] };
}

/** A bar from −1 to +1 with its number: a value for the player to move. */
export function valueBar(value, caption, name = "value") {
  const from = 50 + 50 * Math.min(value, 0);
  const style = { "--az-from": `${from}%`, "--az-length": `${50 * Math.abs(value)}%` };
  const fill = value < 0 ? "var(--az-bad)" : "var(--az-heat)";
  const label = `${caption}: ${fixed(value, 2)}, from \u22121, lost, to +1, won`;
  return h(
    "div.az-value",
    { [`data-${name}`]: value },
    h("p", `${caption}: `, h("strong", signed(value))),
    h("div.az-bar", { role: "img", "aria-label": label }, h("i", { style: { ...style, "--az-fill": fill } })),
    h("div.az-scale", { "aria-hidden": "true" }, h("span", "\u22121"), h("span", "0"), h("span", "+1")),
  );
}

function editorSide(game, cells, reason, set) {
  const position = game.at(cells);
  const hint = position.over ? "The game is over here." : `${playerName(position.player)} to move. Click a cell to add or remove a stone.`;
  const labels = Array.from({ length: game.numActions }, (_, action) => game.moveLabel(position, action));
  const size = game.columns > 3 ? 316 : 204;
  const clear = { class: "az-button az-small", disabled: !cells.some(Boolean) };
  return h(
    "div.az-editor",
    picture(game, position, { size, labels, onCell: (cell) => set(editCell(cells, cell, game)), label: "position, to edit" }),
    h("p", { class: reason ? "az-reason" : "az-hint", role: "status", "data-reason": reason }, reason ?? hint),
    pushButton("clear", "clear", () => set(cells.map(() => 0)), clear),
  );
}

function stateSide(game, cells, own) {
  const mover = playerToMove(cells);
  const { three, two } = planesOf(cells);
  const stonesOf = (who, player) => `${who} stones${player === undefined ? "" : ` (${playerName(player)}\u2019s)`}`;
  const turn = mover === 0 ? "all ones: X is to move" : "all zeros: O is to move";
  const hint = "One number per cell, row by row: X is 1, O is \u22121, empty is 0.";
  const vector = `[${cells.map((cell) => fixed(cell, 0)).join(", ")}]`;
  const sets = [
    ["absolute", "Three planes: the stones of each player, and whose turn it is.", three, [stonesOf("X\u2019s"), stonesOf("O\u2019s"), turn]],
    ["relative", "Two planes, from the perspective of the player to move.", two, [stonesOf("the mover\u2019s", mover), stonesOf("the opponent\u2019s", 1 - mover)]],
  ];
  const planeSet = ([name, text, planes, captions]) => {
    const title = `${sentence(name)} encoding${name === own ? ", used by this network" : ""}`;
    const drawn = planes.map((values, i) => plane(values, captions[i], `${name}-${i}`, game));
    return h("section.az-plane-set", h("h3", title), h("p.az-hint", text), h("div.az-plane-row", drawn));
  };
  return [
    h("section.az-plane-set", h("h3", "The state"), h("p.az-hint", hint), h("code.az-vector", { "data-vector": cells.join(",") }, vector)),
    h("div.az-planes", sets.map(planeSet)),
  ];
}

function plane(values, caption, name, { rows, columns }) {
  const cell = (value) => h("td", { "data-value": value }, String(value));
  const row = (_, r) => h("tr", values.slice(columns * r, columns * (r + 1)).map(cell));
  const look = columns > 3 ? "az-plane az-plane-wide" : "az-plane";
  return h(
    "figure",
    { class: look, "data-plane": name, "data-values": values.join("") },
    h("table", { "aria-label": caption }, h("tbody", Array.from({ length: rows }, row))),
    h("figcaption", caption),
  );
}

function networkSide(game, network, cells, reason) {
  const position = game.at(cells);
  const heading = h("h3", `Output of the network of iteration ${network.iteration}`);
  if (reason || position.over) {
    const why = reason ? "None: no game leads to this position." : "None: the game is over.";
    return h("section.az-network", heading, h("p.az-hint", why));
  }
  const { policy, value, move } = opinionOf(network, game, position);
  const shares = game.legal(position).map((action) => `${game.moveLabel(position, action)} ${percent(policy[action])}`);
  const size = game.columns > 3 ? 240 : 168;
  const drawn = picture(game, position, { size, heat: policy, labels: policy.map(percent), label: `policy: ${shares.join(", ")}` });
  const figure = h("figure.az-figure", drawn, h("figcaption", "policy: the probability of each move"));
  const bar = valueBar(value, `Value for ${playerName(position.player)}, to move`);
  return h("section.az-network", { "data-move": move }, heading, h("div.az-says", figure, bar));
}
