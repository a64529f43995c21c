import { h, pushButton, replace } from "../../azjax/viz/js/dom.js";
import { picture } from "../../azjax/viz/js/picture.js";
import { MARK, openIn, resultWords } from "./playground.js";
import { playerName } from "../../azjax/viz/js/words.js";

const RANDOM_LINES = 100;
const LINES_SLICE = 40; // Milliseconds between events.
const END_WORDS = { won: "This player wins.", drawn: "The game is drawn.", lost: "You win." };

/** The first player of a page against every reply: the visitor chooses the replies. */
export async function unbeaten(root, { players: [first] }) {
  const shipped = await openIn(root, first);
  new Replies(root, shipped);
}

class Replies {
  constructor(root, shipped) {
    const { game } = shipped;
    Object.assign(this, { root, shipped, game, ends: { won: 0, drawn: 0, lost: 0 }, seen: new Set() });
    this.path = [{ position: game.init(), action: null, isOverride: false }];
    this.random = h("p", { role: "status", class: "az-hint", "data-random": "" });
    this.body = h("div");
    const lines = pushButton(`Play ${RANDOM_LINES} games with random replies`, "random-lines", () => this.#playRandomLines());
    replace(root, claim(shipped), this.body, h("div.az-group", lines), this.random);
    this.#answer();
    this.#draw();
  }

  get #here() {
    return this.path.at(-1).position;
  }

  #reply(action) {
    if (!this.game.legal(this.#here).includes(action)) return;
    this.#put({ action, isOverride: false });
    this.#answer();
    this.#count();
    this.#draw();
  }

  /** Plays the player's move. */
  #answer() {
    if (!this.#here.over) this.#put(this.shipped.choose(this.#here));
  }

  #put({ action, isOverride }) {
    this.path.push({ position: this.game.step(this.#here, action), action, isOverride });
  }

  #back(length) {
    this.path.length = length;
    this.#draw();
  }

  /** Counts a finished line, once. */
  #count() {
    const line = this.path.map(({ action }) => action).join();
    if (!this.#here.over || this.seen.has(line)) return;
    this.seen.add(line);
    this.ends[resultOf(this.game, this.#here)] += 1;
  }

  #draw() {
    const here = this.#here;
    this.root.dataset.board = here.text;
    if (here.over) this.root.dataset.result = resultOf(this.game, here);
    else delete this.root.dataset.result;
    replace(
      this.body,
      h("ol.az-proof-path", { "aria-label": "the moves so far" }, this.path.map((_, i) => this.#crumb(i)).filter(Boolean)),
      h("div.az-columns", this.#board(), h("div", this.#side(), this.#tally())),
    );
  }

  /** A position with the visitor to move, to go back to. */
  #crumb(i) {
    const isTurn = i % 2 === 1 || i === this.path.length - 1;
    if (!isTurn) return null;
    const { position } = this.path[i];
    const name = `back to move ${i}: ${this.game.moveName(this.path[i - 1].position, this.path[i].action)}`;
    const attributes = { class: "az-proof-step", "aria-label": name, "aria-current": i === this.path.length - 1 && "step" };
    return h("li", pushButton(picture(this.game, position, { size: 52, last: this.#lastAt(i) }), `line-${i}`, () => this.#back(i + 1), attributes));
  }

  #lastAt(i) {
    return i ? { position: this.path[i - 1].position, action: this.path[i].action } : null;
  }

  #board() {
    const { game, path } = this;
    const listed = path.map(({ isOverride }, i) => (isOverride ? game.cell(path[i - 1].position.board, path[i].action) : -1));
    const dots = listed.filter((cell) => cell >= 0);
    const onMove = this.#here.over ? null : (action) => this.#reply(action);
    const last = this.#lastAt(path.length - 1);
    return picture(game, this.#here, { size: 300, last, label: "choose a reply", ...(dots.length && { dots }), ...(onMove && { onMove }) });
  }

  #side() {
    const { game } = this;
    const here = this.#here;
    if (here.over) return h("p.az-proof-end", { role: "status" }, `${END_WORDS[resultOf(game, here)]} Go back to any position above and choose another reply.`);
    const replies = game.legal(here).map((action) => h("tr", this.#replyCells(here, action)));
    const heads = [`your reply (${playerName(here.player)})`, "this player\u2019s answer"].map((text) => h("th", { scope: "col" }, text));
    return h("table.az-proof-replies", h("caption", this.#caption()), h("thead", h("tr", heads)), h("tbody", replies));
  }

  #caption() {
    const start = "Choose any reply; this player has one answer to each.";
    return this.shipped.about.proof ? `${start} Every game ends in a win for this player or in a draw.` : start;
  }

  #replyCells(here, action) {
    const { game } = this;
    const after = game.step(here, action);
    const go = pushButton(game.moveName(here, action), `choose-${action}`, () => this.#reply(action), { class: "az-button az-small" });
    const answer = after.over ? null : this.shipped.choose(after);
    const text = answer ? `${game.moveName(after, answer.action)}${answer.isOverride ? ` ${MARK}` : ""}` : END_WORDS[resultOf(game, after)];
    return [h("th", { scope: "row" }, go), h("td", { "data-answer": answer?.action }, text)];
  }

  #tally() {
    const total = this.seen.size;
    if (!total) return null;
    return h("p.az-hint", { "data-tally": total }, `Different games that you finished: ${total}. Results of this player: ${resultWords(this.ends)}.`);
  }

  /** Plays lines with random replies, a slice at a time. */
  #playRandomLines() {
    clearTimeout(this.timer);
    const ends = { won: 0, drawn: 0, lost: 0 };
    const go = (left) => {
      const until = performance.now() + LINES_SLICE;
      let rest = left;
      while (rest && performance.now() < until) {
        ends[this.#randomLine()] += 1;
        rest -= 1;
      }
      this.random.textContent = `${RANDOM_LINES - rest} games with random replies. Results of this player: ${resultWords(ends)}.`;
      this.random.dataset.random = RANDOM_LINES - rest;
      if (rest) this.timer = setTimeout(() => go(rest));
    };
    go(RANDOM_LINES);
  }

  #randomLine() {
    const { game, shipped } = this;
    let position = game.init();
    while (!position.over) {
      const legal = game.legal(position);
      const action = position.player === 0 ? shipped.choose(position).action : legal[Math.floor(Math.random() * legal.length)];
      position = game.step(position, action);
    }
    return resultOf(game, position);
  }
}

function resultOf(game, position) {
  const winner = game.winner(position);
  return winner === null ? "drawn" : winner === 0 ? "won" : "lost";
}

/** Whether it can be beaten, and how that was checked. */
function claim({ about }) {
  const { proof } = about;
  if (!proof) {
    return h("p.az-proof-claim", { "data-claim": "open" }, "This is not known: not all replies to this player have been checked. Choose replies and see how the games end.");
  }
  const count = (number) => number.toLocaleString("en");
  return [
    h("p.az-proof-claim", { "data-claim": "proved" }, "No opponent can beat it when it moves first. Here is why."),
    h(
      "p.az-intro",
      `A program played this player against every possible reply. This player made ${count(proof.decisions)} decisions. ` +
        `The program counted the moves that end a game: ${count(proof.won)} wins of this player, ${count(proof.drawn)} draws and no losses. Symmetric copies count once.`,
    ),
  ];
}
