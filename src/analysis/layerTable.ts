/** @file Layers of a model with parameters, FLOPs and activations, each summed over its sublayers. */
import { sizeOf } from '../compiler/index.js';
import type { BaseLayer } from '../layers/index.js';
import type { TracedStep } from './tracedStep.js';

/** One layer of the model, in the order in which the model holds them. */
export interface LayerSummary {
  /** Its path; the empty string is the model itself. */
  readonly path: string;
  /** The class. */
  readonly type: string;
  /** How many layers are around it. */
  readonly depth: number;
  /**
   * Shape of its fprop's result when the step was traced on the batch of one host: of the first tensor, if there are
   * several. Absent for a layer that was not called.
   */
  readonly outputShape?: readonly number[];
  /** Values in variables of its own. */
  readonly ownParameters: number;
  /** Values in variables of its own, and in those of the layers below it: each variable once. */
  readonly parameters: number;
  /** FLOPs of the forward pass over a global batch, those of the layers below it included. */
  readonly flops: number;
  /** Bytes that its forward pass writes on a device and the backward pass reads again, those of the layers below it included. */
  readonly activationBytes: number;
}

/** Sums over a layer and its descendants. */
interface Sums {
  readonly parameters: number;
  readonly flops: number;
  readonly activationBytes: number;
}

/** The layers below `root`, parents before children, each once, with the number of layers around it. */
function placed(root: BaseLayer): { layer: BaseLayer; depth: number }[] {
  const found = new Map<BaseLayer, number>();
  const open = [{ layer: root, depth: 0 }];
  for (let next = open.pop(); next; next = open.pop()) {
    const { layer, depth } = next;
    if (found.has(layer)) continue;
    found.set(layer, depth);
    const children = [...layer.children.values()].reverse();
    open.push(...children.map((child) => ({ layer: child, depth: depth + 1 })));
  }
  return [...found].map(([layer, depth]) => ({ layer, depth }));
}

/** A layer and all below it, each once: several may share one. */
function family(root: BaseLayer): Set<BaseLayer> {
  const found = new Set([root]);
  // A set iterates in order of insertion, including elements added meanwhile.
  for (const layer of found) for (const child of layer.children.values()) found.add(child);
  return found;
}

/** The layers of `model`, parents before children, in the order in which the model holds them. */
export function layerTable(model: BaseLayer, step: TracedStep): LayerSummary[] {
  const layers = placed(model);
  const paths = new Set(layers.map(({ layer }) => layer.path));
  const own = (sums: ReadonlyMap<string, number>, path: string): number => sums.get(path) ?? 0;
  /** Work outside of every layer counts as the model's. */
  const outside = (sums: ReadonlyMap<string, number>): number =>
    [...sums].reduce((total, [scope, amount]) => (paths.has(scope) ? total : total + amount), 0);
  const ownParameters = (layer: BaseLayer): number =>
    [...layer.variables.values()].reduce((total, { shape }) => total + sizeOf(shape), 0);
  const ownSums = new Map(
    layers.map(({ layer }): [BaseLayer, Sums] => [
      layer,
      {
        parameters: ownParameters(layer),
        flops: own(step.flops, layer.path) + (layer === model ? outside(step.flops) : 0),
        activationBytes: own(step.saved, layer.path) + (layer === model ? outside(step.saved) : 0),
      },
    ]),
  );
  return layers.map(({ layer, depth }) => {
    const below = [...family(layer)].map((member) => ownSums.get(member)!);
    const total = (pick: (sums: Sums) => number): number =>
      below.reduce((sum, member) => sum + pick(member), 0);
    const outputShape = step.outputShapes.get(layer.path);
    return {
      path: layer.path,
      type: layer.constructor.name,
      depth,
      ...(outputShape && { outputShape }),
      ownParameters: ownSums.get(layer)!.parameters,
      parameters: total(({ parameters }) => parameters),
      flops: total(({ flops }) => flops),
      activationBytes: total(({ activationBytes }) => activationBytes),
    };
  });
}
