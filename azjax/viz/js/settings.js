import { picture } from "./board.js";
import { h, pushButton } from "./dom.js";
import { byAction } from "./games.js";
import { outcomeWords, playerName } from "./words.js";

const URGENCIES = ["zero", "parent", "loss"];
const MOST_SEED = 2 ** 31 - 1;
const MOST_SIMULATIONS = 1000; // Larger trees cannot be drawn.

/** Labels of the settings with a list of values, and the names of these values. */
const LISTS = { algorithm: "algorithm", evaluator: "evaluator", iteration: "iteration", first_play_urgency: "untried moves" };
const VALUE_NAMES = { puct: "PUCT", gumbel: "Gumbel", uct: "UCT", rollout: "random rollout" };

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

/** The controls of a bench's settings; each change calls `onChange({name: value})`. */
export function settingFields(bench, onChange) {
  const { settings, iterations } = bench;
  const hasChoice = settings.evaluator === "network" && iterations.length > 1;
  const lists = ["algorithm", "evaluator", ...(hasChoice ? ["iteration"] : [])];
  const names = [...lists, "num_simulations", ...SETTINGS[settings.algorithm], "seed"];
  const control = (name) => (Object.hasOwn(LISTS, name) ? choice(name, valuesOf(name, bench), settings[name], onChange) : number(name, settings[name], onChange));
  return names.map((name) => h("label.az-field", h("span", LISTS[name] ?? NUMBERS[name].label), control(name)));
}

/** The values of a setting that has a list of them. */
function valuesOf(name, { evaluators, iterations }) {
  return { algorithm: Object.keys(SETTINGS), evaluator: evaluators, iteration: iterations, first_play_urgency: URGENCIES }[name];
}

/** Reads a setting of a bench from its text in an address; undefined if it is invalid. */
export function readSetting(name, text, bench) {
  if (Object.hasOwn(LISTS, name)) return valuesOf(name, bench).find((value) => String(value) === text);
  return Object.hasOwn(NUMBERS, name) && text && !whyNotSet(name, Number(text)) ? Number(text) : undefined;
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
  const labels = byAction(game, position, (action) => game.moveLabel(position, action));
  const look = { size: game.columns > 3 ? 316 : 132, labels, onMove, label: "starting position" };
  const button = (text, name, on, click) =>
    pushButton(text, name, () => on && click(), { class: "az-button az-small", "aria-disabled": String(!on) });
  const note = over ? `${outcomeWords(game, position)}: there is nothing to search. Undo the move.` : `${playerName(player)} to move. Click a cell to play it.`;
  const attributes = { class: over ? "az-reason" : "az-hint", role: "status", "data-start-note": true };
  const isStart = position.text === game.init().text;
  const buttons = [button("undo", "undo", canUndo, onUndo), button("initial position", "empty", !isStart, onReset)];
  return [
    h("h3", "Starting position"),
    h("div.az-start-body", picture(game, position, look), h("div", h("p", attributes, note), h("div.az-group", buttons))),
  ];
}

function number(name, value, onChange) {
  const { label, ...limits } = NUMBERS[name];
  const change = ({ target }) => onChange({ [name]: target.value === "" ? NaN : Number(target.value) });
  return h("input.az-number", { step: "any", ...limits, type: "number", value, ...keysOf(name), on: { change } });
}

function choice(name, values, current, onChange) {
  const option = (value) => h("option", { value, selected: value === current }, VALUE_NAMES[value] ?? String(value));
  const change = ({ target }) => onChange({ [name]: values[target.selectedIndex] });
  return h("select", { ...keysOf(name), on: { change } }, values.map(option));
}

function keysOf(name) {
  return { "data-setting": name, "data-focus": name };
}
