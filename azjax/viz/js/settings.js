import { picture } from "./board.js";
import { h, pushButton } from "./dom.js";
import { EVALUATOR_NAMES, outcomeWords, playerName } from "./words.js";

/** The most simulations of a search; larger trees cannot be drawn. */
export const MOST_SIMULATIONS = 1000;

const ALGORITHM_NAMES = { puct: "PUCT", gumbel: "Gumbel", uct: "UCT" };
const URGENCIES = ["zero", "parent", "loss"];
const MOST_SEED = 2 ** 31 - 1;

/** Labels and limits of the numeric settings. */
const NUMBERS = {
  num_simulations: { label: "simulations", min: 1, max: MOST_SIMULATIONS, step: 1 },
  seed: { label: "seed", min: 0, max: MOST_SEED, step: 1, title: "of noise, rollouts and the order of UCT" },
  c_puct: { label: "c_puct", min: 0, max: 100, title: "weight of the prior's bonus" },
  dirichlet_fraction: { label: "root noise", min: 0, max: 1, title: "share of Dirichlet noise" },
  dirichlet_alpha: { label: "noise alpha", min: 0.001, max: 100, title: "concentration of the Dirichlet noise" },
  gumbel_scale: { label: "root noise", min: 0, max: 100, title: "scale of the Gumbel noise" },
  max_considered_actions: { label: "moves considered", min: 1, max: 100, step: 1 },
  value_scale: { label: "value scale", min: 0, max: 100, title: "weight of Q" },
  maxvisit_init: { label: "visits added", min: 0, max: 1000, title: "number added to the largest visit count; the weight of Q grows with the sum" },
  exploration: { label: "C", min: 0, max: 100, title: "weight of the confidence bound" },
};
const SETTINGS = {
  puct: ["c_puct", "first_play_urgency", "dirichlet_fraction", "dirichlet_alpha"],
  gumbel: ["gumbel_scale", "max_considered_actions", "value_scale", "maxvisit_init"],
  uct: ["exploration"],
};

/** The controls of a search's settings; each change calls `onChange({name: value})`. */
export function settingFields(settings, evaluators, iterations, onChange) {
  const list = (name, label, values, write = String) =>
    field(label, choice(name, values, settings[name], write, (value) => onChange({ [name]: value })));
  const control = (name) => {
    if (name === "first_play_urgency") return list(name, "untried moves", URGENCIES);
    return number(name, settings[name], onChange);
  };
  return [
    list("algorithm", "algorithm", Object.keys(SETTINGS), (name) => ALGORITHM_NAMES[name]),
    list("evaluator", "evaluator", evaluators, (name) => EVALUATOR_NAMES[name] ?? name),
    settings.evaluator === "network" && iterations.length > 1
      ? list("iteration", "iteration", iterations)
      : null,
    ...["num_simulations", ...SETTINGS[settings.algorithm], "seed"].map(control),
  ];
}

/** Reads a setting of a bench from its text in an address; undefined if it is invalid. */
export function readSetting(name, text, { evaluators, iterations }) {
  const lists = { evaluator: evaluators, iteration: iterations.map(String), algorithm: Object.keys(SETTINGS), first_play_urgency: URGENCIES };
  if (!Object.hasOwn(NUMBERS, name)) {
    if (!Object.hasOwn(lists, name) || !lists[name].includes(text)) return undefined;
    return name === "iteration" ? Number(text) : text;
  }
  return text && !whyNotSet(name, Number(text)) ? Number(text) : undefined;
}

/** Why a number is invalid, in a sentence, or null. */
export function whyNotSet(name, value) {
  const { label, min, max, step } = NUMBERS[name];
  if (Number.isFinite(value) && value >= min && value <= max && (!step || Number.isInteger(value))) {
    return null;
  }
  const given = Number.isFinite(value) ? `${label} is ${value}` : `${label} is not a number`;
  return `${given}: use ${step ? "a whole number from " : ""}${min} to ${max}`;
}

/**
 * An editor of the position to search from, in which moves are played.
 *
 * A finished `position` is shown, but not searched. `onMove(action)`, `onUndo()` and `onReset()`
 * change it.
 */
export function startEditor({ game, position, canUndo, onMove, onUndo, onReset }) {
  const { over, player } = position;
  const labels = Array(game.numActions).fill("");
  for (const action of game.legal(position)) labels[action] = game.moveLabel(position, action);
  const look = { size: game.columns > 3 ? 316 : 132, labels, onMove, label: "starting position" };
  const button = (text, name, on, click) =>
    pushButton(text, name, () => on && click(), { class: "az-button az-small", "aria-disabled": String(!on) });
  const turn = `${playerName(player)} to move. Click a cell to play it.`;
  const note = over ? `${outcomeWords(game, position)}: there is nothing to search. Undo the move.` : turn;
  const attributes = { class: over ? "az-reason" : "az-hint", role: "status", "data-start-note": true };
  return [
    h("h3", "Starting position"),
    h(
      "div.az-start-body",
      picture(game, position, look),
      h(
        "div",
        h("p", attributes, note),
        h("div.az-group", button("undo", "undo", canUndo, onUndo), button("initial position", "empty", position.text !== game.init().text, onReset)),
      ),
    ),
  ];
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
  return h("label.az-field", h("span", label), control);
}

function choice(name, values, current, write, onChoose) {
  const option = (value) => h("option", { value, selected: value === current }, write(value));
  const change = (event) => onChoose(values[event.target.selectedIndex]);
  const keys = { "data-setting": name, "data-focus": name, on: { change } };
  return h("select", keys, values.map(option));
}
