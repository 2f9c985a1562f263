/** @file BaseLayer: declares variables and children in setup(), and finds their values in the ambient context. */
import { z } from 'zod';
import {
  CompilerError,
  type DType,
  hashString,
  ops,
  showUsersFrame,
  type Tensor,
  type TensorSpec,
  withPrecision,
  withScope,
} from '../compiler/index.js';
import { build, type Config, Configurable, classOf, instance, isEqual } from '../hparams/index.js';
import { currentContext, type LayerContext, tellCall } from './context.js';
import { defaultParamsInit, isDefaultParamsInit, WeightInit, type WeightShape } from './weightInit.js';

/** Marks of a variable that learners and checkpoints respect. */
export const WeightCollection = {
  /** No gradient is taken and no optimizer touches it. */
  NON_TRAINABLE: 'NON_TRAINABLE',
  /** L1, L2 and weight decay leave it alone. */
  SKIP_LP_REGULARIZATION: 'SKIP_LP_REGULARIZATION',
} as const;
export type WeightCollection = (typeof WeightCollection)[keyof typeof WeightCollection];

/** Declaration of a variable (Pax's WeightHParams). */
export interface WeightHParams extends WeightShape {
  /** Initial values; the layer's `paramsInit` where absent. */
  readonly init?: WeightInit | undefined;
  /** Element type; float32 where absent. */
  readonly dtype?: DType | undefined;
  readonly collections?: readonly WeightCollection[] | undefined;
}

/** A variable as its layer declared it, completed by the layer's defaults. */
export interface Variable extends WeightShape {
  /** Where it stands in the model: `lm/transformer/x_layers_0/ff_layer/ffn_layer1/linear/w`. */
  readonly path: string;
  readonly init: WeightInit;
  readonly dtype: DType;
  readonly collections: readonly WeightCollection[];
}

/** What a layer keeps between the steps of a decode. */
export interface DecodeStateSpec extends TensorSpec {
  /** Whether all that reads it rounds it to bfloat16, so that it may be kept so. */
  readonly rounded?: boolean;
}

/** Values of a layer's variables by name; to be read within `runInContext` only. */
export type Theta<K extends string = string> = Readonly<Record<K, Tensor>>;

/** What went wrong in a layer, with its path and class in front. */
export class LayerError extends Error {
  override readonly name = 'LayerError';
  constructor(
    readonly path: string,
    readonly layerClass: string,
    detail: string,
    options?: ErrorOptions,
  ) {
    super(`${path === '' ? 'model' : path} (${layerClass}): ${detail}`, options);
  }
}

interface Placement {
  readonly parent: BaseLayer | null;
  readonly path: string;
}

/** Where the layer that is about to be built belongs; consumed by its constructor. */
let nextPlacement: Placement | null = null;

/** Methods in which an error gets the path of the innermost layer that was at work. */
const GUARDED = [
  'fprop',
  'extendStep',
  'prefill',
  'embLookup',
  'atPositions',
  'getLogits',
  'computePredictions',
] as const;

interface SharedLayer {
  readonly config: Config<BaseLayer>;
  readonly layer: BaseLayer;
}

/**
 * Base of every layer.
 *
 * A subclass declares variables (`createVariable`) and children (`createChild`) in `setup()` and computes in `fprop`,
 * where `this.theta.w` is the value that the caller of `runInContext` gave for the variable. Layers hold no values:
 * the same layer serves training, evaluation and tracing.
 */
