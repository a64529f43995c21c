import { h, pushButton, replace } from "../../azjax/viz/js/dom.js";
import { Walk } from "../../azjax/viz/js/proof.js";
import { listWords, playerName } from "../../azjax/viz/js/words.js";

/** The mark of a move from an override table. */
export const MARK = "\u25cf";

const RANDOM_LINES = 100;
const LINES_SLICE = 40; // Milliseconds between events.
const END_WORDS = { won: "This player wins.", drawn: "The game is drawn.", lost: "You win." };

/** A player with a proof, which moves first, against every reply: the visitor chooses the replies. */
export class Replies extends Walk {
  constructor(root, shipped) {
    super(root, shipped.game);
    Object.assign(this, { shipped, ends: { won: 0, drawn: 0, lost: 0 }, seen: new Set() });
    this.random = h("p", { role: "status", class: "az-hint", "data-random": "" });
    this.body = h("div");
    const lines = pushButton(`Play ${RANDOM_LINES} games with random replies`, "random-lines", () => this.#playRandomLines());
    replace(root, claim(shipped.about.proof), this.body, h("div.az-group", lines), this.random);
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
    const board = this.board({ size: 300, dots });
    replace(this.body, this.crumbs(), h("div.az-columns", board, h("div", this.#side(), this.#tally())));
  }

  #side() {
    const { game, here } = this;
    if (here.over) return h("p", { role: "status" }, `${END_WORDS[resultOf(game, here)]} Go back to any position above and choose another reply.`);
    const caption = "Choose any reply; this player has one answer to each. Every game ends in a win for this player or in a draw.";
    const heads = [`your reply (${playerName(here.player)})`, "this player\u2019s answer"];
    return this.replies(caption, heads, (action) => {
      const after = game.step(here, action);
      const answer = after.over ? null : this.shipped.choose(after);
      const text = answer ? `${game.moveName(after, answer.action)}${answer.isOverride ? ` ${MARK}` : ""}` : END_WORDS[resultOf(game, after)];
      return h("td", { "data-answer": answer?.action }, text);
    });
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

/** Counts of results in words: "3 won, 1 drawn and none lost". */
function resultWords({ won, drawn, lost }) {
  return listWords([`${grouped(won)} won`, `${grouped(drawn)} drawn`, `${lost ? grouped(lost) : "none"} lost`]);
}

/** What is proved, and how that was checked. */
function claim({ decisions, won, drawn }) {
  return [
    h("h2", { "data-claim": "" }, "No opponent can beat it when it moves first"),
    h(
      "p.az-intro",
      `A program played this player against every possible reply. This player made ${grouped(decisions)} decisions. ` +
        `The program counted the moves that end a game: ${grouped(won)} wins of this player, ${grouped(drawn)} draws and no losses. Symmetric copies count once.`,
    ),
  ];
}

function grouped(count) {
  return count.toLocaleString("en");
}
