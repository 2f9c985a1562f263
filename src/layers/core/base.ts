/** @file BaseLayer: declarations of variables and children, and their values in the context of a forward pass. */
import { DEFAULT_PRECISION, hashString, ops, type Precision, type Tensor } from '../../compiler/index.js';
import {
  build,
  type Config,
  Configurable,
  type ConfigValues,
  classOf,
  copyWith,
  deepCopy,
  excludeFromPlaces,
} from '../../hparams/index.js';
import { currentContext, type DecodeStateSpec, type LayerContext } from './context.js';
import { layerFields, type SplitDims } from './layerFields.js';
import { type MediaKind, MOST_ENTRIES, mediaTensor, summaryKey } from './layerSummaries.js';
import { LayerError, wrapMethods } from './methods.js';
import { OwnVariables } from './ownVariables.js';
import { builtElsewhere, type Placement, takePlacement, withPlacement } from './placement.js';
import { type CodeForm, type Quantization, roundedFactors } from './quantization.js';
import { declareQuantized } from './quantizedVariables.js';
import { SharedLayers } from './sharedLayers.js';
import { splitOf, splitTensor } from './splitDims.js';
import { isDefaultParamsInit, type WeightInit } from './weightInit.js';
import { heldAs, type Theta, type Variable, WeightCollection, type WeightHParams } from './weights.js';

// Records writes of createChild to templates as the layer's.
excludeFromPlaces(import.meta.url);

/**
 * Base of every layer.
 *
 * A subclass declares variables (`createVariable`) and children (`createChild`) in `setup()` and computes in `fprop`,
 * where `this.theta.w` is the value that the caller of `runInContext` gave for the variable. Layers hold no values:
 * the same layer serves training, evaluation and tracing.
 */
export abstract class BaseLayer extends Configurable.with(layerFields) {
  static override readonly isAbstract = true;
  readonly #placement = this.#takePlacement();
  readonly #variables = new OwnVariables(this);
  readonly #children = new Map<string, BaseLayer>();
  /** Layers shared by id; used in the root only. */
  readonly #shared = new SharedLayers<BaseLayer>();

