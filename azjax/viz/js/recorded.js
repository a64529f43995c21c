/** The three phases of a simulation, in order. */
export const PHASES = ["selection", "expansion", "backup"];

/** How the phases are called in front of readers. */
export const PHASE_NAMES = {
  start: "start",
  selection: "selection",
  expansion: "expansion and evaluation",
  backup: "backup",
};

/** A recorded search, looked up by moment: t = 0 is the start, then three phases a simulation. */
export class RecordedSearch {
  #children;

  constructor(recording) {
    this.recording = recording;
    this.nodes = recording.nodes;
    this.length = recording.simulations.length;
    this.last = 3 * this.length;
    this.width = Math.max(...recording.frames.map(({ x }) => Math.max(...x) - Math.min(...x)));
    this.#children = recording.nodes.map(() => new Map());
    recording.nodes.forEach((node, id) => {
      if (node.parent !== null) this.#children[node.parent].set(node.action, id);
    });
  }

  /**
   * What happens at time `t`.
   *
   * `known` is how many simulations the numbers shown include: the one under way counts from
   * its backup on. `step` is the simulation's record, null at the start.
   */
  moment(t) {
    if (t === 0) return { t, simulation: 0, phase: "start", known: 0, step: null };
    const simulation = Math.floor((t - 1) / 3) + 1;
    const phase = PHASES[(t - 1) % 3];
    const known = phase === "backup" ? simulation : simulation - 1;
    return { t, simulation, phase, known, step: this.recording.simulations[simulation - 1] };
  }

  /** A node's statistics after `known` simulations; its first ones if it is younger than that. */
  stats(id, known) {
    const entries = this.recording.snapshots[id];
    let low = 0;
    let high = entries.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (entries[middle][0] <= known) low = middle;
      else high = middle - 1;
    }
    const [, visits, value, N, Q, U, S] = entries[low];
    return { visits, value, N, Q, U, S };
  }

  /** The index, among a node's actions, of the highest score; the first of equals. */
  best(stats) {
    return stats.S.indexOf(Math.max(...stats.S));
  }

  /** N, Q and P of the move that leads to a node, from the side of the player who made it. */
  arrival(id, known) {
    const node = this.nodes[id];
    if (node.parent === null) return null;
    const index = this.nodes[node.parent].actions.indexOf(node.action);
    const { N, Q } = this.stats(node.parent, known);
    return { N: N[index], Q: Q[index], P: this.nodes[node.parent].priors[index] };
  }

  /** The node that an action leads to, or null while nobody has been there. */
  child(id, action, moment) {
    const child = this.#children[id].get(action);
    return child !== undefined && this.exists(child, moment) ? child : null;
  }

  /** Whether a node is in the tree: a new one is from its expansion on. */
  exists(id, { simulation, phase }) {
    const { born } = this.nodes[id];
    return born < simulation || (born === simulation && phase !== "selection");
  }

  /** The nodes to show: `[{id, x, y, hidden}]`. */
  shown(moment) {
    const frame = this.recording.frames[moment.simulation];
    const hidden = new Map(frame.hidden);
    return frame.ids
      .map((id, i) => ({ id, x: frame.x[i], y: this.nodes[id].y, hidden: hidden.get(id) ?? 0 }))
      .filter(({ id }) => this.exists(id, moment));
  }

  /** The rectangle that the whole frame takes, the same in all three phases of a simulation. */
  extent({ simulation }) {
    const { ids, x } = this.recording.frames[simulation];
    const [width, height] = this.recording.node_size;
    const ys = ids.map((id) => this.nodes[id].y);
    const left = Math.min(...x) - width / 2;
    const top = Math.min(...ys);
    return {
      left,
      top,
      width: Math.max(...x) + width / 2 - left,
      height: Math.max(...ys) + height - top,
    };
  }

  /** The node that a reader who follows the search looks at. */
  focus({ phase, step }) {
    if (phase === "selection") return step.path[step.path.length - 1];
    return phase === "expansion" ? step.leaf : 0;
  }
}
