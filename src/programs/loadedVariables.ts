/** @file The tensors that a model's variables start from: by rules, with every problem told at once. */
import { orderAxes, type VariableSource } from '../checkpoints/index.js';
import { type FlatLayout, sizeOf } from '../compiler/index.js';
import { didYouMean } from '../hparams/index.js';
import { EMA, wholePath } from '../learners/index.js';
import type { NameRule, NameRules } from '../models/index.js';
import { applyRule, type Candidate, type CheckpointLoadingRules } from '../tasks/index.js';

type AxisOrder = ReturnType<typeof orderAxes>;

/** A tensor, and the elements of a variable that it gives. */
export interface Reading {
  readonly tensor: string;
  readonly order: AxisOrder;
  /** Of the variable's elements, the first. */
  readonly start: number;
  readonly length: number;
}

/** A variable, or the part that one repetition has of a variable that stacks those of all. */
export interface VariablePart {
  readonly name: string;
  readonly shape: readonly number[];
  /** Of the variable's elements, the first. */
  readonly start: number;
}

type Entry = Pick<FlatLayout['entries'][number], 'name' | 'shape'>;

/** The slices of a part along its first axis. */
function slicesOf({ shape, start }: VariablePart, nameOf: (index: number) => string): VariablePart[] {
  const [count = 0, ...rest] = shape;
  const size = sizeOf(rest);
  return Array.from({ length: count }, (_, i) => ({
    ...{ name: nameOf(i), shape: rest, start: start + i * size },
  }));
}

/**
 * The parts that published weights have of a variable as tensors of their own: repeated layers, which have the names of layers one
 * after the other, and slices by the rules.
 */
export function partsOf(entry: Entry, entries: readonly Entry[], names: NameRules): VariablePart[] {
  const sliced = names.sliced ?? [];
  return layersOf(entry, entries).flatMap((part) =>
    sliced.some((text) => wholePath(text).test(part.name))
      ? slicesOf(part, (i) => `${part.name}/${i}`)
      : part,
  );
}

function layersOf({ name, shape }: Entry, entries: readonly Entry[]): VariablePart[] {
  const [, before, index, behind] = /^(.*)\/repeat\/sub\/x_layers_(\d+)\/(.*)$/.exec(name) ?? [];
  if (before === undefined) return [{ name, shape, start: 0 }];
  const stem = `${before}/repeat/sub/x_layers_`;
  const perBlock = new Set(
    entries.flatMap((entry) =>
      entry.name.startsWith(stem) ? [entry.name.slice(stem.length).split('/')[0]] : [],
    ),
  ).size;
  const layerOf = (block: number) => `${before}/x_layers_${block * perBlock + Number(index)}/${behind}`;
  return slicesOf({ name, shape, start: 0 }, layerOf);
}

/** Finds the tensors of all variables in one source. */
export class VariableMatcher {
  readonly #used = new Set<NameRule>();
  readonly #problems: string[] = [];
  /** Tensors that a variable takes, or would. */
  readonly #taken = new Set<string>();
  readonly #own: readonly NameRule[];
  readonly #tensors: ReadonlyMap<string, string>;

  /** @param names rules of the source's names, for variables without a rule in `rules`. */
  constructor(
    private readonly rules: CheckpointLoadingRules,
    private readonly source: Pick<VariableSource, 'names' | 'shapeOf' | 'dtypeProblem' | 'areEqual'>,
    private readonly names: NameRules | undefined,
    private readonly layout: FlatLayout,
  ) {
    this.#own = rules.ownRules(names !== undefined);
    const short = (name: string): string => {
      const prefix = names?.prefixes.find((each) => name.startsWith(each)) ?? '';
      return name.slice(prefix.length);
    };
    this.#tensors = new Map(source.names.map((name) => [short(name), name]));
  }

  /** Faults of the rules and the source, found by `match`, a line each. */
  get problems(): readonly string[] {
    return this.#problems;
  }

  /** Each variable with its sources. @param given variables that have values already; they are passed over. */
  match(given: ReadonlySet<string> = new Set()): Map<string, Reading[]> {
    const found = new Map<string, Reading[]>();
    for (const entry of this.layout.entries) {
      const readings = this.#partsOf(entry).map((part) => this.#reading(part, given.has(entry.name)));
      const present = readings.filter((reading) => reading !== undefined);
      if (present.length > 0 && present.length === readings.length) found.set(entry.name, present);
    }
    this.#checkRules();
    if (this.names !== undefined) this.#checkLeftOver(this.names);
    return found;
  }

