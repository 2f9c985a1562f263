/** @file tfjs's optimizers in traces: which are called, and their state in JavaScript numbers and plain tensors. */
import { type Tensor, tf } from '../compiler/index.js';

/** An optimizer by its fields. */
type Fields = Record<string, unknown>;

const CLASSES = [
  tf.Optimizer,
  tf.SGDOptimizer,
  tf.MomentumOptimizer,
  tf.RMSPropOptimizer,
  tf.AdamOptimizer,
  tf.AdamaxOptimizer,
  tf.AdadeltaOptimizer,
  tf.AdagradOptimizer,
] as const;

/** Calls `told` with each optimizer that `f` calls, before it computes. */
function tellingOptimizers<T>(told: (optimizer: tf.Optimizer) => void, f: () => T): T {
  const undo: (() => void)[] = [];
  for (const { prototype } of CLASSES) {
    for (const name of ['minimize', 'computeGradients', 'applyGradients'] as const) {
      const method = Object.getOwnPropertyDescriptor(prototype, name);
      if (typeof method?.value !== 'function') continue;
      const value = function (this: tf.Optimizer, ...args: unknown[]): unknown {
        told(this);
        return method.value.apply(this, args);
      };
      Object.defineProperty(prototype, name, { ...method, value });
      undo.push(() => Object.defineProperty(prototype, name, method));
    }
  }
  try {
    return f();
  } finally {
    for (const back of undo) back();
  }
}

const fieldsOf = (optimizer: tf.Optimizer): Fields => optimizer as unknown as Fields;

const numbersOf = (optimizer: tf.Optimizer): Map<string, number> =>
  new Map(
    Object.entries(fieldsOf(optimizer)).filter(
      (entry): entry is [string, number] => typeof entry[1] === 'number',
    ),
  );

const isPlainTensor = (value: unknown): value is Tensor =>
  value instanceof tf.Tensor && !(value instanceof tf.Variable);

/** A plain tensor in an optimizer's field, such as the learning rate of SGD. */
export interface TensorField {
  readonly optimizer: tf.Optimizer;
  readonly field: string;
}

export const tensorIn = ({ optimizer, field }: TensorField): Tensor => fieldsOf(optimizer)[field] as Tensor;

/** A JavaScript number in an optimizer's field. */
export interface NumberField {
  readonly optimizer: tf.Optimizer;
  readonly field: string;
}

export const numberIn = ({ optimizer, field }: NumberField): number => fieldsOf(optimizer)[field] as number;

/** Optimizers found in a function's trace. */
export class OptimizerTrace {
  private readonly before = new Map<tf.Optimizer, Map<string, number>>();
  /** By how much a call changes a number. */
  private readonly steps = new Map<tf.Optimizer, Map<string, number>>();
  /** Names of numbers that are settings although they may change. */
  private readonly fixed = new Set<string>();
  private settings = '';

  /** Whether a number grows with each call, as the iterations do. */
  isCounter({ optimizer, field }: NumberField): boolean {
    return this.steps.get(optimizer)?.has(field) === true;
  }

  /** Whether any optimizer was called. */
  get isUsed(): boolean {
    return this.before.size > 0;
  }

  /**
   * Calls `f`, which is traced; the numbers of optimizers are as before afterwards.
   *
   * @param substitutes numbers that take the place of optimizers' own meanwhile.
   */
  during<T>(f: () => T, substitutes: ReadonlyMap<NumberField, number> = new Map()): T {
    for (const optimizer of this.before.keys()) this.before.set(optimizer, numbersOf(optimizer));
    for (const [{ optimizer, field }, value] of substitutes) fieldsOf(optimizer)[field] = value;
    try {
      return tellingOptimizers((optimizer) => this.note(optimizer), f);
    } finally {
      for (const [optimizer, before] of this.before) {
        const steps = new Map<string, number>();
        for (const [field, value] of numbersOf(optimizer)) {
          const step = value - (before.get(field) ?? 0);
          if (step !== 0) steps.set(field, step);
          fieldsOf(optimizer)[field] = before.get(field) ?? 0;
        }
        if (substitutes.size === 0) this.steps.set(optimizer, steps);
      }
      this.settings = this.settingsNow();
    }
  }

  private note(optimizer: tf.Optimizer): void {
    if (this.before.has(optimizer)) return;
    // Reading it makes it 0 where there was no step.
    void optimizer.iterations;
    this.before.set(optimizer, numbersOf(optimizer));
  }

  /** Plain tensors of the optimizers. */
  tensorFields(): TensorField[] {
    return [...this.before.keys()].flatMap((optimizer) =>
      Object.entries(fieldsOf(optimizer)).flatMap(([field, value]) =>
        isPlainTensor(value) ? [{ optimizer, field }] : [],
      ),
    );
  }

  /** Numbers that change between calls: learning rates and counters. */
  changingNumbers(): NumberField[] {
    return [...this.before.keys()].flatMap((optimizer) => {
      const changing = this.steps.get(optimizer)!;
      const fields = [...numbersOf(optimizer).keys()];
      return fields
        .filter((field) => !this.fixed.has(field) && (field === 'learningRate' || changing.has(field)))
        .map((field) => ({ optimizer, field }));
    });
  }

  /** Counts a call. */
  step(): void {
    for (const [optimizer, steps] of this.steps)
      for (const [field, by] of steps)
        fieldsOf(optimizer)[field] = (fieldsOf(optimizer)[field] as number) + by;
  }

  /** Whether the optimizers are still those that were traced: the same variables and settings. */
  isCurrent(): boolean {
    return this.settings === this.settingsNow();
  }

  private settingsNow(): string {
    const changing = this.changingNumbers();
    const isChanging = (optimizer: tf.Optimizer, field: string): boolean =>
      changing.some((number) => number.optimizer === optimizer && number.field === field);
    const told = [...this.before.keys()].map((optimizer) =>
      Object.entries(fieldsOf(optimizer)).map(([field, value]) => [
        field,
        typeof value === 'number' && isChanging(optimizer, field) ? '' : describe(value),
      ]),
    );
    return JSON.stringify(told);
  }

  /** Makes a number a setting, where a program depends on it otherwise than by its value. */
  fix(field: string): void {
    this.fixed.add(field);
    this.settings = this.settingsNow();
  }
}

/** A field's value as far as programs depend on it. */
function describe(value: unknown): unknown {
  if (value instanceof tf.Variable) return value.id;
  if (isPlainTensor(value)) return 'tensor';
  if (Array.isArray(value)) return value.map(describe);
  if (typeof value !== 'object' || value === null) return value;
  return Object.values(value).map(describe);
}
