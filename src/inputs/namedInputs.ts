/** @file NamedInputs: base of the inputs that read several others, by name. */
import { z } from 'zod';
import { build, type Config, copyWith, sub } from '../hparams/index.js';
import { BaseInput, shareOfRows } from './baseInput.js';
import type { DataIdentity } from './dataIdentity.js';
import { InputError } from './inputErrors.js';
import type { IdRows, InputState } from './inputSource.js';
import { type PartStates, partsBelow } from './recordedParts.js';

type InputsByName = Readonly<Record<string, BaseInput>>;

/** Several inputs, which read for the same host and the same purpose as this one. */
export abstract class NamedInputs extends BaseInput.with({
  inputs: z
    .record(z.string().min(1), sub(BaseInput, null))
    .refine((inputs) => Object.keys(inputs).length > 0, { error: 'must name at least one input' })
    .describe('Inputs by the names of their batches.'),
  defaultInput: z
    .string()
    .nullable()
    .default(null)
    .describe('Name of the input whose tokenizer decodes ids; null is the first.'),
}) {
  static override readonly isAbstract = true;
  #inputs: InputsByName | undefined;

  static override withShareOfRows(config: Config<NamedInputs>, hosts: number): Config<BaseInput> {
    const own = BaseInput.withShareOfRows(config, hosts) as Config<NamedInputs>;
    return copyWith(own, { inputs: sharesOfRows(config, hosts) });
  }

  protected override setup(): void {
    super.setup();
    const { inputs, defaultInput } = this.hp;
    const names = Object.keys(inputs);
    if (defaultInput !== null && !names.includes(defaultInput)) {
      throw new InputError(
        `${this.constructor.name} '${this.name}': defaultInput: expected one of ${names.join(', ')}; got '${defaultInput}'.`,
      );
    }
  }

  override get isEndless(): boolean {
    return Object.values(this.built).every((input) => input.isEndless);
  }

  override reset(): void {
    for (const input of Object.values(this.built)) input.reset();
  }

  override getState(): InputState {
    return this.mapInputs((input) => input.getState());
  }

  override setState(state: InputState): void {
    const names = Object.keys(this.built);
    const missing = names.filter((name) => typeof state[name] !== 'object' || state[name] === null);
    if (missing.length > 0) {
      throw new InputError(
        `Input '${this.name}' cannot resume from the saved state: it lacks ${missing.join(', ')}.`,
      );
    }
    for (const [name, input] of Object.entries(this.built)) input.setState(state[name] as InputState);
  }

  override idsToStrings(ids: IdRows, lengths?: ArrayLike<number>): string[] {
    return this.default.idsToStrings(ids, lengths);
  }

  override dataIdentity(): DataIdentity {
    return this.#joined((input) => input.dataIdentity());
  }

  override recordedParts(): PartStates {
    const parts = this.mapInputs((input) => input.recordedParts());
    return Object.assign(
      {},
      ...Object.entries(parts).map(([name, own]) => partsBelow(own, ['inputs', name])),
    );
  }

  override knownIdentity(): DataIdentity | null {
    const known = Object.values(this.built).map((input) => input.knownIdentity());
    return known.includes(null) ? null : this.#joined((input) => input.knownIdentity()!);
  }

  override async close(): Promise<void> {
    await Promise.all(Object.values(this.#inputs ?? {}).map((input) => input.close()));
  }

  /** The inputs, for this host. */
  protected get built(): InputsByName {
    const { isTraining, numInfeedHosts, infeedHostIndex, inputs } = this.hp;
    const shared = { isTraining, numInfeedHosts, infeedHostIndex };
    this.#inputs ??= Object.fromEntries(
      Object.entries(inputs).map(([name, config]: [string, Config<BaseInput>]) => [
        name,
        build(copyWith(config, { name: config.name ?? `${this.name}.${name}`, ...shared })),
      ]),
    );
    for (const input of Object.values(this.#inputs)) input.skipped = this.skipped;
    return this.#inputs;
  }

  protected get default(): BaseInput {
    return this.built[this.hp.defaultInput ?? Object.keys(this.built)[0]!]!;
  }

  protected mapInputs<T>(make: (input: BaseInput) => T): Record<string, T> {
    return Object.fromEntries(Object.entries(this.built).map(([name, input]) => [name, make(input)]));
  }

  #joined(identityOf: (input: BaseInput) => DataIdentity): DataIdentity {
    const identities = this.mapInputs(identityOf);
    const { vocabSize, tokenizer } = identityOf(this.default);
    const files = Object.values(identities).flatMap((identity) => identity.files ?? []);
    const folders = Object.values(identities).flatMap((identity) => identity.folders ?? []);
    const contents = Object.entries(identities)
      .filter(([, identity]) => identity.contents !== undefined)
      .map(([name, identity]) => `${name}: ${identity.contents}`);
    return {
      ...(vocabSize !== undefined && { vocabSize }),
      ...(tokenizer !== undefined && { tokenizer }),
      ...(files.length > 0 && { files }),
      ...(folders.length > 0 && { folders }),
      ...(contents.length > 0 && { contents: contents.join('; ') }),
    };
  }
}

/** The inputs of a config, each with a share of its rows. */
export const sharesOfRows = (
  { inputs }: Config<NamedInputs>,
  hosts: number,
): Record<string, Config<BaseInput>> =>
  Object.fromEntries(Object.entries(inputs).map(([name, each]) => [name, shareOfRows(each, hosts)]));
