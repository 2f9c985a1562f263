/** @file Variables of one layer, and their values in the context of a forward pass. */
import type { Tensor } from '../../compiler/index.js';
import { didYouMean } from '../../hparams/index.js';
import type { LayerContext } from './context.js';
import { type CodeForm, roundedWeight, scaleName, weightOf } from './quantization.js';
import { oneRepetition, type Theta, type Variable, WeightCollection } from './weights.js';

/** The part of a layer that its variables need. */
interface Owner {
  readonly context: LayerContext;
  error(detail: string): Error;
}

/** Variables by name; values are checked against their shapes. */
export class OwnVariables {
  /** In order of declaration. */
  readonly byName = new Map<string, Variable>();
  /** Forms of the weights that codes hold, that passes round to codes, or that multiply rounded factors, by name. */
  readonly forms = new Map<string, CodeForm>();
  /** The caller's values of the present pass, by name; of codes the weights. */
  readonly theta: Theta = {};

  /** Whether codes hold any of the weights. */
  hasCodes = false;

  constructor(private readonly owner: Owner) {}

  declare(name: string, variable: Variable): void {
    this.#add(name, variable);
    this.#read(name, () => this.given(variable));
  }

  /** Declares a weight that stays as it is, and what it multiplies is rounded. */
  declareMultiplied(name: string, variable: Variable, form: CodeForm): void {
    this.declare(name, variable);
    this.forms.set(name, form);
  }

  /** Declares a weight that passes round. */
  declareRounded(name: string, variable: Variable, form: CodeForm): void {
    this.#add(name, variable);
    this.forms.set(name, form);
    this.#read(name, () => roundedWeight(this.given(variable), form));
  }

  /** Declares a weight by the variables of its codes and their scales. */
  declareCodes(name: string, codes: Variable, scales: Variable, form: CodeForm): void {
    this.#add(name, codes);
    this.#add(scaleName(name), scales);
    this.forms.set(name, form);
    this.hasCodes = true;
    this.#read(name, () => weightOf(this.given(codes), this.given(scales), form));
  }

  #add(name: string, variable: Variable): void {
    const bad = variable.shape.find((dim) => !Number.isInteger(dim) || dim <= 0);
    if (bad !== undefined) {
      throw this.owner.error(
        `variable '${name}' has shape [${variable.shape.join(', ')}]; dimensions are positive integers.`,
      );
    }
    this.byName.set(name, variable);
  }

  #read(name: string, get: () => Tensor): void {
    // Not enumerable, so that printing a layer reads no values.
    Object.defineProperty(this.theta, name, { get });
  }

  /** The value from `updateVar` in this pass, else from the caller. */
  present(name: string): Tensor {
    const variable = this.named(name);
    return this.owner.context.updatedVars[variable.path] ?? this.given(variable);
  }

  update(name: string, value: Tensor): void {
    const variable = this.named(name);
    if (!variable.collections.includes(WeightCollection.NON_TRAINABLE)) {
      throw this.owner.error(`updateVar('${name}'): the variable is trained; declare it in NON_TRAINABLE.`);
    }
    this.checkShape(variable, value, 'updateVar gives');
    this.owner.context.updatedVars[variable.path] = value;
  }

  private given(variable: Variable): Tensor {
    const value = this.owner.context.theta[variable.path];
    if (!value) throw this.owner.error(`the context's theta has no value for '${variable.path}'.`);
    this.checkShape(variable, value, 'theta has');
    return value;
  }

  private named(name: string): Variable {
    const variable = this.byName.get(name);
    if (variable) return variable;
    const names = [...this.byName.keys()];
    throw this.owner.error(
      `has no variable '${name}'.${didYouMean(name, names)} It has: ${names.join(', ') || 'none'}.`,
    );
  }

  private checkShape(variable: Variable, value: Tensor, source: string): void {
    const { path, shape } = oneRepetition(variable);
    if (value.shape.length === shape.length && value.shape.every((dim, i) => dim === shape[i])) return;
    const isWhole = variable.repeatPrefix.length > 0 && value.shape.join() === variable.shape.join();
    throw this.owner.error(
      `${source} shape [${value.shape.join(', ')}] for '${path}', declared as [${shape.join(', ')}].` +
        (isWhole
          ? ' A layer above repeats it, and stacks its variables: it works within that layer alone.'
          : ''),
    );
  }
}
