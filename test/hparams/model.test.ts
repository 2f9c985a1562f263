/** @file Random programs of edits, run on configs and on a plain model of them: both have to read alike at each step. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type Config,
  copy,
  deepCopy,
  derive,
  fromJSON,
  history,
  isEqual,
  pathOf,
  select,
  setPath,
  setTagged,
  toJSON,
  unset,
  unsetPath,
} from '../../src/hparams/index.js';
import { runs } from '../faults/campaign.js';
import {
  Box,
  childrenOf,
  copyModel,
  deepCopyModel,
  deriveModel,
  isBox,
  type Model,
  model,
  nodesOf,
  type Real,
  realChildren,
  shown,
  Tip,
  Value,
  wrote,
} from './plainModel.js';

interface Step {
  readonly kind: string;
  readonly a: number;
  readonly b: number;
  readonly n: number;
  readonly steps: readonly Step[];
}

const plainKinds = [
  'set',
  'set',
  'delete',
  'nums',
  'nums',
  'put',
  'put',
  'put',
  'new',
  'new',
  'take',
  'copy',
  'deepCopy',
  'setTagged',
  'select',
  'setPath',
  'unsetPath',
  'refused',
  'replace',
];
const { program } = fc.letrec<{ step: Step; program: Step[] }>((tie) => ({
  step: fc.record({
    kind: fc.constantFrom(...plainKinds, 'derive', 'derive'),
    a: fc.nat(50),
    b: fc.nat(50),
    n: fc.nat(50),
    steps: fc.oneof({ maxDepth: 2, depthSize: 'max' }, fc.constant([]), tie('program')),
  }),
  program: fc.array(tie('step'), { maxLength: 9 }),
}));

/** One root, as config and as model. */
class Run {
  constructor(
    public real: Real,
    public model: Model,
    private readonly isDraft = false,
  ) {}

  run(steps: readonly Step[]): void {
    for (const step of steps) {
      this.step(step);
      this.check(JSON.stringify(step));
    }
  }

  check(step: string): void {
    expect(shown(this.real, false), step).toBe(shown(this.model, true));
  }

  private pick(i: number): [Real, Model] {
    const models = nodesOf(this.model, childrenOf);
    const reals = nodesOf(this.real, realChildren);
    return [reals[i % reals.length]!, models[i % models.length]!];
  }

  private step({ kind, a, b, n, steps }: Step): void {
    const [real, node] = this.pick(a);
    const [other, otherNode] = this.pick(b);
    const field = ['value', 'nums', 'opt', 'tpl', 'list', 'table', 'defs'][n % (node.isBox ? 7 : 3)]!;
    if (kind === 'set') {
      real.value = n;
      node.value = n;
      wrote(node, 'value');
      expect(history(real).at(-1)).toMatchObject({ field: 'value', kind: 'set', value: n });
    } else if (kind === 'delete' || kind === 'unsetPath') {
      if (kind === 'delete') unset(real, field as 'value');
      else unsetPath(this.real, [pathOf(this.real, real), field].filter(Boolean).join('.'));
      Object.assign(node, { [field]: model(node.isBox)[field as 'value'] });
      node.explicit.delete(field);
      node.writes++;
      if (node.edited === false) node.edited = true;
      expect(history(real).at(-1)).toMatchObject({ field, kind: 'delete' });
    } else if (kind === 'setPath') {
      setPath(this.real, [pathOf(this.real, real), 'value'].filter(Boolean).join('.'), String(n));
      node.value = n;
      wrote(node, 'value');
    } else if (kind === 'nums') this.editNumbers(real.nums, node, n, b);
    else if (kind === 'put') this.put(real, node, other, otherNode, n);
    else if (kind === 'new') {
      if (b % 2 === 1 && reaches(otherNode, node)) return;
      const made = (b % 2 === 0 ? Tip.config() : Box.config({ list: [other] })) as Real;
      const madeNode = model(b % 2 === 1);
      if (madeNode.isBox) {
        madeNode.list.push(otherNode);
        wrote(madeNode, 'list');
        this.placed(otherNode);
      }
      this.put(real, node, made, madeNode, n);
      made.value = 9;
      made.nums.push(3);
      madeNode.value = 9;
      madeNode.nums.push(3);
      wrote(madeNode, 'value');
      wrote(madeNode, 'nums');
    } else if (kind === 'take') this.take(real, node, n);
    else if (kind === 'copy') {
      if (reaches(otherNode, node)) return;
      const made = copyModel(otherNode);
      const defaults = { tpl: [otherNode.tpl], defs: otherNode.defs };
      for (const field of ['tpl', 'defs'] as const) {
        // Edited defaults are shared with the copy.
        if (!made.explicit.has(field) || otherNode.explicit.has(field)) continue;
        for (const each of defaults[field]) if (each !== null) this.placed(each);
      }
      this.put(real, node, copy(other), made, n);
    } else if (kind === 'deepCopy') this.put(real, node, deepCopy(other), deepCopyModel(otherNode), n);
    else if (kind === 'setTagged' || kind === 'select') {
      const all = nodesOf(node, childrenOf);
      const count = kind === 'select' ? select(real, { tag: Value }).set(n) : setTagged(real, Value, n);
      expect(count).toBe(all.length);
      for (const each of all) {
        each.value = n;
        wrote(each, 'value');
      }
    } else if (kind === 'replace') this.replaceInside(real, node);
    else if (kind === 'refused') {
      expect(() => (real.value = 'no' as never)).toThrow();
      expect(() => real.nums.splice(0, 1, 7, 0.5)).toThrow();
      if (isBox(real)) expect(() => real.list.splice(0, 1, other, 3 as never)).toThrow();
      expect(() => select(real, { tag: Value }).set('no')).toThrow();
    } else if (kind === 'derive') this.derive(real, node, other, otherNode, steps, n);
  }

