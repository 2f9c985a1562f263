/** @file Dominance of trials with several rewards (Deb et al., 2002). */
import type { RewardedTrial } from './trial.js';

/** Whether rewards are better in one objective, and worse in none. */
export function dominates(a: readonly number[], b: readonly number[]): boolean {
  return a.every((reward, i) => reward >= b[i]!) && a.some((reward, i) => reward > b[i]!);
}

/** Fronts of trials: those that no trial dominates, those that only they dominate, … */
export function* paretoFronts(trials: readonly RewardedTrial[]): Generator<RewardedTrial[]> {
  let left = trials;
  while (left.length > 0) {
    const front = left.filter(({ rewards }) => !left.some((other) => dominates(other.rewards, rewards)));
    yield front;
    const taken = new Set(front);
    left = left.filter((trial) => !taken.has(trial));
  }
}

/** A trial with its place in the order of dominance. */
export interface PlacedTrial {
  readonly trial: RewardedTrial;
  /** 0 for the trials that none dominates. */
  readonly front: number;
  /** How far its neighbours on the front are apart; infinite at either end. */
  readonly crowding: number;
}

/** The best trials: front by front, and of the last front those with the most room. */
export function bestPlaced(trials: readonly RewardedTrial[], count: number): PlacedTrial[] {
  const found: PlacedTrial[] = [];
  let front = 0;
  for (const members of paretoFronts(trials)) {
    const crowding = crowdingOf(members);
    const placed = members.map((trial, i): PlacedTrial => ({ trial, front, crowding: crowding[i]! }));
    found.push(...placed.sort((a, b) => (a.crowding === b.crowding ? 0 : b.crowding - a.crowding)));
    if (found.length >= count) break;
    front++;
  }
  return found.slice(0, count);
}

/** Crowding distances: the sum over objectives of how far the neighbours of a trial are apart. */
function crowdingOf(front: readonly RewardedTrial[]): number[] {
  const distances = front.map(() => 0);
  for (const objective of front[0]!.rewards.keys()) {
    const at = (place: number) => front[place]!.rewards[objective]!;
    const order = [...front.keys()].sort((i, j) => at(i) - at(j));
    const range = at(order.at(-1)!) - at(order[0]!);
    for (const [rank, place] of order.entries()) {
      const [below, above] = [order[rank - 1], order[rank + 1]];
      if (below === undefined || above === undefined) distances[place] = Number.POSITIVE_INFINITY;
      else if (range > 0) distances[place]! += (at(above) - at(below)) / range;
    }
  }
  return distances;
}
