import { board } from "./board.js";
import { h, pushButton } from "./dom.js";
import { EVALUATOR_NAMES, outcomeWords, playerName } from "./words.js";

/** The most simulations of a search: a tree of so many can still be drawn. */
export const MOST_SIMULATIONS = 1000;

const ALGORITHM_NAMES = { puct: "PUCT", gumbel: "Gumbel", uct: "UCT" };
const URGENCIES = ["zero", "parent", "loss"];
const MOST_SEED = 2 ** 31 - 1;

/** The numbers that can be set: what they are called, and their limits. */
const NUMBERS = {
  num_simulations: { label: "simulations", min: 1, max: MOST_SIMULATIONS, step: 1 },
  seed: { label: "seed", min: 0, max: MOST_SEED, step: 1, title: "of noise, rollouts and UCT's order" },
  c_puct: { label: "c_puct", min: 0, max: 100, title: "weight of the prior's bonus" },
  dirichlet_fraction: { label: "root noise", min: 0, max: 1, title: "share of Dirichlet noise" },
  dirichlet_alpha: { label: "noise alpha", min: 0.001, max: 100, title: "concentration of that noise" },
  gumbel_scale: { label: "root noise", min: 0, max: 100, title: "scale of the Gumbel noise" },
  max_considered_actions: { label: "moves considered", min: 1, max: 100, step: 1 },
  value_scale: { label: "value scale", min: 0, max: 100, title: "weight of Q" },
  maxvisit_init: { label: "visits added", min: 0, max: 1000, title: "to the largest count" },
  exploration: { label: "C", min: 0, max: 100, title: "weight of the confidence bound" },
};
const OWN = {
  puct: ["c_puct", "first_play_urgency", "dirichlet_fraction", "dirichlet_alpha"],
  gumbel: ["gumbel_scale", "max_considered_actions", "value_scale", "maxvisit_init"],
  uct: ["exploration"],
};

/** The controls of a search's settings; `onChange({name: value})` is called with each change. */
export function settingFields(settings, evaluators, iterations, onChange) {
  const list = (name, label, values, write = String) =>
    field(label, choice(name, values, settings[name], write, (value) => onChange({ [name]: value })));
  const control = (name) => {
    if (name === "first_play_urgency") return list(name, "untried", URGENCIES);
    return number(name, settings[name], onChange);
  };
  return [
    list("algorithm", "algorithm", Object.keys(OWN), (name) => ALGORITHM_NAMES[name]),
    list("evaluator", "evaluator", evaluators, (name) => EVALUATOR_NAMES[name] ?? name),
    settings.evaluator === "network" && iterations.length > 1
      ? list("iteration", "iteration", iterations)
      : null,
    ...["num_simulations", ...OWN[settings.algorithm], "seed"].map(control),
  ];
}

/** A setting of a bench from its text in an address; undefined if it cannot be that. */
export function readSetting(name, text, { evaluators, iterations }) {
  const lists = { evaluator: evaluators, iteration: iterations.map(String), algorithm: Object.keys(OWN), first_play_urgency: URGENCIES };
  if (!Object.hasOwn(NUMBERS, name)) {
    if (!lists[name]?.includes(text)) return undefined;
    return name === "iteration" ? Number(text) : text;
  }
  return text && !whyNotSet(name, Number(text)) ? Number(text) : undefined;
}

/** Why a number cannot be set, in a sentence, or null. */
export function whyNotSet(name, value) {
  const { label, min, max, step } = NUMBERS[name];
  if (Number.isFinite(value) && value >= min && value <= max && (!step || Number.isInteger(value))) {
    return null;
  }
  const given = Number.isFinite(value) ? `${label} is ${value}` : `${label} has no number`;
  return `${given}: use ${step ? "a whole number from " : ""}${min} to ${max}`;
}

/**
 * The position to search from, as a board that is played on.
 *
 * `position` may be one that is over, which is not searched. `onCell(cell)`, `onUndo()` and
 * `onEmpty()` change it; `onStart(board)` takes one of `starts`, `[{title, board}]`.
 */
export function startEditor({ game, position, canUndo, starts, onCell, onUndo, onEmpty, onStart }) {
  const { board: cells, line, over, player } = position;
  const shape = [game.rows, game.columns];
  const look = { size: game.columns > 3 ? 316 : 132, shape, onCell, line, label: "starting position" };
  const labels = cells.map(() => "");
  for (const action of game.legal(position)) labels[game.cell(cells, action)] = String(action);
  const button = (text, name, on, click) =>
    pushButton(text, name, click, { class: "az-button az-small", disabled: !on });
  const turn = `${playerName(player)} to move. Click a cell to play there.`;
  const note = over ? `${outcomeWords(position)}: nothing is left to search. Undo the move.` : turn;
  const attributes = { class: over ? "az-reason" : "az-hint", role: "status", "data-start-note": true };
  return [
    h("h3", {}, "Starting position"),
    h(
      "div",
      { class: "az-start-body" },
      board(cells, { ...look, labels }),
      h(
        "div",
        {},
        h("p", attributes, note),
        h("div", { class: "az-group" }, button("undo", "undo", canUndo, onUndo), button("empty", "empty", cells.some(Boolean), onEmpty)),
        starts.length ? startList(starts, game, position, onStart) : null,
      ),
    ),
  ];
}

function startList(starts, game, position, onStart) {
  const text = game.text(position);
  const found = starts.findIndex(({ board: cells }) => game.text(game.at(cells)) === text);
  const values = [...starts.keys(), ...(found < 0 ? [-1] : [])];
  const write = (i) => starts[i]?.title ?? "as clicked";
  return field("position", choice("start", values, found, write, (i) => i >= 0 && onStart(starts[i].board)));
}

function number(name, value, onChange) {
  const { label, ...attributes } = NUMBERS[name];
  const change = (event) =>
    onChange({ [name]: event.target.value === "" ? NaN : Number(event.target.value) });
  const keys = { "data-setting": name, "data-focus": name, on: { change } };
  const input = { step: "any", ...attributes, type: "number", value, class: "az-number", ...keys };
  return field(label, h("input", input));
}

function field(label, control) {
  return h("label", { class: "az-field" }, h("span", {}, label), control);
}

function choice(name, values, current, write, onChoose) {
  const option = (value) => h("option", { value, selected: value === current }, write(value));
  const change = (event) => onChoose(values[event.target.selectedIndex]);
  const keys = { "data-setting": name, "data-focus": name, on: { change } };
  return h("select", keys, values.map(option));
}