  private editNumbers(nums: number[], node: Model, n: number, at: number): void {
    const edits: ((list: number[]) => unknown)[] = [
      (list) => list.push(n, n + 1),
      (list) => list.splice(at % (list.length + 1), n % 3, at),
      (list) => list.sort(),
      (list) => list.reverse(),
      (list) => list.pop(),
      (list) => list.unshift(n),
      (list) => (list[list.length] = n),
      (list) => list.fill(n, at % 3),
      (list) => list.copyWithin(0, 1),
    ];
    const edit = edits[n % edits.length]!;
    const result = edit(nums);
    expect(result === nums || result).toEqual(edit(node.nums) === node.nums || result);
    wrote(node, 'nums');
  }

  /** A default that stands elsewhere too is a value. */
  private placed(node: Model): void {
    for (const holder of nodesOf(this.model, childrenOf)) {
      for (const field of ['tpl', 'defs'] as const) {
        if (holder[field] !== node && !(field === 'defs' && holder.defs.includes(node))) continue;
        holder.explicit.add(field);
      }
    }
    if (node.edited === false) node.edited = true;
  }

  private put(real: Real, node: Model, held: Real, heldNode: Model, n: number): void {
    if (reaches(heldNode, node)) return;
    const places = ['opt', 'table', 'list', 'list[]', 'tpl', 'defs'];
    const place = node.isBox ? places[n % (heldNode.isBox ? 4 : 6)]! : 'opt';
    if (place === 'opt' || place === 'tpl') {
      real[place] = held;
      node[place] = heldNode;
      const last = history(real).at(-1)!;
      expect([last.field, last.kind, last.value === real[place]]).toEqual([place, 'set', true]);
    } else if (place === 'table') {
      const key = `key ${n % 4}`;
      if (node.table[key] === heldNode) return;
      real.table[key] = held;
      node.table[key] = heldNode;
    } else if (place === 'list[]') {
      const i = n % (node.list.length + 1);
      if (node.list[i] === heldNode) return;
      real.list[i] = held;
      node.list[i] = heldNode;
    } else {
      (real[place as 'list'] as unknown[]).push(held);
      node[place as 'list'].push(heldNode);
    }
    this.placed(heldNode);
    wrote(node, place.replace('[]', ''));
  }

  private take(real: Real, node: Model, n: number): void {
    const keys = Object.keys(node.table);
    if (n % 3 === 0 && keys.length > 0) {
      const key = keys[n % keys.length]!;
      delete real.table[key];
      delete node.table[key];
      wrote(node, 'table');
    } else if (node.isBox) {
      const field = n % 2 === 0 ? 'list' : 'defs';
      const edits: ((list: unknown[]) => unknown)[] = [
        (list) => list.shift(),
        (list) => list.reverse(),
        (list) => list.splice(n % (list.length + 1), 1),
        (list) => list.sort((a, b) => (a as Model).value - (b as Model).value),
      ];
      const edit = edits[n % edits.length]!;
      edit(real[field] as unknown[]);
      edit(node[field]);
      wrote(node, field);
    }
  }

  /** Puts each Tip below a node where it stands already, as `select` does. */
  private replaceInside(real: Real, node: Model): void {
    if (!node.isBox) return;
    select(real, { cls: Tip, matchSubclasses: false }).replace((old: Config<Tip>) => old);
    // Every holder of a Tip was written to.
    for (const holder of nodesOf(node, childrenOf)) {
      if (holder.opt !== null && !holder.opt.isBox) wrote(holder, 'opt');
      if (holder.tpl !== null) wrote(holder, 'tpl');
      if (holder.list.some((each) => !each.isBox)) wrote(holder, 'list');
      if (Object.values(holder.table).some((each) => !each.isBox)) wrote(holder, 'table');
      if (holder.defs.length > 0) wrote(holder, 'defs');
    }
    for (const tip of nodesOf(node, childrenOf)) if (!tip.isBox) this.placed(tip);
  }

  private derive(
    real: Real,
    node: Model,
    into: Real,
    intoNode: Model,
    steps: readonly Step[],
    n: number,
  ): void {
    const before = shown(real, false);
    const results: [Real, Model][] = [];
    const result = derive(real, (draft) => {
      const derivedModel = deriveModel(node, (draftModel) => {
        const inner = new Run(draft, draftModel, true);
        inner.check('begin');
        inner.run(steps);
      });
      results.push([draft, derivedModel]);
    });
    const derivedModel = results[0]![1];
    expect(shown(real, false)).toBe(before);
    expect(shown(result, false)).toBe(shown(derivedModel, true));
    expect(result === real).toBe(derivedModel === node);
    if (node === this.model && !this.isDraft) {
      this.real = result;
      this.model = derivedModel;
    } else this.put(into, intoNode, result, derivedModel, n);
  }
}

function reaches(from: Model, to: Model): boolean {
  return nodesOf(from, childrenOf).includes(to);
}

test('random programs: configs read as a plain model of them does, in recipes too', () => {
  fc.assert(
    fc.property(program, program, (first, second) => {
      const run = new Run(Box.config(), model(true));
      run.check('begin');
      for (const steps of [first, second]) {
        run.run(steps);
        const copied = deepCopy(run.real);
        expect(shown(copied, false)).toBe(shown(run.model, true));
        expect(shown(fromJSON(toJSON(run.real)) as Real, false)).toBe(shown(run.model, true));
        expect(isEqual(copied, run.real)).toBe(true);
        copied.value += 1;
        expect(isEqual(copied, run.real)).toBe(false);
      }
      expect(shown(Box.config(), false)).toBe(shown(model(true), true));
    }),
    { numRuns: runs(1000) },
  );
});
