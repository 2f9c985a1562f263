/** @file Layers that share weights by id: one layer per `sharedWeightLayerId` below a root. */
import { type AnyConfig, isEqual } from '../../hparams/index.js';

/** The shared layers below one root, by id. */
export class SharedLayers<L extends { readonly path: string }> {
  readonly #byId = new Map<string, { readonly config: AnyConfig; readonly layer: L }>();

  /**
   * Returns the layer of this id; at first use, `make` builds it at its path. As in Pax, it is a child of the root, so
   * that its path does not depend on the first user.
   *
   * @throws the error of `mismatch` if the layer of this id has another config.
   */
  get(id: string, config: AnyConfig, make: (path: string) => L, mismatch: (shared: L) => Error): L {
    const shared = this.#byId.get(id);
    if (!shared) {
      const layer = make(`${id}/cld`);
      this.#byId.set(id, { config, layer });
      return layer;
    }
    if (!isEqual(shared.config, config)) throw mismatch(shared.layer);
    return shared.layer;
  }
}