  #partsOf(entry: Entry): VariablePart[] {
    const { name, shape } = entry;
    return this.names === undefined
      ? [{ name, shape, start: 0 }]
      : partsOf(entry, this.layout.entries, this.names);
  }

  /** The source of a part; undefined where it keeps its value, has one already, or nothing fits. */
  #reading(part: VariablePart, isGiven: boolean): Reading | undefined {
    const { name, shape, start } = part;
    const length = sizeOf(shape);
    const isKept = this.rules.keeps(name);
    const candidate = this.#candidate(name, isKept);
    if (candidate === undefined) return undefined;
    const tensor = this.#find(candidate.tensor);
    if (tensor !== undefined) this.#taken.add(tensor);
    if (isKept || isGiven) return undefined;
    if (tensor === undefined) {
      this.#problems.push(`${name}: ${this.#missing(candidate.tensor)}`);
      return undefined;
    }
    const problem = this.source.dtypeProblem(tensor);
    if (problem !== undefined) this.#problems.push(`${name}: '${tensor}' of the checkpoint: ${problem}.`);
    const theirs = this.source.shapeOf(tensor)!;
    if (candidate.axes === undefined && `${theirs}` === `${shape}`)
      return { tensor, order: undefined, start, length };
    const order = candidate.axes === undefined ? undefined : orderAxes(candidate.axes, theirs, shape);
    if (order !== undefined) return { tensor, order, start, length };
    const how = candidate.axes === undefined ? '' : `, read as ${candidate.axes}`;
    this.#problems.push(
      `${name} is [${shape.join(', ')}], and '${tensor}' in the checkpoint [${theirs.join(', ')}]${how}.`,
    );
    return undefined;
  }

  /** The rule that counts. */
  #candidate(name: string, isKept: boolean): Candidate | undefined {
    for (const rule of this.#own) {
      const own = applyRule(rule, name);
      if (own === undefined) continue;
      if (!isKept) this.#used.add(rule);
      return own.axes === undefined ? (this.#named(own.tensor) ?? own) : own;
    }
    if (this.names === undefined) return undefined;
    const named = this.#named(name);
    if (named === undefined && !isKept)
      this.#problems.push(`${name}: no published weight has its place by the name rules.`);
    return named;
  }

  /** The name rules' tensor for a path: the first that is there, or else the first at all. */
  #named(path: string): Candidate | undefined {
    const all = (this.names?.rules ?? []).flatMap((rule) => applyRule(rule, path) ?? []);
    return all.find(({ tensor }) => this.#find(tensor) !== undefined) ?? all[0];
  }

  /** The tensor of a name, with or without the prefix of its kind. */
  #find(name: string): string | undefined {
    if (this.source.shapeOf(name) !== undefined) return name;
    return this.#tensors.get(name);
  }

  #missing(tensor: string): string {
    const isAverage = tensor.startsWith(`${EMA}/`);
    const variable = isAverage ? tensor.slice(EMA.length + 1) : tensor;
    if (isAverage && this.source.shapeOf(variable) !== undefined)
      return 'the checkpoint has no moving average (emaDecay of its optimizer).';
    return `the checkpoint has no '${variable}'.${didYouMean(variable, this.source.names)}`;
  }

  #checkRules(): void {
    const ours = this.layout.entries.map(({ name }) => name);
    for (const rule of this.#own) {
      if (!this.#used.has(rule))
        this.#problems.push(
          `the pattern '${rule[0]}' matches no variable that is left to it.${didYouMean(rule[0], ours)}`,
        );
    }
    const parts = this.layout.entries.flatMap((entry) => this.#partsOf(entry).map(({ name }) => name));
    for (const text of this.rules.hp.ignoreRules) {
      if (!parts.some((name) => wholePath(text).test(name)))
        this.#problems.push(
          `the pattern '${text}' of ignoreRules matches no variable.${didYouMean(text, ours)}`,
        );
    }
    for (const text of this.rules.hp.ignoreTensors) {
      if (!this.source.names.some((name) => wholePath(text).test(name)))
        this.#problems.push(
          `the pattern '${text}' of ignoreTensors matches no tensor.${didYouMean(text, this.source.names)}`,
        );
    }
  }

  /** A tensor without a variable means another network than the one that was published. */
  #checkLeftOver({ buffers, kept = [], copies }: NameRules): void {
    for (const [short, tensor] of this.#tensors) {
      if (this.#taken.has(tensor)) continue;
      if ([...buffers, ...kept].some((text) => wholePath(text).test(short))) continue;
      if (this.rules.hp.ignoreTensors.some((text) => wholePath(text).test(tensor))) continue;
      const original = copies[short] === undefined ? undefined : this.#find(copies[short]);
      if (original !== undefined && this.source.areEqual(tensor, original)) continue;
      this.#problems.push(
        `'${tensor}' [${this.source.shapeOf(tensor)!.join(', ')}] of the checkpoint is in no variable of the model.`,
      );
    }
  }
}
