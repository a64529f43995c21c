import { h, pushButton, replace } from "../../azjax/viz/js/dom.js";
import { Walk } from "../../azjax/viz/js/proof.js";
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

class Replies extends Walk {
  constructor(root, shipped) {
    super(root, shipped.game);
    Object.assign(this, { shipped, ends: { won: 0, drawn: 0, lost: 0 }, seen: new Set() });
    this.random = h("p", { role: "status", class: "az-hint", "data-random": "" });
    this.body = h("div");
    const lines = pushButton(`Play ${RANDOM_LINES} games with random replies`, "random-lines", () => this.#playRandomLines());
    replace(root, claim(shipped), this.body, h("div.az-group", lines), this.random);
    this.begin((position) => shipped.choose(position), 0);
  }

  /** Counts a finished line, once. */
  moved() {
    const line = this.path.map(({ action }) => action).join();
    if (!this.here.over || this.seen.has(line)) return;
    this.seen.add(line);
    this.ends[resultOf(this.game, this.here)] += 1;
  }

  draw() {
    const { game, here, path, root } = this;
    root.dataset.board = here.text;
    if (here.over) root.dataset.result = resultOf(game, here);
    else delete root.dataset.result;
    const dots = path.flatMap(({ isOverride, action }, i) => (isOverride ? [game.cell(path[i - 1].position.board, action)] : []));
    const board = this.board({ size: 300, ...(dots.length && { dots }) });
    replace(this.body, this.crumbs(), h("div.az-columns", board, h("div", this.#side(), this.#tally())));
  }

  #side() {
    const { game, here } = this;
    if (here.over) return h("p", { role: "status" }, `${END_WORDS[resultOf(game, here)]} Go back to any position above and choose another reply.`);
    const heads = [`your reply (${playerName(here.player)})`, "this player\u2019s answer"];
    return this.replies(this.#caption(), heads, (action) => {
      const after = game.step(here, action);
      const answer = after.over ? null : this.shipped.choose(after);
      const text = answer ? `${game.moveName(after, answer.action)}${answer.isOverride ? ` ${MARK}` : ""}` : END_WORDS[resultOf(game, after)];
      return h("td", { "data-answer": answer?.action }, text);
    });
  }

  #caption() {
    const start = "Choose any reply; this player has one answer to each.";
    return this.shipped.about.proof ? `${start} Every game ends in a win for this player or in a draw.` : start;
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
