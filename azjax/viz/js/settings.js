import { board, boardText, editCell, playerToMove, whyImpossible, winningLine } from "./board.js";
import { h, pushButton } from "./dom.js";
import { EVALUATOR_NAMES, playerName } from "./words.js";

const SETTING_NAMES = {
  title: "position",
  evaluator: "evaluator",
  c_puct: "c_puct",
  noise: "root noise",
};
const LIMITS = {
  c_puct: { min: 0, max: 100, step: "any" },
  noise: { min: 0, max: 1, step: 0.05 },
  seed: { min: 0, step: 1 },
};

/** The settings of a page: lists of what it holds; `onChoose(name, value)`. */
export function pageSettings(recordings, recording, onChoose) {
  return Object.entries(SETTING_NAMES).map(([name, label]) => {
    const values = [...new Set(recordings.map((other) => other[name]))];
    if (typeof values[0] === "number") values.sort((a, b) => a - b);
    const change = (event) => onChoose(name, values[event.target.selectedIndex]);
    return field(label, choice(values, recording[name], change, name));
  });
}

/** The settings of a live notebook; `onChange({name: value})`. */
export function liveSettings(evaluators, recording, onChange) {
  const change = (event) => onChange({ evaluator: evaluators[event.target.selectedIndex] });
  const number = ([name, limits]) => {
    const ask = (event) =>
      onChange({ [name]: event.target.value === "" ? null : Number(event.target.value) });
    const attributes = { type: "number", value: recording[name] ?? 0, class: "az-number", ...limits };
    const keys = { "data-setting": name, "data-focus": name };
    return field(
      SETTING_NAMES[name] ?? name,
      h("input", { ...attributes, ...keys, on: { change: ask } }),
    );
  };
  const list = choice(evaluators, recording.evaluator, change, "evaluator");
  return [field("evaluator", list), ...Object.entries(LIMITS).map(number)];
}

/**
 * The recording that is closest to the one shown with one setting changed.
 *
 * Returns it, and in words what is not as wanted ("" if all is).
 */
export function nearestRecording(recordings, recording, name, value) {
  const wanted = { ...recording, [name]: value };
  const distance = (other) => distanceOf(wanted, other, name);
  const nearest = recordings.reduce((a, b) => (distance(b) < distance(a) ? b : a));
  const other = Object.keys(SETTING_NAMES).filter((key) => wanted[key] !== nearest[key]);
  const words = other.map(
    (key) =>
      `${SETTING_NAMES[key]} ${settingText(key, nearest[key])} instead of ${settingText(key, wanted[key])}`,
  );
  const sentence =
    "This page holds no search with all of these settings, so you see the nearest: " +
    `${words.join(" and ")}. A notebook searches any.`;
  return { nearest, words: other.length ? sentence : "" };
}

/**
 * A board to edit, which says what can be searched and what not.
 *
 * `onEdit(cells)` follows each change; `onSearch()` exists where new searches can be made.
 */
export function startEditor({ cells, searched, lines, recordings, onEdit, onSearch }) {
  const reason = whyNotSearched(cells, lines);
  const same = boardText(cells) === boardText(searched);
  const labels = cells.map((_, cell) => String(cell));
  const onCell = (cell) => onEdit(editCell(cells, cell));
  const look = { size: 132, onCell, labels, line: winningLine(cells, lines) };
  const button = (text, name, on, click) =>
    pushButton(text, name, click, { class: "az-button az-small", disabled: !on });
  const clear = button("clear", "clear", cells.some(Boolean), () => onEdit(cells.map(() => 0)));
  const search = onSearch && button("search from here", "search", !reason && !same, onSearch);
  const state = { class: reason ? "az-reason" : "az-hint", role: "status", "data-reason": reason };
  const note = reason ?? startNote(cells, same, Boolean(onSearch));
  const aside = h(
    "div",
    {},
    h("p", { ...state, "data-start-note": true }, note),
    h("div", { class: "az-group" }, search, clear),
    onSearch ? null : recordedTitles(recordings),
  );
  const picture = board(cells, { ...look, label: "starting position, to edit" });
  return [h("h3", {}, "Starting position"), h("div", { class: "az-start-body" }, picture, aside)];
}

function startNote(cells, same, live) {
  const turn = `${playerName(playerToMove(cells))} to move`;
  if (same) return `${turn}: the position searched above. Click a cell to set or to clear it.`;
  if (live) return `${turn}.`;
  return (
    `${turn}. This page holds recorded searches of the positions listed here; ` +
    "a notebook searches any."
  );
}

function whyNotSearched(cells, lines) {
  const reason = whyImpossible(cells, lines);
  if (reason) return reason;
  const over = winningLine(cells, lines) || cells.every(Boolean);
  return over ? "the game is over there: nothing to search" : null;
}

function recordedTitles(recordings) {
  const names = [...new Set(recordings.map((recording) => recording.title))];
  return h("p", { class: "az-hint" }, `Recorded here: ${names.join("; ")}.`);
}

/** How far a recording is from what is wanted: the last choice counts most, then the position. */
function distanceOf(wanted, recording, chosen) {
  const weight = (name) => (name === chosen ? 100 : name === "title" ? 30 : 4);
  const apart = (name) => {
    if (wanted[name] === recording[name]) return 0;
    const far = typeof wanted[name] === "number" ? Math.abs(wanted[name] - recording[name]) / 100 : 0;
    return weight(name) + Math.min(1, far);
  };
  return Object.keys(SETTING_NAMES).reduce((sum, name) => sum + apart(name), 0);
}

function settingText(name, value) {
  if (name === "evaluator") return EVALUATOR_NAMES[value] ?? value;
  return name === "noise" && !value ? "none" : String(value);
}

function field(label, control) {
  return h("label", { class: "az-field" }, h("span", {}, label), control);
}

function choice(values, current, change, name) {
  const option = (value) =>
    h("option", { value, selected: value === current }, settingText(name, value));
  return h("select", { "data-setting": name, "data-focus": name, on: { change } }, values.map(option));
}