  /** Values of this layer's variables by name. */
  readonly theta: Theta = this.#variables.theta;

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
    return this.#variables.byName;
  }
  /** This layer's children by name; a shared layer appears at each of its parents. */
  get children(): ReadonlyMap<string, BaseLayer> {
    return this.#children;
  }

  /** Type of the variables: an ancestor's choice if this layer has the default (Pax's copy_base_hparams). */
  get dtype(): Precision {
    return this.hp.dtype === DEFAULT_PRECISION ? (this.parent?.dtype ?? DEFAULT_PRECISION) : this.hp.dtype;
  }
  /** Type that operands of this layer's matrix products and their gradients are rounded to. */
  get fpropDtype(): Precision {
    return this.hp.fpropDtype ?? this.parent?.fpropDtype ?? this.dtype;
  }
  /** Initialiser of variables that declare none. */
  get paramsInit(): WeightInit {
    return isDefaultParamsInit(this.hp.paramsInit) && this.parent
      ? this.parent.paramsInit
      : this.hp.paramsInit;
  }
  /** Whether all variables of this layer are in SKIP_LP_REGULARIZATION. */
  get skipLpRegularization(): boolean {
    return this.hp.skipLpRegularization ?? this.parent?.skipLpRegularization ?? false;
  }

  /** How weights are held in few bits: an ancestor's choice if this layer has none. */
  get quantization(): Quantization['hp'] | null {
    return this.hp.quantization ?? this.parent?.quantization ?? null;
  }
  /** Type that operands of the layer's own products are rounded to: weights in codes are multiplied as they are. */
  get productDtype(): Precision {
    return this.#variables.hasCodes ? DEFAULT_PRECISION : this.fpropDtype;
  }
  /** Forms of this layer's weights that are held in codes, or rounded to them, by name. */
  get codeForms(): ReadonlyMap<string, CodeForm> {
    return this.#variables.forms;
  }

  /**
   * What the weight `name` multiplies, as its product takes it: rounded where `quantization.actParams` says so.
   *
   * @param axes of x that the product sums over, in the order of the weight's; by default the last one.
   */
  protected factors(x: Tensor, name: string, axes: readonly number[] = [x.rank - 1]): Tensor {
    const form = this.codeForms.get(name);
    const rounding = this.quantization?.actParams;
    return form === undefined || !rounding ? x : roundedFactors(x, axes, form, rounding);
  }

  /** Whether the layer is part of a frozen child. */
  get isFrozen(): boolean {
    return this.#placement.isFrozen;
  }

  /** Axes that layers above put before those of this layer's variables (Pax's repeat_prefix); [] for most. */
  get repeatPrefix(): readonly number[] {
    return this.#placement.repeatPrefix;
  }
  /** The prefix of the children: that of this layer, and an axis more where it repeats them. */
  protected get childRepeatPrefix(): readonly number[] {
    return this.repeatPrefix;
  }

  /** Axes of the mesh of devices that `repeatPrefix` is split over. */
  get prefixSplit(): SplitDims {
    return this.parent?.childPrefixSplit.slice(0, this.repeatPrefix.length) ?? [];
  }
  /** Those of the children's prefix. */
  protected get childPrefixSplit(): SplitDims {
    return this.prefixSplit;
  }

  /** Whether the present pass evaluates: no dropout. */
  get doEval(): boolean {
    return this.context.doEval;
  }

  /** The context of the present pass. @throws LayerError outside `runInContext`. */
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

  /** Declares a variable. Called in setup(). */
  protected createVariable(name: string, weight: WeightHParams): void {
    this.#checkName(name);
    const collections = new Set(weight.collections ?? []);
    if (this.skipLpRegularization) collections.add(WeightCollection.SKIP_LP_REGULARIZATION);
    if (this.isFrozen) collections.add(WeightCollection.FROZEN);
    const { prefixSplit } = this;
    const splitDims = splitOf(this, 'weightSplitDimsMapping', name, weight.shape.length);
    const isWide = collections.has(WeightCollection.DISALLOW_BFLOAT16_CONVERSION);
    const dtype = weight.dtype ?? (isWide ? DEFAULT_PRECISION : this.dtype);
    const variable: Variable = {
      path: this.#pathOf(name),
      shape: [...this.repeatPrefix, ...weight.shape],
      repeatPrefix: this.repeatPrefix,
      init: weight.init ?? this.paramsInit,
      ...heldAs(dtype),
      collections: [...collections],
      fanInAxes: weight.fanInAxes,
      fanOutAxes: weight.fanOutAxes,
      ...(splitDims && { splitDims }),
      ...(prefixSplit.some((axes) => axes !== null) && { prefixSplit }),
    };
    const { quantization } = this;
    if (quantization === null || weight.contracting === undefined) this.#variables.declare(name, variable);
    else
      declareQuantized(this.#variables, name, variable, weight, quantization, (detail) => this.error(detail));
  }

  /**
   * Builds a child from `template`, or from a copy of it with `overrides`. Called in setup().
   *
   * A config object used twice under one root is one layer with one set of weights, whose path is that of its first
   * place; to make several children from one template, `deepCopy` it for each. Layers with the same
   * `sharedWeightLayerId` are also one layer, whose path begins with the id.
   *
   * @returns the child.
   */
  protected createChild<T extends BaseLayer>(
    name: string,
    template: Config<T>,
    overrides?: Partial<ConfigValues<T>>,
  ): T {
    const config = overrides ? copyWith(template, overrides as Partial<Config<T>>) : template;
    return this.#addChild(name, config, this.isFrozen);
  }

  /**
   * Builds a child that training leaves alone, such as a teacher, from a copy of `template`: it shares no layer with the others,
   * whose templates may be the same object. Call it within `runFrozen`.
   */
  protected createFrozenChild<T extends BaseLayer>(name: string, template: Config<T>): T {
    return this.#addChild(name, deepCopy(template), true);
  }

  #addChild<T extends BaseLayer>(name: string, config: Config<T>, isFrozen: boolean): T {
    this.#checkName(name);
    const child = this.#buildChild(name, config, isFrozen);
    this.#children.set(name, child);
    return child;
  }

  /** Builds `configs` as children `<name>_0`, `<name>_1` and so on. */
  protected createChildren<T extends BaseLayer>(name: string, configs: readonly Config<T>[]): T[] {
    return configs.map((config, i) => this.createChild(`${name}_${i}`, config));
  }

  /**
   * Derives a key int32 [2] from the context's key, this layer's path and the number of keys drawn before.
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
   * Reports a scalar under `<path>/<name>_scalar`; repeated names get suffixes 1, 2 and so on. `value` is only called
   * if summaries of this verbosity are collected.
   */
  protected addSummary(name: string, value: () => Tensor, verbosity = 2): void {
    const { summaries, summaryVerbosity } = this.context;
    if (summaries && verbosity <= summaryVerbosity)
      summaries[summaryKey(summaries, this.#pathOf(name), 'scalar')] = value();
  }

  /**
   * Reports the first `maxImages` of a tensor of images under `<path>/<name>_image`, as `addSummary` does. Every training
   * step computes them; those of a summary's last step are written (`summaryAccumulateIntervalSteps` gathers others), and
   * of an evaluation those of its first batch.
   *
   * @param value [n, height, width, channels] from 0 to 1; channels are 1 (grey), 3 (RGB) or 4 (RGBA).
   * @param maxImages at most 64
   * @throws LayerError for another shape
   */
  protected addImageSummary(name: string, value: () => Tensor, maxImages = 4, verbosity = 2): void {
    this.#addMedia(name, 'image', value, { most: maxImages, verbosity });
  }

  /**
   * Reports the first `maxSounds` of a tensor of sounds under `<path>/<name>_audio<sampleRate>`, as `addImageSummary` does.
   *
   * @param value [n, samples] or [n, samples, channels] from -1 to 1.
   * @param sampleRate samples per second.
   * @throws LayerError for another shape, and for a rate that is no positive integer
   */
  protected addAudioSummary(
    name: string,
    value: () => Tensor,
    sampleRate: number,
    maxSounds = 4,
    verbosity = 2,
  ): void {
    if (!(Number.isSafeInteger(sampleRate) && sampleRate > 0))
      throw this.error(`the audio summary '${name}': expected samples per second, got ${sampleRate}.`);
    this.#addMedia(name, 'audio', value, { most: maxSounds, verbosity, detail: String(sampleRate) });
  }

  /**
   * Reports the first `maxTexts` rows of ids under `<path>/<name>_text`, as `addImageSummary` does: as the text that the
   * input's vocabulary makes of them, or as numbers where the input has no text.
   *
   * @param value int32 [n, length].
   * @throws LayerError for another shape or dtype
   */
  protected addTextSummary(name: string, value: () => Tensor, maxTexts = 4, verbosity = 2): void {
    this.#addMedia(name, 'text', value, { most: maxTexts, verbosity });
  }

  /**
   * Reports the distribution of a tensor's elements under `<path>/<name>_histogram`, as `addImageSummary` does. NaN, such as a
   * layer may select for padding, and infinities are left out.
   */
  protected addHistogramSummary(name: string, value: () => Tensor, verbosity = 2): void {
    this.#addMedia(name, 'histogram', value, { most: MOST_ENTRIES, verbosity });
  }

  #addMedia(
    name: string,
    kind: MediaKind,
    value: () => Tensor,
    {
      most,
      verbosity,
      detail = '',
    }: { readonly most: number; readonly verbosity: number; readonly detail?: string },
  ): void {
    const { media, summaryVerbosity } = this.context;
    if (!media || verbosity > summaryVerbosity) return;
    const key = summaryKey(media, this.#pathOf(name), `${kind}${detail}`);
    media[key] = mediaTensor(kind, value(), Math.min(most, MOST_ENTRIES), (reason) =>
      this.error(`the ${kind} summary '${name}': ${reason}`),
    );
  }

  /**
   * `x` itself, whose statistics and gradient a run prints as `<path>/<name>` where `--tap` asks for them. Use the
   * result in place of `x`: the gradient is that of what is computed from the result. Elsewhere the program is the same as without it.
   */
  protected tap(name: string, x: Tensor): Tensor {
    return this.context.taps?.read(this.#pathOf(name), x) ?? x;
  }

  /** Axes of the mesh that what the layer calls `name` is split over, if any layer says so. @param rank of the tensor */
  activationSplit(name = 'out', rank?: number): SplitDims | undefined {
    const own = this.hp.activationSplitDimsMapping[name];
    return splitOf(this, 'activationSplitDimsMapping', name, rank ?? own?.length ?? 0);
  }

  /**
   * `x` itself, of which devices hold parts as `activationSplitDimsMapping` says under `name`. Programs of one device are the
   * same without it.
   *
   * @throws LayerError where the layer's own mapping has another rank.
   */
  protected shard(x: Tensor, name = 'out'): Tensor {
    const own = this.activationSplit(name, x.rank);
    return splitTensor(x, this.path, () => own);
  }

  /** Adds a scalar to the model's training loss. */
  protected addAuxLoss(name: string, value: Tensor, weight = 1): void {
    this.context.auxLosses.push({ name: this.#pathOf(name), value, weight });
  }

  /**
   * This layer's own decode state for `batchSize` sequences of at most `seqLen` tokens, by name; the first axis is that of the
   * sequences. `memoryLen` is the length of a memory that they attend to, 0 without one.
   */
  decodeStateSpecs(
    _batchSize: number,
    _seqLen: number,
    _memoryLen: number,
  ): Readonly<Record<string, DecodeStateSpec>> {
    return {};
  }

  /** Decode state of all repetitions of a layer below, from that of one, by path. */
  repeatDecodeState(
    specs: Readonly<Record<string, DecodeStateSpec>>,
  ): Readonly<Record<string, DecodeStateSpec>> {
    return specs;
  }

  /** Current value of a variable: from `updateVar` in this pass, else from the caller. */
  protected getVar(name: string): Tensor {
    return this.#variables.present(name);
  }

  /**
   * Replaces the value of a variable in NON_TRAINABLE, such as a running statistic. A training step stores the pass's
   * last value with its update; a step whose update is skipped, and evaluation, leave the variable unchanged.
   */
  protected updateVar(name: string, value: Tensor): void {
    this.#variables.update(name, value);
  }

  protected getDecodeState(name: string): Tensor {
    const states = this.#decodeStates();
    const state = states[this.#pathOf(name)];
    if (!state) throw this.error(`the context's decodeState has no '${this.#pathOf(name)}'.`);
    return state;
  }

  /** State of the prompts that rows share, where they do. */
  protected getPromptState(name: string): Tensor | undefined {
    return this.context.promptState?.[this.#pathOf(name)];
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

  #checkName(name: string): void {
    if (!/^[A-Za-z]\w*$/.test(name)) {
      throw this.error(`'${name}' can't name a child or variable: letters, digits and '_' after a letter.`);
    }
    if (this.variables.has(name) || this.#children.has(name)) {
      throw this.error(`declares '${name}' twice.`);
    }
  }

  #takePlacement(): Placement<BaseLayer> {
    wrapMethods(this, BaseLayer.prototype);
    return takePlacement<BaseLayer>();
  }

  #buildChild<T extends BaseLayer>(name: string, config: Config<T>, isFrozen: boolean): T {
    const id = config.sharedWeightLayerId;
    if (!id)
      return this.#buildAt(
        { path: this.#pathOf(name), repeatPrefix: this.childRepeatPrefix, isFrozen },
        config,
      );
    const { root } = this;
    const layer = root.#shared.get(
      id,
      config,
      (path) => root.#buildAt({ path, repeatPrefix: [], isFrozen }, config),
      (shared) =>
        this.error(
          `child '${name}' has sharedWeightLayerId '${id}' like ${shared.path}, and another config; ` +
            'layers that share weights have equal configs.',
        ),
    );
    if (layer.isFrozen !== isFrozen)
      throw this.error(
        `child '${name}' has sharedWeightLayerId '${id}' like ${layer.path}, and one of the two is frozen; give it another id.`,
      );
    return layer as T;
  }

  #buildAt<T extends BaseLayer>(place: Omit<Placement<BaseLayer>, 'parent'>, config: Config<T>): T {
    const { path } = place;
    const layer: unknown = withPlacement({ parent: this, ...place }, () => build(config));
    if (!(layer instanceof BaseLayer)) {
      throw this.error(`${path} is a ${classOf(config).name}, not a layer.`);
    }
    if (!layer.parent) {
      throw layer.error(builtElsewhere(path));
    }
    return layer as T;
  }
}
