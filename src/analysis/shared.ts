/** @file Results that experiments with equal configs share. */
import { isEqual } from '../hparams/index.js';

/** Results by the configs that they follow from. */
export class Shared<R> {
  private readonly known: { readonly configs: readonly unknown[]; readonly result: R }[] = [];

  /** The result for configs, classes and plain values; made once for equal ones. */
  of(configs: readonly unknown[], make: () => R): R {
    const same = this.known.find((each) => isEqual(each.configs, configs));
    if (same !== undefined) return same.result;
    const result = make();
    this.known.push({ configs, result });
    return result;
  }
}
