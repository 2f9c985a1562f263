/** @file Program boundary, which hides empty inputs and outputs from the engine. */

import { isEmpty } from '../passes/index.js';
import type { Backend, FlatBinding, PortStorages } from './backend.js';
import { type Graph, joinGraphs } from './ir.js';

type Border = Pick<Graph, 'inputs' | 'outputs'>;
type Kind = keyof Border;

const hasEmpties = ({ inputs, outputs }: Border): boolean => inputs.some(isEmpty) || outputs.some(isEmpty);

/** The graph without empty inputs and outputs. */
const withoutEmpties = (graph: Graph): Graph => ({
  inputs: graph.inputs.filter((input) => !isEmpty(input)),
  outputs: graph.outputs.filter((output) => !isEmpty(output)),
  nodes: graph.nodes,
});

/** A backend for programs without results. */
const IDLE: Backend = { runner: 'eager', bind: () => async () => {}, dispose: async () => {} };

/** Wraps a backend of the non-empty inputs and outputs as one that takes all of them. */
function withEmpties(backend: Backend, border: Border): Backend {
  if (!hasEmpties(border)) return backend;
  const kept = <T>(kind: Kind, all: readonly T[]): T[] => all.filter((_, i) => !isEmpty(border[kind][i]!));
  /** Index of input or output `i` among the non-empty ones. */
  const place = (kind: Kind, i: number): number => kept(kind, border[kind].slice(0, i)).length;
  const storages = (kind: Kind, chosen: PortStorages): PortStorages[Kind] => {
    const numbers = kept(kind, [...border[kind].keys()]);
    return Object.fromEntries(
      Object.entries(chosen[kind]).map(([i, storage]) => [numbers[Number(i)], storage]),
    );
  };
  const bind = ({ inputs, outputs, carried = [], stacked }: FlatBinding) =>
    backend.bind({
      inputs: kept('inputs', inputs),
      outputs: kept('outputs', outputs),
      carried: carried
        .filter(({ output }) => !isEmpty(border.outputs[output]!))
        .map(({ output, input }) => ({ output: place('outputs', output), input: place('inputs', input) })),
      stacked: stacked && {
        runs: stacked.runs,
        inputs: kept('inputs', stacked.inputs),
        outputs: kept('outputs', stacked.outputs),
      },
    });
  return {
    runner: backend.runner,
    repeats: backend.repeats === true,
    updatesInPlace: backend.updatesInPlace === true,
    storages: backend.storages && {
      inputs: storages('inputs', backend.storages),
      outputs: storages('outputs', backend.storages),
    },
    mayOverwrite: (output, input) =>
      backend.mayOverwrite?.(place('outputs', output), place('inputs', input)) === true,
    bind,
    refresh: () => backend.refresh?.(),
    dispose: () => backend.dispose(),
  };
}

/** Compiles a graph, and optionally one that follows it in the same run, without their empty inputs and outputs. */
export async function compileWithinBorder(
  graph: Graph,
  following: (() => Graph) | undefined,
  compile: (graph: Graph, following: (() => Graph) | undefined) => Promise<Backend>,
): Promise<Backend> {
  let second: Graph | undefined;
  const traceSecond = (): Graph => {
    second = following!();
    return withoutEmpties(second);
  };
  const rest = withoutEmpties(graph);
  const hasNothing = rest.outputs.length === 0 && following === undefined;
  const backend = hasNothing ? IDLE : await compile(rest, following && traceSecond);
  const follows = second !== undefined && backend.runner === 'native';
  return withEmpties(backend, follows ? joinGraphs(graph, second!) : graph);
}