export abstract class BaseLayer extends Configurable.with({
  name: z.string().default('').describe('A name for people; paths come from the names that parents give.'),
  dtype: z.enum(['float32', 'bfloat16']).default('float32').describe('Type of the variables.'),
  fpropDtype: z
    .enum(['float32', 'bfloat16'])
    .nullable()
    .default(null)
    .describe(
      "Type that matrix products round their operands to, to nearest even; their sums are float32. null: the parent's, else dtype.",
    ),
  paramsInit: instance(WeightInit, defaultParamsInit).describe(
    "Initial values; the default gives way to the parent's.",
  ),
  skipLpRegularization: z
    .boolean()
    .nullable()
    .default(null)
    .describe("Whether weight decay and the like leave all variables alone; null: the parent's, else no."),
  sharedWeightLayerId: z
    .string()
    .regex(/^[A-Za-z]\w*$/)
    .nullable()
    .default(null)
    .describe('Layers of one model with the same id are one layer.'),
}) {
  static override readonly isAbstract = true;
  readonly #placement = this.#takePlacement();
  readonly #variables = new Map<string, Variable>();
  readonly #children = new Map<string, BaseLayer>();
  /** Of the root only: the layers that are shared by id. */
  readonly #shared = new Map<string, SharedLayer>();

  /** Values of this layer's variables by name. */
  readonly theta: Theta = {};

  /** Path from the root: child names joined by '/'; '' for the root itself. */
  get path(): string {
    return this.#placement.path;
  }
  /** The layer that created this one; null for the root. */
  get parent(): BaseLayer | null {
    return this.#placement.parent;
  }
  /** The layer at the top. */
  get root(): BaseLayer {
    let layer: BaseLayer = this;
    while (layer.parent) layer = layer.parent;
    return layer;
  }
  /** This layer's own variables by name. */
  get variables(): ReadonlyMap<string, Variable> {
    return this.#variables;
  }
  /** This layer's children by name; a shared layer appears at each of its parents. */
  get children(): ReadonlyMap<string, BaseLayer> {
    return this.#children;
  }

  /** Type of the variables: an ancestor's choice where this layer has the default (Pax's copy_base_hparams). */
  get dtype(): 'float32' | 'bfloat16' {
    return this.hp.dtype === 'float32' ? (this.parent?.dtype ?? 'float32') : this.hp.dtype;
  }
  /** Type that the operands of this layer's matrix products, and of their gradients, are rounded to. */
  get fpropDtype(): 'float32' | 'bfloat16' {
    return this.hp.fpropDtype ?? this.parent?.fpropDtype ?? this.dtype;
  }
  /** Initialiser of variables that name none. */
  get paramsInit(): WeightInit {
    return isDefaultParamsInit(this.hp.paramsInit) && this.parent
      ? this.parent.paramsInit
      : this.hp.paramsInit;
  }
  /** Whether all variables of this layer are in SKIP_LP_REGULARIZATION. */
  get skipLpRegularization(): boolean {
    return this.hp.skipLpRegularization ?? this.parent?.skipLpRegularization ?? false;
  }

  /** Whether the pass under way evaluates: no dropout. */
  get doEval(): boolean {
    return this.context.doEval;
  }

  /** The context of the pass under way. @throws LayerError outside `runInContext`. */
  get context(): LayerContext {
    const context = currentContext();
    if (!context)
      throw this.error('no forward pass is under way; call layers within runInContext({ theta }, fn).');
    return context;
  }

  /** An error that names this layer. */
  error(detail: string, options?: ErrorOptions): LayerError {
    return new LayerError(this.path, this.constructor.name, detail, options);
  }

  /** Declares a variable; to be called in setup(). */
  protected createVariable(name: string, weight: WeightHParams): void {
    this.#checkName(name);
    const bad = weight.shape.find((dim) => !Number.isInteger(dim) || dim <= 0);
    if (bad !== undefined) {
      throw this.error(
        `variable '${name}' has shape [${weight.shape.join(', ')}]; dimensions are positive integers.`,
      );
    }
    const collections = new Set(weight.collections ?? []);
    if (this.skipLpRegularization) collections.add(WeightCollection.SKIP_LP_REGULARIZATION);
    const variable: Variable = {
      path: this.#pathOf(name),
      shape: [...weight.shape],
      init: weight.init ?? this.paramsInit,
      dtype: weight.dtype ?? 'float32',
      collections: [...collections],
      fanInAxes: weight.fanInAxes,
      fanOutAxes: weight.fanOutAxes,
    };
    this.#variables.set(name, variable);
    // Not enumerable: printing a layer must not ask for values.
    Object.defineProperty(this.theta, name, { get: () => this.#value(variable) });
  }

  /**
   * Builds the layer of `config` as a child; to be called in setup().
   *
   * One config object given twice under one root is one layer with one set of weights, whose path is that of its
   * first place. So is every layer with the same `sharedWeightLayerId`; such a layer's path begins with the id.
   *
   * @returns the child.
   */
  protected createChild<T extends BaseLayer>(name: string, config: Config<T>): T {
    this.#checkName(name);
    const child = this.#buildChild(name, config);
    this.#children.set(name, child);
    return child;
  }

  /** Builds `configs` as children `<name>_0`, `<name>_1` and so on. */
  protected createChildren<T extends BaseLayer>(name: string, configs: readonly Config<T>[]): T[] {
    return configs.map((config, i) => this.createChild(`${name}_${i}`, config));
  }

  /**
   * A key that depends on the context's key, this layer's path and how many keys it drew before: int32 [2].
   *
   * @throws LayerError where the context has no key.
   */
  protected nextPrngKey(): Tensor {
    const { prngKey, draws } = this.context;
    if (!prngKey) throw this.error('draws random numbers, and the context has no prngKey.');
    const drawn = draws.get(this.path) ?? 0;
    draws.set(this.path, drawn + 1);
    return ops.foldIn(prngKey, hashString(`${this.path}#${drawn}`));
  }

  /**
   * Reports a scalar under `<path>/<name>_scalar`; a repeated name gets 1, 2 and so on. `value` is only called where
   * someone collects summaries of this verbosity.
   */
  protected addSummary(name: string, value: () => Tensor, verbosity = 2): void {
    const { summaries, summaryVerbosity } = this.context;
    if (!summaries || verbosity > summaryVerbosity) return;
    const base = this.#pathOf(name);
    let key = `${base}_scalar`;
    for (let i = 1; key in summaries; i++) key = `${base}${i}_scalar`;
    summaries[key] = value();
  }

  /** Adds a scalar to the loss that the model is trained on. */
  protected addAuxLoss(name: string, value: Tensor, weight = 1): void {
    this.context.auxLosses.push({ name: this.#pathOf(name), value, weight });
  }

  /** This layer's own decode state for `batchSize` sequences of at most `seqLen` tokens, by name. */
  decodeStateSpecs(_batchSize: number, _seqLen: number): Readonly<Record<string, DecodeStateSpec>> {
    return {};
  }

  protected getDecodeState(name: string): Tensor {
    const states = this.#decodeStates();
    const state = states[this.#pathOf(name)];
    if (!state) throw this.error(`the context's decodeState has no '${this.#pathOf(name)}'.`);
    return state;
  }

  protected updateDecodeState(name: string, value: Tensor): void {
    this.#decodeStates()[this.#pathOf(name)] = value;
  }

  #decodeStates(): Record<string, Tensor> {
    const { decodeState } = this.context;
    if (!decodeState) throw this.error('decodes step by step, and the context has no decodeState.');
    return decodeState;
  }

  #pathOf(name: string): string {
    return this.path === '' ? name : `${this.path}/${name}`;
  }

  #value(variable: Variable): Tensor {
    const value = this.context.theta[variable.path];
    if (!value) throw this.error(`the context's theta has no value for '${variable.path}'.`);
    if (
      value.shape.length !== variable.shape.length ||
      value.shape.some((dim, i) => dim !== variable.shape[i])
    ) {
      throw this.error(
        `theta has shape [${value.shape.join(', ')}] for '${variable.path}', declared as [${variable.shape.join(', ')}].`,
      );
    }
    return value;
  }

  #checkName(name: string): void {
    if (!/^[A-Za-z]\w*$/.test(name)) {
      throw this.error(`'${name}' can't name a child or variable: letters, digits and '_' after a letter.`);
    }
    if (this.#variables.has(name) || this.#children.has(name)) {
      throw this.error(`declares '${name}' twice.`);
    }
  }

  #buildChild<T extends BaseLayer>(name: string, config: Config<T>): T {
    const id = config.sharedWeightLayerId;
    if (!id) return buildAt({ parent: this, path: this.#pathOf(name) }, config);
    // As in Pax, the shared layer stands below the root, so that its path is the same whoever comes first.
    const { root } = this;
    const shared = root.#shared.get(id);
    if (!shared) {
      const layer = buildAt({ parent: root, path: `${id}/cld` }, config);
      root.#shared.set(id, { config: config as unknown as Config<BaseLayer>, layer });
      return layer;
    }
    if (!isEqual(shared.config, config)) {
      throw this.error(
        `child '${name}' has sharedWeightLayerId '${id}' like ${shared.layer.path}, and another config; ` +
          'layers that share weights have equal configs.',
      );
    }
    return shared.layer as T;
  }

  #takePlacement(): Placement {
    const placement = nextPlacement ?? { parent: null, path: '' };
    nextPlacement = null;
    for (const name of GUARDED) this.#guard(name);
    if (this.hp.dtype === 'bfloat16') {
      throw new LayerError(
        placement.path,
        this.constructor.name,
        "dtype 'bfloat16': variables are float32 everywhere; fpropDtype 'bfloat16' makes matrix products round them.",
      );
    }
    return placement;
  }

  /** Makes errors that `this[name]` throws say where in the model they came from. */
  #guard(name: (typeof GUARDED)[number]): void {
    const method = (this as Partial<Record<typeof name, unknown>>)[name];
    if (typeof method !== 'function') return;
    const guarded = (...args: unknown[]): unknown => {
      try {
        const result = withScope(this.path, () =>
          withPrecision(this.fpropDtype, () => method.apply(this, args)),
        );
        tellCall(this.path, name, result);
        return result;
      } catch (error) {
        // The compiler's own errors name the scope already.
        if (error instanceof LayerError || error instanceof CompilerError || !(error instanceof Error))
          throw error;
        const told = this.error(`${name}: ${error.message}`, { cause: error });
        showUsersFrame(told, error);
        throw told;
      }
    };
    Object.defineProperty(this, name, { value: guarded });
  }
}

function buildAt<T extends BaseLayer>(placement: Placement, config: Config<T>): T {
  nextPlacement = placement;
  try {
    const layer: unknown = build(config);
    if (!(layer instanceof BaseLayer)) {
      const where = placement.parent!;
      throw where.error(`${placement.path} is a ${classOf(config).name}, not a layer.`);
    }
    if (!layer.parent) {
      throw layer.error(
        `stands at ${placement.path} without having been made there: either an instance() field of it holds a layer, ` +
          'which is built before its owner (hold layers in sub() fields and make them with createChild), or its ' +
          'config is also built as a model of its own.',
      );
    }
    return layer as T;
  } finally {
    // A layer that was built before has not taken the placement.
    nextPlacement = null;
  }
}
