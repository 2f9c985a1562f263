/** @file Layers that share their weights by id: one layer for each `sharedWeightLayerId` below a root. */
import { type AnyConfig, isEqual } from '../../hparams/index.js';

/** The shared layers below one root, by id. */
export class SharedLayers<L extends { readonly path: string }> {
  readonly #byId = new Map<string, { readonly config: AnyConfig; readonly layer: L }>();

  /**
   * The layer of this id; `make` builds it at its path the first time. As in Pax, it stands below the root, so that its
   * path is the same whoever comes first.
   *
   * @throws the error of `mismatch` where the layer of this id has another config.
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
